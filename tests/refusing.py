"""Run a command on a host that lets programs confine little.

``python tests/refusing.py [--also seccomp] -- make demo ONCE=1``: bubblewrap and unshare are not
on PATH; the calls for namespaces, mounts and Landlock fail for the command and all it starts,
as in a container with a strict profile. ``--also seccomp`` refuses filters of its own, too.
Standard library only; Linux only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import tempfile
from collections.abc import Sequence

HIDDEN = ("bwrap", "unshare")
EPERM = 0x00050000 | 1
ENOSYS = 0x00050000 | 38
ALLOW = 0x7FFF0000
NAMESPACE_FLAGS = 0x7E020000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
# unshare, setns, mount, clone, prctl
NUMBERS = {"x86_64": (272, 308, 165, 56, 157), "aarch64": (97, 268, 40, 220, 167)}
LANDLOCK = (444, 445, 446)
CLONE3 = 435


def program(refuse_filters: bool) -> bytes:
    """Classic BPF, see seccomp(2): each line is a code, two jumps and a constant."""
    unshare, setns, mount, clone, prctl = NUMBERS[platform.machine()]
    lines = [(0x20, 0, 0, 0)]
    for number in (unshare, setns, mount, *LANDLOCK):
        lines += [(0x15, 0, 1, number), (0x06, 0, 0, EPERM)]
    lines += [(0x15, 0, 1, CLONE3), (0x06, 0, 0, ENOSYS)]
    lines += [(0x15, 0, 4, clone), (0x20, 0, 0, 16), (0x45, 0, 1, NAMESPACE_FLAGS)]
    lines += [(0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
    if refuse_filters:
        lines += [(0x15, 0, 4, prctl), (0x20, 0, 0, 16), (0x15, 0, 1, PR_SET_SECCOMP)]
        lines += [(0x06, 0, 0, EPERM), (0x06, 0, 0, ALLOW)]
    lines.append((0x06, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def refuse(refuse_filters: bool = False) -> None:
    """Put this process and all it starts under the filter, for good."""
    code = program(refuse_filters)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, 2, header, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


def path_without(hidden: Sequence[str], directory: str) -> str:
    """A PATH of one directory that links to every program but the hidden ones."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isdir(folder):
            continue
        for name in set(os.listdir(folder)) - set(hidden):
            link = os.path.join(directory, name)
            if not os.path.lexists(link):
                os.symlink(os.path.join(os.path.abspath(folder), name), link)
    return directory


def main(arguments: list[str]) -> int:
    refuse_filters = arguments[:2] == ["--also", "seccomp"]
    command = arguments[2:] if refuse_filters else arguments
    if command[:1] != ["--"] or not command[1:]:
        sys.stderr.write("usage: refusing.py [--also seccomp] -- COMMAND ...\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="refusing-") as directory:
        os.environ["PATH"] = path_without(HIDDEN, directory)
        os.environ.pop("EVALSITE_BWRAP", None)
        pid = os.fork()
        if pid == 0:
            refuse(refuse_filters)
            os.execvp(command[1], command[1:])
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
