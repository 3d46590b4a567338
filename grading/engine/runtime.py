"""The code of cell and judge, as it is sent into a sandbox.

Nothing of the project is visible inside, so the interpreter is started with a few lines that read
a loader and the modules from descriptor 0: compiled ones where the interpreter is of the same
version as this one, their source otherwise. What an interpreter adds to the builtins for people at
a prompt, where it looks for packages, goes first: a name means the same with packages and without.
"""

from __future__ import annotations

import json
import marshal
import platform
from functools import cache
from pathlib import Path
from typing import Any

from grading.engine import framing

_HERE = Path(__file__).resolve().parent

# In the order in which they are to be executed; the last one's main() runs.
# Read only where a program or a target uses numpy or pandas.
_LATER = ("arrays", "tables", "libraries")
_VALUES = ("framing", "kinds", "encoder", "decoder", *_LATER)
CELL = (*_VALUES, "inside", "denylist", "operations", "loading", "classes", "cell")
SCRIPT = ("framing", "kinds", "inside", "denylist", "loading", "script")
JUDGE = (*_VALUES, "confine", "inside", "in_place", "stand_ins", "remote", "targets", "judge")
WARM_JUDGE = (*JUDGE, "warm", "warm_judge")
WARM_CELL = ("framing", "confine", "inside", "warm", "warm_cell")

# What the interpreter is started with: reads and executes the loader below.
BOOT = """
import marshal, posix
def read():
    size = int.from_bytes(posix.read(0, 4), "big") or posix._exit(0)
    parts = []
    while size:
        part = posix.read(0, size) or posix._exit(0)
        parts.append(part)
        size -= len(part)
    return marshal.loads(b"".join(parts))
exec(read())
"""

_LOADER = """
import builtins, gc, sys
gc.disable()
package = type(sys)("grading.engine")
package.annotations = None
loaded = {"grading.engine": package, "__future__": package}
for name in ("copyright", "credits", "exit", "help", "license", "quit"):
    vars(builtins).pop(name, None)
real = builtins.__import__
later = {}
def find(name, globals=None, locals=None, fromlist=(), level=0):
    if name not in loaded:
        return real(name, globals, locals, fromlist, level)
    if name == "grading.engine":
        for part in fromlist or ():
            if part in later:
                load(part, marshal.loads(later.pop(part)))
    return loaded[name]
private = dict(vars(builtins), __import__=find)
def load(name, code):
    module = type(sys)(name)
    module.__file__ = "<evalsite %s>" % name
    module.__builtins__ = private
    loaded["grading.engine." + name] = module
    setattr(package, name, module)
    if type(code) is str:
        code = compile(code, module.__file__, "exec", 0, True)
    exec(code, module.__dict__)
    return module
for name, code in read():
    if type(code) is bytes:
        later[name] = code
    else:
        module = load(name, code)
# All of this stays, so nobody need ever look through it for what can go.
gc.freeze()
gc.enable()
module.main()
"""


def greeting(names: tuple[str, ...], python_version: str, plan: dict[str, Any]) -> bytes:
    """What a process started with BOOT reads first: its code, and what it is to give up."""
    frame = framing.pack(b"P", b"\0" * 8, json.dumps(plan).encode())
    if plan and "confine" not in names:
        names = ("confine", *names)
    return image(names, python_version) + frame


def load(python_version: str) -> None:
    """Read and compile it all now, once for this process and its forks.

    What they send is then of one state of the files, even where these are replaced meanwhile.
    """
    for names in (CELL, SCRIPT, JUDGE, WARM_CELL, WARM_JUDGE):
        greeting(names, python_version, {})
        greeting(names, python_version, {"private": True})


def image(names: tuple[str, ...], python_version: str) -> bytes:
    """The loader and a list of (name, code or source), marshalled and length-prefixed each."""
    own = platform.python_version_tuple()[:2]
    return _image(names, tuple(python_version.split(".")[:2]) == own)


@cache
def _image(names: tuple[str, ...], compiled: bool) -> bytes:
    modules = [(name, _code(name) if compiled else _source(name)) for name in names]
    loader = compile(_LOADER, "<evalsite>", "exec", dont_inherit=True) if compiled else _LOADER
    return _part(loader, compiled) + _part(modules, compiled)


@cache
def _source(name: str) -> str:
    return (_HERE / f"{name}.py").read_text(encoding="utf-8")


@cache
def _code(name: str) -> Any:
    # Without its docstrings it is read sooner.
    code = compile(_source(name), f"<evalsite {name}>", "exec", dont_inherit=True, optimize=2)
    return marshal.dumps(code) if name in _LATER else code


def _part(value: Any, compiled: bool) -> bytes:
    # Version 2 of the format is read by every interpreter.
    data = marshal.dumps(value, marshal.version if compiled else 2)
    return len(data).to_bytes(4, "big") + data
