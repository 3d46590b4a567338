"""Two workers, 1,640 samples, and the faults the pipeline promises to survive.

A worker is killed hard in the middle of a sample, later the broker is emptied, killed and started
again. Everything is the real thing: commands as processes, sandboxes, HumanEval. SQLite, or a new
database on the PostgreSQL server that EVALSITE_DATABASE_URL names.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from evalsite import broker
from tests.e2e.processes import Instance, Store, kill_worker_in_flight, manage

pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parents[2]
UPLOAD = "data/derived/upload_mistral7b_humaneval_n10.jsonl.gz"
SAMPLES = 1_640
PASSES = 533  # pass@1 of 0.325: no fault changed a verdict
GRADING_S = 900.0
AFTER_LAST_FAULT_S = 60.0
IN_FLIGHT = (
    "SELECT s.id FROM grading_sample s JOIN grading_chunk c ON c.id = s.chunk_id "
    "WHERE c.worker = '{worker}' AND c.state = 'running' "
    "AND s.state = 'queued' AND s.started_at IS NOT NULL"
)

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


@pytest.fixture
def instance(
    env: dict[str, str],
    server: list[subprocess.Popen[bytes]],
    database_url: str,
    shared: Path,
    tmp_path: Path,
) -> Iterator[Instance]:
    manage(env, "manage.py", "import_benchmark", "humaneval", "--skip-references")
    manage(env, "-c", ACCEPT, str(shared / UPLOAD))
    store = Store(tmp_path / "data", database_url)
    assert store.number("SELECT count(*) FROM grading_sample") == SAMPLES
    instance = Instance(store, env, tmp_path)
    yield instance
    instance.stop()


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
    sample, killed = kill_worker_in_flight(instance, 0, IN_FLIGHT)
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
