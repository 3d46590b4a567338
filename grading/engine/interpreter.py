"""Which Python runs candidate programs, and what of the host it needs to see."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

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

    None is the one running now. A version is asked of ``uv`` where present, else looked up
    as ``python3.13``. Raises PlatformError when there is none or it does not answer.
    """
    if spec is None:
        executable = getattr(sys, "_base_executable", "") or sys.executable
        version = ".".join(map(str, sys.version_info[:3]))
        return _interpreter(executable, version, {sys.base_prefix, sys.base_exec_prefix})
    path = _find(spec)
    try:
        answer = subprocess.run(
            [path, "-I", "-S", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=True,
        )
        executable, version, *prefixes = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise PlatformError(f"{path} does not answer as a Python interpreter: {error}") from error
    return _interpreter(executable, version, set(prefixes))


def _find(spec: str) -> str:
    if os.sep in spec:
        found: str | None = spec if os.access(spec, os.X_OK) else None
    elif re.fullmatch(r"\d+(\.\d+)*", spec):
        found = _ask_uv(spec) or shutil.which(f"python{spec}")
    else:
        found = shutil.which(spec)
    if not found:
        raise PlatformError(
            f"no Python interpreter {spec!r}: give a path, a version like 3.12, or a name on PATH"
        )
    return found


def _ask_uv(version: str) -> str | None:
    uv = shutil.which("uv")
    if not uv:
        return None
    command = [uv, "python", "find", "--system", "--no-python-downloads", version]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _interpreter(executable: str, version: str, prefixes: set[str]) -> Interpreter:
    hops = _hops(executable)
    spelled = prefixes | {os.path.dirname(os.path.dirname(hop)) for hop in hops}
    binds = {
        os.path.join(spelling, part)
        for prefix in spelled
        if not os.path.exists(os.path.join(prefix, "pyvenv.cfg"))
        for spelling in (prefix, os.path.realpath(prefix))
        for part in _PARTS
        if os.path.isdir(os.path.join(spelling, part))
    }
    return Interpreter(os.path.realpath(executable), version, tuple(sorted(binds)))


def _hops(path: str) -> list[str]:
    """The path and every symbolic link target on the way to the real file."""
    hops = [os.path.abspath(path)]
    while os.path.islink(hops[-1]):
        target = os.path.join(os.path.dirname(hops[-1]), os.readlink(hops[-1]))
        if (following := os.path.normpath(target)) in hops:
            break
        hops.append(following)
    return hops
