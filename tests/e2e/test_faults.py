"""Two workers, 1,640 samples, and the faults the pipeline promises to survive.

A worker is killed hard in the middle of a sample, later the broker is emptied, killed and started
again. Everything is the real thing: commands as processes, sandboxes, HumanEval. SQLite, or a new
database on the PostgreSQL server that EVALSITE_DATABASE_URL names.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import redis

from evalsite import broker, spawn

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parents[2]
UPLOAD = "data/derived/upload_mistral7b_humaneval_n10.jsonl.gz"
SAMPLES = 1_640
PASSES = 533  # pass@1 of 0.325: no fault changed a verdict
GRADING_S = 900.0
AFTER_LAST_FAULT_S = 60.0
POLL_S = 0.05

ACCEPT = """
import sys
import django
django.setup()
from django.contrib.auth import get_user_model
from grading import uploads
from grading.models import BenchmarkVersion
path = sys.argv[1]
with open(path, "rb") as stream:
    uploads.accept(
        stream,
        "upload.jsonl.gz",
        BenchmarkVersion.objects.get(benchmark__slug="humaneval"),
        "m",
        get_user_model().objects.create_user("uploader"),
        {},
    )
"""


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


@pytest.fixture
def database_url() -> Iterator[str]:
    """Empty for SQLite, else the URL of a new database that is dropped afterwards."""
    server = os.environ.get("EVALSITE_DATABASE_URL", "")
    if not server:
        yield ""
        return
    name = f"faults_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.fixture
def env(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment of an instance of its own; this process looks at the same data directory."""
    monkeypatch.setenv("EVALSITE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("EVALSITE_DATABASE_URL", database_url)
    monkeypatch.delenv("EVALSITE_REDIS_URL", raising=False)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    return dict(os.environ)


@pytest.fixture
def server(env: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The broker's processes, the last one running."""
    processes = [broker.start()]
    yield processes
    for process in processes:
        broker.stop(process)


@pytest.fixture
def instance(
    env: dict[str, str],
    server: list[subprocess.Popen[bytes]],
    database_url: str,
    shared: Path,
    tmp_path: Path,
) -> Iterator[Instance]:
    for arguments in (
        ["manage.py", "migrate", "--verbosity", "0"],
        ["manage.py", "import_benchmark", "humaneval", "--skip-references"],
        ["-c", ACCEPT, str(shared / UPLOAD)],
    ):
        subprocess.run([sys.executable, *arguments], cwd=ROOT, env=env, check=True, timeout=300)
    store = Store(tmp_path / "data", database_url)
    assert store.number("SELECT count(*) FROM grading_sample") == SAMPLES
    instance = Instance(store, env, tmp_path)
    yield instance
    instance.stop()


def kill_worker_in_flight(instance: Instance, slot: int) -> tuple[int, str]:
    """SIGKILL a worker and its horse while a sample runs; returns the sample and the worker."""
    worker = f"w{slot}-{instance.workers[slot].pid}"
    in_flight = (
        "SELECT s.id FROM grading_sample s JOIN grading_chunk c ON c.id = s.chunk_id "
        f"WHERE c.worker = '{worker}' AND c.state = 'running' "
        "AND s.state = 'queued' AND s.started_at IS NOT NULL"
    )
    found: list[int] = []

    def killed() -> bool:
        with instance.frozen(instance.workers[slot]):
            found.extend(row[0] for row in instance.store.rows(in_flight))
            if found:
                for pid in family(instance.workers[slot].pid):
                    os.kill(pid, signal.SIGKILL)
                instance.workers[slot].wait()
        return bool(found)

    instance.wait(killed, 30, f"a sample in flight on {worker}")
    assert instance.workers[slot].returncode == -signal.SIGKILL
    assert len(found) == 1
    return found[0], worker


def restart_broker_empty(instance: Instance, server: list[subprocess.Popen[bytes]]) -> None:
    """FLUSHALL, SIGKILL, files deleted, a new process on the same port with nothing in it."""
    url = broker.running_url()
    assert url is not None
    port = urlsplit(url).port
    everyone = [*instance.workers.values(), instance.sweep]
    with instance.frozen(*everyone), redis.Redis.from_url(url) as client:
        assert client.dbsize() > 0
        client.flushall()
        server[-1].kill()
        server[-1].wait()
        shutil.rmtree(broker.store())
        server.append(broker.start(broker.command(port)))
        assert broker.running_url() == url
        assert client.info("server")["process_id"] == server[-1].pid != server[-2].pid
        assert client.dbsize() == 0


def test_every_sample_gets_one_verdict_whatever_dies(
    instance: Instance, server: list[subprocess.Popen[bytes]]
) -> None:
    store = instance.store

    def progress(share: float) -> Callable[[], bool]:
        return lambda: store.decided() >= share * SAMPLES

    instance.wait(progress(0.75), GRADING_S, "75 % graded")
    sample, killed = kill_worker_in_flight(instance, 0)
    instance.wait(progress(0.93), GRADING_S, "93 % graded")
    restart_broker_empty(instance, server)
    last_fault = time.monotonic()
    done = "SELECT count(*) FROM grading_submission WHERE state = 'done'"
    instance.wait(lambda: store.number(done) == 1, AFTER_LAST_FAULT_S, "all graded")
    assert time.monotonic() - last_fault <= AFTER_LAST_FAULT_S

    by_state = dict(store.rows("SELECT state, count(*) FROM grading_sample GROUP BY state"))
    assert by_state == {"done": SAMPLES}
    assert store.number("SELECT count(*) FROM grading_attempt") == SAMPLES
    current = "SELECT count(DISTINCT current_attempt_id) FROM grading_sample"
    assert store.number(current) == SAMPLES
    assert store.number("SELECT count(DISTINCT sample_id) FROM grading_attempt") == SAMPLES
    assert store.rows("SELECT sum(n), sum(c) FROM grading_taskscore") == [(SAMPLES, PASSES)]
    assert store.number("SELECT count(*) FROM grading_chunk WHERE state <> 'done'") == 0

    for slot in (0, 1):
        mine = f"SELECT count(*) FROM grading_attempt WHERE worker LIKE 'w{slot}-%'"
        assert store.number(mine) >= 0.3 * SAMPLES

    ((kind, worker, losses),) = store.rows(
        "SELECT a.kind, a.worker, s.losses FROM grading_attempt a "
        f"JOIN grading_sample s ON s.id = a.sample_id WHERE s.id = {sample}"
    )
    assert (kind, losses) == ("retry", 1)
    assert worker != killed
