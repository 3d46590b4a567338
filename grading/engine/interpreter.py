"""Which Python runs candidate programs, and what of the host it needs to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from grading.engine.find_python import candidates, is_of, wanted_version
from grading.engine.outcome import PlatformError

_ASK = (
    "import json, sys; print(json.dumps([getattr(sys, '_base_executable', sys.executable), "
    "'%d.%d.%d' % sys.version_info[:3], sys.base_prefix, sys.base_exec_prefix]))"
)
_ASK_TIMEOUT_S = 30
# The parts of a prefix an interpreter runs from. A prefix may be a home directory.
_PARTS = ("bin", "lib", "lib64")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A base interpreter, never a virtual environment's.

    ``python`` is its path without symbolic links, ``version`` like ``3.11.7``; ``binds`` are
    the directories it needs, in every spelling by which it can be reached.
    """

    python: str
    version: str
    binds: tuple[str, ...]


def resolve_python(spec: str | None = None) -> Interpreter:
    """The base interpreter behind a path, a version like ``3.13``, or a name on PATH.

    None is the one running now. Where to look for the others: :mod:`find_python`; the first
    that answers, and is of the version asked for, is taken. Raises PlatformError when there is
    none, or a path's does not answer.
    """
    if spec is None:
        executable = getattr(sys, "_base_executable", "") or sys.executable
        version = ".".join(map(str, sys.version_info[:3]))
        return _interpreter(executable, version, {sys.base_prefix, sys.base_exec_prefix})
    wanted = wanted_version(spec)
    failure = ""
    for path in candidates(spec):
        try:
            executable, version, *prefixes = _ask(path)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            failure = failure or f"{path} does not answer as a Python interpreter: {error}"
            continue
        if is_of(version, wanted):
            return _interpreter(executable, version, set(prefixes))
    raise PlatformError(
        f"no Python interpreter {spec!r}: {failure or 'none is installed'}. "
        "Give a path, a version like 3.12, or a name on PATH"
    )


def _ask(path: str) -> list[str]:
    """Executable, version and prefixes. Raises OSError, SubprocessError, ValueError."""
    answer = subprocess.run(
        [path, "-I", "-S", "-c", _ASK],
        capture_output=True,
        text=True,
        timeout=_ASK_TIMEOUT_S,
        check=True,
    )
    told: list[str] = json.loads(answer.stdout)
    return told


def _interpreter(executable: str, version: str, prefixes: set[str]) -> Interpreter:
    binds = needed_directories(executable, prefixes)
    return Interpreter(os.path.realpath(executable), version, binds)


def needed_directories(executable: str, prefixes: Iterable[str] = ()) -> tuple[str, ...]:
    """What has to be visible for an interpreter to run, in every spelling that leads to it.

    Of the prefixes and of each link on the way to the real file; a virtual environment's own
    directory is not among them.
    """
    spelled = {*prefixes, *(os.path.dirname(os.path.dirname(hop)) for hop in _hops(executable))}
    found = {
        os.path.join(spelling, part)
        for prefix in spelled
        if not os.path.exists(os.path.join(prefix, "pyvenv.cfg"))
        for spelling in (prefix, os.path.realpath(prefix))
        for part in _PARTS
        if os.path.isdir(os.path.join(spelling, part))
    }
    return tuple(sorted(found))


def _hops(path: str) -> list[str]:
    """The path and every symbolic link target on the way to the real file."""
    hops = [os.path.abspath(path)]
    while os.path.islink(hops[-1]):
        target = os.path.join(os.path.dirname(hops[-1]), os.readlink(hops[-1]))
        if (following := os.path.normpath(target)) in hops:
            break
        hops.append(following)
    return hops
