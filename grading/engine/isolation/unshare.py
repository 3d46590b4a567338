"""Tiers ``unshare`` and ``unshare-root``: namespaces without a file system of their own.

No network, no sight of other processes by number, no shared memory of others; the files of
the host stay readable to the user's extent.
"""

from __future__ import annotations

import shutil

from grading.engine.isolation import rlimit
from grading.engine.isolation.view import View

KEEP_USER = "--map-current-user"
AS_ROOT = "--map-root-user"

# Process 1 of the namespace. Without one the candidate itself would be process 1, whose own
# signals the kernel drops and whose orphans nobody reaps.
_INIT = """
import _signal, os, sys
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
pid = os.fork()
if pid == 0:
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.stderr.write("cannot run %s: %s\\n" % (sys.argv[1], error.strerror))
    os._exit(127)
while True:
    ended, status = os.wait()
    if ended == pid:
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        os._exit(code)
"""


def argv(view: View, user: str) -> list[str]:
    """The arguments in front of the command; ``user`` is KEEP_USER or AS_ROOT."""
    return [
        *rlimit.argv(view),
        shutil.which("unshare") or "unshare",
        "--user",
        user,
        "--net",
        "--ipc",
        "--uts",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        "--",
        *(view.python, "-s", "-B", "-S", "-c", _INIT),
    ]
