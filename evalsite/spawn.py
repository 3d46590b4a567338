"""Start a program that cannot outlive the process that started it.

``python spawn.py PARENT SIGNAL PROGRAM ARGUMENT...`` asks the kernel to send ``SIGNAL`` when
process ``PARENT`` ends, then becomes ``PROGRAM``. A wrapper rather than a ``preexec_fn``: the
supervisor has threads, and code between fork and exec could deadlock there.
Standard library only, and no import of the project, so that it starts from any directory.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, signal_number: int = signal.SIGKILL) -> None:
    """Ask for ``signal_number`` when ``parent`` ends; exit now if it has ended already.

    Linux only; elsewhere a supervisor that is killed hard leaves its children to be stopped
    by hand. The request survives ``exec`` and is not inherited by forked children. To the
    kernel the parent is the *thread* that forked: it has to live as long as the child.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def wrapped(argv: Sequence[str], signal_number: int = signal.SIGKILL) -> list[str]:
    """The command line that starts ``argv`` bound to the life of the calling process."""
    wrapper = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    return [*wrapper, str(os.getpid()), str(int(signal_number)), *argv]


def main() -> None:
    parent, signal_number, program, *arguments = sys.argv[1:]
    die_with_parent(int(parent), int(signal_number))
    os.execvp(program, [program, *arguments])


if __name__ == "__main__":
    main()
