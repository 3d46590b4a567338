"""Starting a command under a tier, with a clean environment and a directory of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from grading.engine.child import Child
from grading.engine.isolation import bwrap
from grading.engine.isolation.view import View
from grading.engine.outcome import PlatformError
from grading.engine.workdir import make_workdir, remove_tree


@dataclass(frozen=True, slots=True)
class Isolation:
    """A way to run commands. ``argv`` gives what stands in front of a command.

    ``own_files``: brings a root and scratch directories that vanish with it.
    ``namespaced``: has a pid namespace, so its first process takes all others along.
    A hardening to be stacked on tiers (a system call filter, say) belongs into ``argv``.
    """

    tier: str
    argv: Callable[[View], list[str]]
    own_files: bool
    namespaced: bool


def launch(
    isolation: Isolation,
    view: View,
    command: Sequence[str],
    extra_env: Mapping[str, str] | None = None,
    *,
    capture: bool = True,
    on_end: Callable[[], None] | None = None,
) -> Child:
    """Start ``command`` in ``view.workdir``, or in a throw-away directory without one.

    Raises PlatformError if it cannot be started; ``on_end`` is then not called.
    """
    scratch = None if isolation.own_files else make_workdir()
    home, tmpdir = (scratch, scratch) if scratch else (bwrap.HOME, bwrap.TMPDIR)
    cwd = view.workdir or home
    env = environment(view.python, home, tmpdir, cwd) | dict(extra_env or {})
    try:
        return Child(
            [*isolation.argv(view), *command],
            env,
            namespaced=isolation.namespaced,
            cwd="/" if isolation.own_files else cwd,
            workdir=scratch,
            capture=capture,
            on_end=on_end,
        )
    except PlatformError:
        if scratch:
            remove_tree(scratch)
        raise


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
