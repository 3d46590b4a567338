"""Process 1 of a throw-away host: plants canaries, watches one attack, reports what happened.

Reads one JSON order on standard input (``worker``: argument vector; ``env``; ``case``;
``patience_s``) and writes one JSON report on standard output. Being process 1 it is out of reach
of ``kill(-1)``, and it is not dumpable, so an attack can neither end nor read it.
Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

CANARY = "EVALSITE-CANARY"
CANARY_FILES = (
    "/srv/evalsite/db.sqlite3",
    "/srv/evalsite/evalsite/settings.py",
    "/home/grader/.ssh/id_ed25519",
    "/tmp/neighbour-run/generation.py",
    "/home/grader/keep/file",
    "/etc/machine-id",
)
WRITABLE = ("/tmp", "/var/tmp", "/dev/shm", "/srv", "/home", "/run", "/etc", "/work")
OWN_STATE = ("/home/grader/.cache",)
TICK_S = 0.02
MB = 1024 * 1024
PR_SET_DUMPABLE = 4


def plant() -> None:
    for name in CANARY_FILES:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'KEY = "{CANARY}"\n')


class Listeners:
    """Stream sockets on loopback, a path and an abstract name; ``hits`` names those reached."""

    def __init__(self) -> None:
        self.hits: set[str] = set()
        self.names: dict[socket.socket, str] = {}
        for name, family, address in (
            ("tcp", socket.AF_INET, ("127.0.0.1", 6379)),
            ("unix", socket.AF_UNIX, "/run/evalsite-test.sock"),
            ("abstract", socket.AF_UNIX, b"\0evalsite-test"),
        ):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.bind(address)
            listener.listen(64)
            self.names[listener] = name
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            for listener in select.select(list(self.names), [], [])[0]:
                listener.accept()[0].close()
                self.hits.add(self.names[listener])


class Watch:
    """Largest readings so far, of everything in this host but the observer."""

    def __init__(self, worker: int, sibling: int) -> None:
        self.worker = worker
        self.ignored = {os.getpid(), worker, sibling}
        self.worker_before = status_field(worker, "VmRSS")
        self.worker_mb = 0.0
        self.shared_before = shared_memory()
        self.rss_mb = 0.0
        self.procs = 0
        self.disk_mb = 0.0
        self.cores: set[str] = set()

    def look(self) -> None:
        pids = [pid for pid in processes() if pid not in self.ignored]
        shared = max(0, shared_memory() - self.shared_before) / MB
        self.procs = max(self.procs, len(pids))
        self.disk_mb = max(self.disk_mb, shared)
        self.rss_mb = max(self.rss_mb, shared + sum(map(resident, pids)) / MB)
        grown = status_field(self.worker, "VmHWM") - self.worker_before
        self.worker_mb = max(self.worker_mb, grown / MB)
        self.cores.update(core_files())


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def shared_memory() -> int:
    """Bytes in tmpfs files, memfds and System V segments, on the whole machine."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def status_field(pid: int, field: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def command_line(pid: int) -> str:
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes() or Path(f"/proc/{pid}/comm").read_bytes()
    except OSError:
        return ""
    return data.replace(b"\0", b" ").decode(errors="replace").strip()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def core_files() -> list[str]:
    found = []
    for top in ("/tmp", "/var/tmp", "/work"):
        for directory, names, files in os.walk(top, onerror=None):
            depth = directory.count("/") - top.count("/")
            names[:] = names[:50] if depth < 2 else []
            found += [f"{directory}/{name}" for name in files[:200] if name.startswith("core")]
    return found


def listing() -> set[str]:
    """Two levels of every directory that the worker's user may write."""
    found = set()
    for top in WRITABLE:
        for directory, names, files in os.walk(top):
            if directory in OWN_STATE:
                names.clear()
                continue
            found.update(f"{directory}/{name}" for name in [*names, *files])
            if directory.count("/") - top.count("/") >= 1 or len(found) > 5000:
                names.clear()
    return found - set(OWN_STATE)


def digests() -> dict[str, str]:
    found = {}
    for name in CANARY_FILES:
        try:
            found[name] = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        except OSError:
            found[name] = ""
    return found


def verdict_of(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        # Somebody else wrote into the worker's pipe.
        return {"outcome": "garbled", "shown": line.decode(errors="replace")[:200]}


class Worker:
    """The process under attack. Lines of JSON come from its standard output."""

    def __init__(self, argv: list[str], env: dict[str, str], unprotected: bool) -> None:
        self.process = subprocess.Popen(
            # Below the observer, or a fork bomb would starve it.
            ["nice", "-n", "5", *argv] if unprotected else argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd="/home/grader",
        )
        self.pid = self.process.pid
        self.ended = False
        self.buffer = bytearray()
        self.output = self.process.stdout.fileno()
        os.set_blocking(self.output, False)

    def tell(self, line: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self.process.stdin.fileno(), json.dumps(line).encode() + b"\n")

    def hear(self, watch: Watch | None, patience_s: float) -> Any:
        """The next line; None when the worker ends or says nothing for that long."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            line, found, rest = self.buffer.partition(b"\n")
            if found:
                self.buffer = bytearray(rest)
                return verdict_of(bytes(line))
            self.reap()
            if watch:
                watch.look()
            if self.ended and not self.read(0):
                return None
            self.read(TICK_S)
        return None

    def read(self, wait_s: float) -> bool:
        if not select.select([self.output], [], [], wait_s)[0]:
            return False
        data = os.read(self.output, MB)
        self.buffer += data
        return bool(data)

    def reap(self) -> None:
        """Process 1 collects everybody's orphans."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.ended = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.ended = True


def observe(order: Any) -> dict[str, Any]:
    plant()
    listeners = Listeners()
    sibling = subprocess.Popen(["sleep", "600"])
    before, digests_before = listing(), digests()
    worker = Worker(order["worker"], order["env"], not order["case"]["tier"])
    worker.tell(order["case"])
    report: dict[str, Any] = {"ready": worker.hear(None, 30.0), "verdict": None}
    watch = Watch(worker.pid, sibling.pid)
    started = time.monotonic()
    worker.tell("go")
    report["verdict"] = worker.hear(watch, order["patience_s"])
    report["wall_s"] = time.monotonic() - started
    report["worker_dead"] = report["verdict"] is None and worker.ended
    watch.look()
    worker.reap()
    left = [pid for pid in processes() if pid not in watch.ignored and alive(pid)]
    report["live"] = [command_line(pid) for pid in left]
    if left:
        # What an outlived process does later counts as well.
        worker.hear(watch, 4.0)
    worker.tell("end")
    worker.hear(None, 5.0)
    worker.reap()
    report["sibling_dead"] = not alive(sibling.pid)
    report["left"] = sorted(listing() - before)[:50]
    after = digests()
    report["gone"] = [name for name in CANARY_FILES if not after[name]]
    report["changed"] = [
        name for name in CANARY_FILES if after[name] and after[name] != digests_before[name]
    ]
    report["listener_hits"] = sorted(listeners.hits)
    report |= {
        "worker_rss_mb": watch.worker_mb,
        "rss_mb": watch.rss_mb,
        "procs": watch.procs,
        "disk_mb": watch.disk_mb,
        "cores": sorted(watch.cores)[:5],
    }
    return report


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    order = json.load(sys.stdin)
    json.dump(observe(order), sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
