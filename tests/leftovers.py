"""Run a command and fail if it leaves a process or a temporary file behind.

``python tests/leftovers.py -- make demo ONCE=1`` exits with the command's own code, or with 70
and a list where something is left. ``--self-test`` plants a process and a file: it must fail.
Standard library only; Linux only.

Processes are found in two ways: this script adopts every orphan below it (a process with a clean
environment too), and the command's environment carries a marker.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MARKER = "EVALSITE_RUN_MARKER"
LEFT = 70
PR_SET_CHILD_SUBREAPER = 36
# A process that was told to end may need a moment.
GRACE_S = 2.0

PLANT = """
import os, subprocess, sys, tempfile
tempfile.mkstemp(prefix="planted-")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                 env={}, start_new_session=True)
"""


@dataclass(frozen=True, slots=True)
class Report:
    """How the command ended, and what it left: process descriptions and file names."""

    code: int
    processes: list[str]
    files: list[str]


def run(command: Sequence[str]) -> Report:
    """Run ``command`` with a marker and a temporary directory of its own."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    marker = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="leftovers-") as directory:
        code = subprocess.call(command, env={**os.environ, MARKER: marker, "TMPDIR": directory})
        left = _settled(marker)
        processes = [f"{pid} {_describe(pid)}" for pid in left]
        files = sorted(entry.name for entry in Path(directory).iterdir())
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        _reap(0)
    return Report(code, processes, files)


def _settled(marker: str) -> list[int]:
    deadline = time.monotonic() + GRACE_S
    while True:
        _reap()
        left = sorted(_descendants() | _marked(marker))
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def _reap(options: int = os.WNOHANG) -> None:
    """Collect adopted processes that have ended; with 0, wait until all have."""
    try:
        while os.waitpid(-1, options)[0]:
            pass
    except ChildProcessError:
        pass


def _processes() -> dict[int, int]:
    """Parent by process id, without processes that have ended and wait to be collected."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(entry.name)] = int(parent)
    return parents


def _descendants() -> set[int]:
    parents = _processes()
    found = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {os.getpid()}


def _marked(marker: str) -> set[int]:
    text = f"{MARKER}={marker}".encode()
    return {pid for pid in _processes() if text in _read(pid, "environ").split(b"\0")}


def _describe(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--self-test"]:
        command: Sequence[str] = [sys.executable, "-c", PLANT]
    elif arguments[:1] == ["--"] and arguments[1:]:
        command = arguments[1:]
    else:
        sys.stderr.write("usage: leftovers.py -- COMMAND ... | --self-test\n")
        return 2
    report = run(command)
    for line in report.processes:
        sys.stderr.write(f"left behind: process {line}\n")
    for name in report.files:
        sys.stderr.write(f"left behind: temporary file {name}\n")
    if report.processes or report.files:
        return LEFT
    sys.stderr.write("leftovers: none\n")
    return report.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
