"""Tiers ``unshare`` and ``unshare-root``: namespaces made by util-linux's tool.

No network, no sight of other processes, no shared memory of others. Where the kernel lets it
mount, the host's files are covered but for the system's and the interpreter's; else they stay
readable to the user's extent.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from typing import Any

from grading.engine.isolation.bwrap import SYSTEM_FILES
from grading.engine.isolation.view import View
from grading.engine.limits import WORK_BYTES

TOOL = "unshare"
KEEP_USER = "--map-current-user"
AS_ROOT = "--map-root-user"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# As bwrap makes them, and every Linux has them.
LINKS = [
    [f"/dev/{name}", f"/proc/self/fd/{fd}"] for fd, name in enumerate(("stdin", "stdout", "stderr"))
]
# What of the host's root stays in sight; /proc is replaced.
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "proc")


def argv(view: View, user: str, mounts: bool = False) -> list[str]:
    """The arguments in front of the command; ``user`` is KEEP_USER or AS_ROOT.

    With ``mounts`` the command starts with the capabilities that mounting takes.
    """
    # Whoever is not root inside would lose them on the way.
    keep = ["--keep-caps"] if "--keep-caps" in _help() else []
    return [
        TOOL,
        "--user",
        user,
        "--net",
        "--ipc",
        "--uts",
        *(["--mount", *keep] if mounts else []),
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        "--",
    ]


def mounts(view: View, scratch: str | None) -> dict[str, Any]:
    """The order for :class:`grading.engine.front.Mounts`."""
    kept = [*view.binds, *view.extra, *([view.workdir] if view.workdir else [])]
    roots = sorted(entry.path for entry in os.scandir("/") if _is_covered(entry))
    hidden = [path for path in view.hidden if os.path.isdir(path) and not _below(path, roots)]
    covered = roots + [path for path in hidden if path not in kept]
    shown = [
        path
        for path in (*SYSTEM_FILES, *view.binds, *view.extra, *DEVICES)
        if _below(path, covered)
    ]
    return {
        "covered": covered,
        "shown": [path for path in shown if os.path.exists(path)],
        "written": [view.workdir] if view.workdir else [],
        "scratch": [[path, WORK_BYTES] for path in ("/dev/shm", scratch) if path],
        "links": LINKS,
    }


def _is_covered(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.name not in _SYSTEM


def _below(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


@cache
def _help() -> str:
    try:
        answer = subprocess.run([TOOL, "--help"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout
