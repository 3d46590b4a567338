"""Tier ``rlimit``: resource limits, a clean environment and process-tree killing, no more.

The limits themselves apply in every tier.
"""

from __future__ import annotations

import os
import resource
import shutil

from grading.engine.isolation.view import View
from grading.engine.limits import Limits

# Run by the interpreter in front of a command where setpriv is missing: PR_SET_PDEATHSIG.
_DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"
)
# Run by the interpreter in front of a command that does not limit itself. The interpreter
# ignores two signals, which exec would hand on; `signal` itself would import half of enum.
_SET_LIMITS = """
import _signal, os, resource, sys
for pair in sys.argv[1].split(","):
    which, value = map(int, pair.split(":"))
    resource.setrlimit(which, (value, value))
_signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
_signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.stderr.write("cannot run %s: %s\\n" % (sys.argv[2], error.strerror))
os._exit(127)
"""


def argv(view: View) -> list[str]:
    """The arguments in front of the command: it dies when the thread that started it ends."""
    if setpriv := shutil.which("setpriv"):
        return [setpriv, "--pdeathsig", "KILL", "--"]
    return [view.python, "-s", "-B", "-S", "-c", _DIE_WITH_PARENT]


def rlimits(limits: Limits, running: int = 0) -> list[tuple[int, int]]:
    """(resource number, value) pairs to set as soft and hard limit inside the process.

    ``running`` is how many processes and threads count against the process limit already.
    A value never exceeds the hard limit in force here, since raising that is not allowed.
    """
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file_size_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes + running),
    ]
    if limits.address_space_bytes is not None:
        wanted.append((resource.RLIMIT_AS, limits.address_space_bytes))
    return [(which, _at_most(value, resource.getrlimit(which)[1])) for which, value in wanted]


def _at_most(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def limited(command: list[str], limits: list[tuple[int, int]], python: str) -> list[str]:
    """The command behind a front that sets the limits; exit status 127 if it cannot run."""
    pairs = ",".join(f"{which}:{value}" for which, value in limits)
    return [python, "-s", "-B", "-S", "-c", _SET_LIMITS, pairs, *command]


def running_tasks() -> int:
    """Processes and threads of this user now: what RLIMIT_NPROC counts on this host."""
    total = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        total += _own_threads(f"/proc/{name}")
    return total


def _own_threads(directory: str) -> int:
    try:
        if os.stat(directory).st_uid != os.getuid():
            return 0
        return len(os.listdir(f"{directory}/task"))
    except OSError:
        return 0
