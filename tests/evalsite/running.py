"""A real `manage.py up` for tests: start it, read its banner, look at its processes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_S = 60
TASKS = [
    {
        "task_id": f"add/{number}",
        "category": "code_exec",
        "prompt": f"Write add{number}(a, b).",
        "targets": [f"add{number}(1, 2) == 3", f"add{number}(2, 2) == 4"],
        "metric_name": "code_exec",
        "post_process": "extract_code_block",
        "metadata": {},
    }
    for number in (1, 2)
]
# Programs for them, whole and half right, to be formatted with the number of the task.
RIGHT = "```python\ndef add{0}(a, b):\n    return a + b\n```"
HALF = "def add{0}(a, b):\n    return a * b\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def manage(data: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a management command on ``data`` to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(data),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def with_sums(directory: Path) -> Path:
    """A data directory that holds the benchmark ``add`` of `TASKS`."""
    tasks = directory / "tasks.jsonl"
    tasks.write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    done = manage(directory / "data", "import_benchmark", str(tasks), "--slug", "add")
    assert done.returncode == 0, done.stdout + done.stderr
    return directory / "data"


def environment(data: Path) -> dict[str, str]:
    outside = ("EVALSITE_REDIS_URL", "EVALSITE_DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if name not in outside}
    return {**kept, "EVALSITE_DATA_DIR": str(data), "PYTHONUNBUFFERED": "1"}


class Up:
    """One running instance; :meth:`kill` and :meth:`stop` end it."""

    def __init__(self, data: Path, *arguments: str) -> None:
        self.data = data
        self.port = free_port()
        command = ["manage.py", "up", "--port", str(self.port), "--workers", "1", *arguments]
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment(data),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.banner = self._read_banner()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def _read_banner(self) -> dict[str, str]:
        """Label to value; ends with the password's line."""
        assert self.process.stdout is not None
        found: dict[str, str] = {}
        for line in self.process.stdout:
            label, value = line[2:18].strip(), line[18:].strip()
            found[label] = value
            if label == "Password":
                return found
        self._reader.join(5)
        raise AssertionError(f"no banner: {found}\n{''.join(self.log)}")

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Ask it to end; returns its exit code."""
        self.process.send_signal(signal_number)
        return self._ended()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(60)
        self._reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


def tree(pid: int) -> dict[int, str]:
    """Command lines of the living descendants of ``pid``."""
    parents, lines = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
                lines[int(entry.name)] = line.replace(b"\0", b" ").decode(errors="replace")
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return {child: lines[child] for child in found - {pid}}


def alive(pids: Sequence[int]) -> list[int]:
    """Those that run still; one that has ended and waits to be collected does not."""
    left = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            left.append(pid)
    return left


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Processes of others send no event: look until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
