"""Starting a command under a tier, with a clean environment and a directory of its own."""

from __future__ import annotations

import marshal
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grading.engine.child import Child
from grading.engine.isolation import bwrap
from grading.engine.isolation.view import View
from grading.engine.outcome import PlatformError
from grading.engine.workdir import make_workdir, remove_tree

_ENGINE = Path(__file__).resolve().parent.parent
_FRONT = ("confine", "front")
_BOOT = """
import marshal, sys
codes, order = marshal.loads(bytes.fromhex(sys.argv.pop(1)))
space = {"__name__": "front", "ORDER": order}
for code in codes:
    exec(compile(code, "<evalsite front>", "exec", 0, True) if type(code) is str else code, space)
space["main"]()
"""


@dataclass(frozen=True, slots=True)
class Isolation:
    """A way to run commands. ``argv`` gives what stands in front of a command.

    ``own_files``: brings a root and scratch directories that vanish with it.
    ``namespaced``: has a pid namespace, so its first process takes all others along.
    ``mounts``: what :mod:`grading.engine.front` is to mount inside, where it can.
    ``filter_option``: passes the descriptor of a system call filter.
    ``user``: id of the user and group to start as, where root can do that. ``core``: the one
    that all of a run's processes share.
    """

    tier: str
    argv: Callable[[View], list[str]]
    own_files: bool
    namespaced: bool
    mounts: Callable[[View, str | None], dict[str, Any]] | None = None
    filter_option: str = ""
    user: int | None = None
    core: int | None = None

    @property
    def private_files(self) -> bool:
        """Whether nothing of the host's can be written, nor more than the system's be read."""
        return self.own_files or self.mounts is not None


@dataclass(frozen=True, slots=True)
class Front:
    """What the command is to be subjected to that does not limit itself.

    ``limits`` as ``rlimits`` gives them, ``plan`` for :mod:`grading.engine.confine`.
    """

    limits: Sequence[tuple[int, int]] = ()
    plan: Mapping[str, Any] | None = None


def launch(
    isolation: Isolation,
    view: View,
    command: Sequence[str],
    extra_env: Mapping[str, str] | None = None,
    *,
    capture: bool = True,
    on_end: Callable[[], None] | None = None,
    front: Callable[[str], Front] | None = None,
    program: bytes = b"",
    socket_in: bool = False,
) -> Child:
    """Start ``command`` in ``view.workdir``, or in a throw-away directory without one.

    ``front`` is given the home directory of the command; ``program`` is a system call filter,
    for a tier that takes one; ``socket_in`` as for :class:`Child`. Raises PlatformError if it
    cannot be started; ``on_end`` is then not called.
    """
    user = isolation.user if view.workdir is None else None
    scratch = None if isolation.own_files else make_workdir(user)
    home, tmpdir = (scratch, scratch) if scratch else (bwrap.HOME, bwrap.TMPDIR)
    cwd = view.workdir or home
    env = environment(view.python, home, tmpdir, cwd) | dict(extra_env or {})
    order = _order(isolation, view, scratch, front(home) if front else Front())
    try:
        return Child(
            [
                *([] if isolation.own_files else _die_with_parent(view)),
                *isolation.argv(view),
                *(_front(view, order) if order else []),
                *command,
            ],
            env,
            namespaced=isolation.namespaced,
            cwd="/" if isolation.own_files else cwd,
            workdir=scratch,
            capture=capture,
            on_end=on_end,
            user=user,
            core=isolation.core,
            handed=(isolation.filter_option, program) if program else None,
            socket_in=socket_in,
        )
    except PlatformError:
        if scratch:
            remove_tree(scratch)
        raise


def _die_with_parent(view: View) -> list[str]:
    """In front of a command: it is killed when the thread that started it ends."""
    if setpriv := shutil.which("setpriv"):
        return [setpriv, "--pdeathsig", "KILL", "--"]
    return _front(view, {"die_with_parent": True})


def _order(isolation: Isolation, view: View, scratch: str | None, front: Front) -> dict[str, Any]:
    """The order for :mod:`grading.engine.front`, without what it need not do."""
    order = {
        "mounts": isolation.mounts(view, scratch) if isolation.mounts else None,
        "init": isolation.namespaced and not isolation.own_files,
        "limits": [list(pair) for pair in front.limits],
        "plan": dict(front.plan or {}),
    }
    return {name: value for name, value in order.items() if value}


def _front(view: View, order: dict[str, Any]) -> list[str]:
    own = platform.python_version_tuple()[:2]
    compiled = tuple(view.version.split(".")[:2]) == own
    # Version 2 of the format is read by every interpreter.
    data = marshal.dumps((_codes(compiled), order), marshal.version if compiled else 2)
    return [view.python, "-s", "-B", "-S", "-c", _BOOT, data.hex()]


@cache
def _codes(compiled: bool) -> list[Any]:
    sources = [(_ENGINE / f"{name}.py").read_text(encoding="utf-8") for name in _FRONT]
    if not compiled:
        return list(sources)
    return [compile(text, "<evalsite front>", "exec", dont_inherit=True) for text in sources]


def environment(python: str, home: str, tmpdir: str, cwd: str) -> dict[str, str]:
    """All that a sandboxed process finds in its environment.

    PWD is named because bubblewrap sets it in any case.
    """
    return {
        "PATH": f"{os.path.dirname(python)}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": tmpdir,
        "PWD": cwd,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
