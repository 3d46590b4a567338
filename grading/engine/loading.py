"""A program's text as a module, and what went wrong with it as data.

Shared by the two processes that run programs: the cell and the one of
:mod:`grading.engine.script`. Runs with a private copy of the builtins; written for Python 3.8.
"""

from __future__ import annotations

import sys
from _operator import is_

from grading.engine.kinds import class_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

FILE_NAME = "program.py"
MESSAGE_LENGTH = 500
# What compiling any text may raise.
COMPILE_PROBLEMS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)

_traceback_of = BaseException.__dict__["__traceback__"].__get__
_builtins = dict(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__))
_functions = {
    name: found for name, found in _builtins.items() if name != "__import__" and callable(found)
}
_shared_builtins = sys.modules["builtins"].__dict__


class Source:
    """The part of a loader that linecache asks for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, name: str) -> str:
        return self.text


def compiled(text: str) -> Any:
    """The code of a program; raises one of COMPILE_PROBLEMS."""
    return compile(text, FILE_NAME, "exec", dont_inherit=True)


def leave(code: Any = None) -> None:
    """``exit`` and ``quit``, which an interpreter has only where it looks for packages."""
    raise SystemExit(code)


def new_module(name: str, text: str, import_: Callable[..., Any]) -> ModuleType:
    """An empty module that is imported as ``name``, with builtins of its own.

    Its ``__import__`` is ``import_``, but that ``random`` starts from seed 0.
    """
    own = {"__import__": _seeding(import_), "exit": leave, "quit": leave}
    module = type(sys)(name)
    module.__file__ = FILE_NAME
    # What linecache and inspect ask for the source of a file that is on no disk.
    module.__loader__ = Source(text)  # type: ignore[assignment]
    module.__dict__["__builtins__"] = dict(_builtins, **own)
    sys.modules[name] = module
    return module


def _seeding(import_: Callable[..., Any]) -> Callable[..., Any]:
    seeded: list[bool] = []

    def seeding_import(name: str, *args: Any, **kwargs: Any) -> Any:
        module = import_(name, *args, **kwargs)
        if name == "random" and not seeded:
            seeded.append(True)
            sys.modules["random"].seed(0)
        return module

    return seeding_import


def library() -> list[str]:
    """Directories of the standard library and of installed packages."""
    return [path for path in sys.path if path] + [sys.base_prefix + "/lib", sys.prefix + "/lib"]


def has_patched_builtins(given: dict[str, Any]) -> bool:
    """Whether a function is another one in the interpreter's builtins, or in those ``given``."""
    # Asked with every answer, so it is left to functions of the interpreter.
    return not all(
        all(map(is_, map(found_in.get, _functions), _functions.values()))
        for found_in in (_shared_builtins, given)
    )


# --- failures -------------------------------------------------------------------------------------


def described(problem: BaseException, phase: str) -> dict[str, Any]:
    """A failure as data; nothing in it is formatted by the program's code unguarded."""
    failure: dict[str, Any] = {
        "phase": phase,
        "exception": class_name(type(problem)),
        "message": safe_text(lambda: str(problem)),
        "denied": "",
        "frames": [],
    }
    try:
        if type(problem) is ImportError and problem.args[:1] == ("denied",):
            failure["denied"] = safe_text(lambda: problem.name)
        if phase == "compile":
            failure["frames"] = [[int(problem.lineno), ""]]  # type: ignore[attr-defined]
        else:
            failure["frames"] = _frames(problem)
    except BaseException:  # an exception class may lie about anything
        pass
    return failure


def safe_text(function: Callable[[], Any], limit: int = MESSAGE_LENGTH) -> str:
    """What ``function`` returns as plain text, cut; empty when it raises or is no text."""
    try:
        text = function()
        if not isinstance(text, str):
            return ""
        return str.__getitem__(text, slice(limit))
    except BaseException:
        return ""


def _frames(problem: BaseException) -> list[list[Any]]:
    """[line, function] of the program's own frames, innermost last; at most the last ten."""
    found: list[list[Any]] = []
    step = _traceback_of(problem)
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == FILE_NAME:
            found.append([step.tb_lineno, code.co_name[:100]])
            del found[:-10]
        step = step.tb_next
    return found
