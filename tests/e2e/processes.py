"""An instance as processes that a test can kill, and its database seen from outside."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from evalsite import spawn

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05


class Store:
    """Reads the instance's database from outside, as it is at that moment."""

    def __init__(self, directory: Path, url: str) -> None:
        self._file = directory / "db.sqlite3"
        self._url = url

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self._url:
            with psycopg.connect(self._url, autocommit=True) as connection:
                return connection.execute(sql.encode()).fetchall()
        connection = sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=20)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def number(self, sql: str) -> int:
        return int(self.rows(sql)[0][0])

    def decided(self) -> int:
        return self.number("SELECT count(*) FROM grading_sample WHERE state <> 'queued'")


class Instance:
    """What a supervisor would run: a sweep and two worker slots that are filled again."""

    def __init__(self, store: Store, env: dict[str, str], logs: Path) -> None:
        self.store = store
        self.env = env
        self.logs = logs
        self.sweep = self._start("sweep", {})
        self.workers = {slot: self._worker(slot) for slot in (0, 1)}

    def _start(self, command: str, extra: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.logs / f"{command}.log").open("ab") as log:
            return subprocess.Popen(
                spawn.wrapped([sys.executable, "manage.py", command]),
                cwd=ROOT,
                env=self.env | extra,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _worker(self, slot: int) -> subprocess.Popen[bytes]:
        return self._start("worker", {"EVALSITE_WORKER_SLOT": str(slot)})

    def respawn(self) -> None:
        for slot, process in self.workers.items():
            if process.poll() is not None:
                self.workers[slot] = self._worker(slot)

    def wait(self, until: Callable[[], bool], within_s: float, what: str) -> None:
        """Poll ``until``, filling worker slots meanwhile."""
        deadline = time.monotonic() + within_s
        while not until():
            assert time.monotonic() < deadline, f"not in {within_s:g} s: {what}; {self.said()}"
            assert self.sweep.poll() is None, self.said()
            self.respawn()
            time.sleep(POLL_S)

    def said(self) -> str:
        logs = sorted(self.logs.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-3000:]}" for log in logs)

    @contextmanager
    def frozen(self, *processes: subprocess.Popen[bytes]) -> Iterator[None]:
        """The processes and their children do nothing inside the block."""
        pids = [pid for process in processes for pid in family(process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        processes = [*self.workers.values(), self.sweep]
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait(60)


def family(pid: int) -> list[int]:
    """A worker and its horse, if it has one now."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def manage(env: dict[str, str], *arguments: str) -> None:
    """A command that ends well."""
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=env, check=True, timeout=300)


def kill_worker_in_flight(instance: Instance, slot: int, in_flight: str) -> tuple[int, str]:
    """SIGKILL a worker and its horse while a sample runs; returns the sample and the worker.

    ``in_flight`` is SQL that finds the samples at work on the worker named ``{worker}``.
    """
    worker = f"w{slot}-{instance.workers[slot].pid}"
    found: list[int] = []

    def killed() -> bool:
        with instance.frozen(instance.workers[slot]):
            found.extend(row[0] for row in instance.store.rows(in_flight.format(worker=worker)))
            if found:
                for pid in family(instance.workers[slot].pid):
                    os.kill(pid, signal.SIGKILL)
                instance.workers[slot].wait()
        return bool(found)

    instance.wait(killed, 30, f"a sample in flight on {worker}")
    assert instance.workers[slot].returncode == -signal.SIGKILL
    assert len(found) == 1
    return found[0], worker
