"""What stands in front of a command inside a sandbox: process 1, private mounts, limits.

Its order comes from :mod:`grading.engine.isolation.launch`, by the command line, together with
this code and that of :mod:`grading.engine.confine`, whose names it shares; nothing of the
project is visible where it runs. Written for Python 3.8.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the other one is slow to import
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grading.engine.confine import Kernel, Refused, confine

_PR_SET_PDEATHSIG = 1
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC = 4096, 16384
_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1


def main() -> None:
    """Carry out the order in ``ORDER``, then become the command in the arguments."""
    order: dict[str, Any] = globals()["ORDER"]
    if order.get("die_with_parent"):
        Kernel().call("prctl", _PR_SET_PDEATHSIG, int(_signal.SIGKILL), 0, 0, 0)
    if order.get("mounts"):
        Mounts(Kernel()).arrange(**order["mounts"])
    if order.get("init"):
        start_init(order.get("mounts"))
    if order.get("limits"):
        set_limits(order["limits"])
    confine(order.get("plan"))
    run(sys.argv[1:])


def run(command: list[str]) -> None:
    # The interpreter ignores these two, which exec would hand on.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write("cannot run " + command[0] + ": " + str(error.strerror) + "\n")
    os._exit(127)


def set_limits(limits: list[Any]) -> None:
    import resource

    for which, value in limits:
        resource.setrlimit(which, (value, value))


def start_init(mounted: Any) -> None:
    """Fork: the child returns, this process reaps all others until the child ends.

    Without a process 1 of ours the candidate would be it, whose own signals the kernel drops
    and whose orphans nobody reaps. It can do no more than the candidate, who must not get
    more by way of it: nobody can look into it, and it keeps no capability.
    """
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        if mounted:
            Kernel().drop_capabilities()
        return
    try:
        confine({"private": True, "capabilities": True})
    except ImportError:  # an interpreter without ctypes, which mounts and confines nothing
        pass
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            os._exit(code)


class Mounts:
    """Covers the host's files inside a mount namespace of this process's own."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def arrange(
        self,
        covered: list[str],
        shown: list[str],
        written: list[str],
        scratch: list[Any],
        links: list[Any],
    ) -> None:
        """Empty directories over ``covered``, but for what is ``shown`` or ``written``.

        All is read-only then but ``written`` and the ``scratch`` ones, pairs of a path and
        its size in bytes, which end with the process. ``links`` are pairs of a path in a covered
        directory and what it leads to.
        """
        kept = [(path, descriptor(path)) for path in shown + written]
        for path in covered:
            self.tmpfs(path, 65536)
        for path, handle in kept:
            make_place(path, handle)
            self.mount(descriptor_name(handle).encode(), path, b"", _MS_BIND | _MS_REC)
        for path, _ in scratch:
            os.makedirs(path, exist_ok=True)
        for path, goal in links:
            os.symlink(goal, path)
        self.proc()
        self.set_read_only("/", True)
        for path in written:
            self.set_read_only(path, False)
        for path, size in scratch:
            self.tmpfs(path, size)
        # Where it started lies below the mounts now.
        os.chdir(os.environ["PWD"])
        for _, handle in kept:
            os.close(handle)

    def proc(self) -> None:
        """One of its own, or none: the host's would show the host's processes."""
        try:
            self.mount(b"proc", "/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        except Refused:  # a container may mask parts of /proc, which forbids new ones
            self.tmpfs("/proc", 65536)

    def tmpfs(self, path: str, size: int) -> None:
        options = b"mode=0700,size=%d,nr_inodes=%d" % (size, max(1024, size // 4096))
        self.mount(b"tmpfs", path, b"tmpfs", _MS_NOSUID | _MS_NODEV, options)

    def mount(
        self, source: bytes, path: str, kind: bytes, flags: int, options: bytes = b""
    ) -> None:
        self.kernel.call("mount", source, os.fsencode(path), kind, flags, options)

    def set_read_only(self, path: str, on: bool) -> None:
        """mount_setattr(2): of this mount and those beneath, or of this one alone."""
        set_and_clear = ((_MOUNT_ATTR_RDONLY, 0) if on else (0, _MOUNT_ATTR_RDONLY)) + (0, 0)
        attributes = b"".join(part.to_bytes(8, sys.byteorder) for part in set_and_clear)
        place = os.fsencode(path)
        flags = _AT_RECURSIVE if on else 0
        self.kernel.call(
            "syscall", _MOUNT_SETATTR, _AT_FDCWD, place, flags, attributes, len(attributes)
        )


def descriptor(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def descriptor_name(handle: int) -> str:
    return "/proc/self/fd/" + str(handle)


def make_place(path: str, handle: int) -> None:
    """Something at ``path`` to mount a file or a directory on, unless there is."""
    if os.path.exists(path):
        return
    if os.path.isdir(descriptor_name(handle)):
        os.makedirs(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
