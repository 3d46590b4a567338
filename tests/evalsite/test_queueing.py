"""The queue with a real broker: what a worker runs, and what it refuses to run."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import rq
from django.db import transaction
from pytest_django import Settings
from rq.job import Job as PlainJob
from rq.job import JobStatus
from rq.serializers import JSONSerializer

from evalsite import broker, queueing
from tests.grading.pipeline_records import work

pytestmark = [
    pytest.mark.broker,
    # A worker forks beside the thread that listens for commands, as it does in production.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


@pytest.fixture
def client(broker_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker_url) as client:
        yield client


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[str]]:
    """Replace both job functions by ones that note their arguments and process, and read that."""
    from grading import jobs

    notes = tmp_path / "calls"

    def note(*ids: int) -> None:
        with notes.open("a") as stream:
            stream.write(f"{ids[0]} {os.getpid()} {queueing.worker_name()}\n")

    monkeypatch.setattr(jobs, "grade_chunk", note)
    monkeypatch.setattr(jobs, "grade_references", note)
    return lambda: notes.read_text().splitlines() if notes.exists() else []


@pytest.mark.django_db(transaction=True)
def test_a_job_runs_once_in_a_horse_of_its_own(
    client: redis.Redis, calls: Callable[[], list[str]]
) -> None:
    queueing.enqueue(queueing.GRADE_CHUNK, 12)
    queueing.enqueue(queueing.GRADE_REFERENCES, 7)
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == {12}
    assert queueing.queued_ids(queueing.GRADE_REFERENCES) == {7}
    work("w3-44")
    seen = [line.split() for line in calls()]
    assert [number for number, _, _ in seen] == ["12", "7"]
    assert {name for _, _, name in seen} == {"w3-44"}
    assert str(os.getpid()) not in {pid for _, pid, _ in seen}
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == set()
    assert queueing.queued_ids(queueing.GRADE_REFERENCES) == set()
    assert not client.keys("rq:job:*")  # nothing is kept of a finished job


@pytest.mark.django_db(transaction=True)
def test_what_is_to_come_before_each_job_happens_in_the_workers_own_process(
    client: redis.Redis, calls: Callable[[], list[str]]
) -> None:
    seen: list[int] = []
    queueing.enqueue(queueing.GRADE_CHUNK, 1)
    queueing.enqueue(queueing.GRADE_CHUNK, 2)
    work(before_fork=lambda: seen.append(len(calls())))
    assert seen == [0, 1]


@pytest.mark.django_db(transaction=True)
def test_enqueue_waits_for_the_commit_and_a_rollback_leaves_no_job(client: redis.Redis) -> None:
    with transaction.atomic():
        queueing.enqueue(queueing.GRADE_CHUNK, 1)
        assert queueing.queued_ids(queueing.GRADE_CHUNK) == set()
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == {1}
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        queueing.enqueue(queueing.GRADE_CHUNK, 2)
        raise ZeroDivisionError
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == {1}
    assert len(client.keys("rq:job:*")) == 1


def test_only_listed_functions_are_enqueued() -> None:
    with pytest.raises(ValueError, match=r"os\.system"):
        queueing.enqueue("os.system", 1)


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_does_not_fail_the_request(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    queueing.enqueue(queueing.GRADE_CHUNK, 5)
    assert "grade_chunk 5 is not in the queue yet" in caplog.text
    assert not queueing.ping()


def inject(client: redis.Redis, job_id: str, data: bytes, **fields: str) -> None:
    """Write a job as somebody with the broker's password could."""
    job = PlainJob(id=job_id, connection=client, serializer=JSONSerializer)
    job.origin = "grade"
    job.data = data
    job.timeout = 60
    job.set_status(JobStatus.QUEUED)
    stored: dict[Any, Any] = job.to_dict(include_meta=False) | {"data": data} | fields
    client.hset(job.key, mapping=stored)
    client.rpush("rq:queue:grade", job_id)
    client.sadd("rq:queues", "rq:queue:grade")


def status(client: redis.Redis, job_id: str) -> str:
    value = client.hget(f"rq:job:{job_id}", "status")
    return value.decode() if isinstance(value, bytes) else "gone"


class Touch:
    """Unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attack", ["pickle", "function", "method", "text argument", "keyword"])
def test_foreign_jobs_are_refused(
    attack: str, client: redis.Redis, calls: Callable[[], list[str]], tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    dump = JSONSerializer.dumps
    data = {
        "pickle": pickle.dumps(("os.getcwd", None, (Touch(mark),), {})),
        "function": dump(("os.mkdir", None, (str(mark),), {})),
        "method": dump(("format", "text", (), {})),
        "text argument": dump((queueing.GRADE_CHUNK, None, ("1; DROP TABLE",), {})),
        "keyword": dump((queueing.GRADE_CHUNK, None, (1,), {"chunk_id": 2})),
    }[attack]
    inject(client, "foreign", data)
    queueing.enqueue(queueing.GRADE_CHUNK, 3)
    work()
    assert not mark.exists()
    assert status(client, "foreign") == "failed"
    assert [line.split()[0] for line in calls()] == ["3"]  # and the worker goes on


@pytest.mark.django_db(transaction=True)
def test_the_default_worker_would_have_run_the_pickle(client: redis.Redis, tmp_path: Path) -> None:
    """The attack is real: without our classes the same bytes do run."""
    mark = tmp_path / "executed"
    inject(client, "foreign", pickle.dumps(("os.getcwd", None, (Touch(mark),), {})))
    queue = rq.Queue("grade", connection=client)
    job = queue.fetch_job("foreign")
    assert job is not None and job.func_name == "os.getcwd"
    assert mark.exists()


@pytest.mark.django_db(transaction=True)
def test_callbacks_and_webhooks_are_ignored(
    client: redis.Redis, calls: Callable[[], list[str]]
) -> None:
    data = JSONSerializer.dumps((queueing.GRADE_CHUNK, None, (4,), {}))
    inject(
        client,
        "decorated",
        data,
        success_callback_name="os._exit",
        failure_callback_name="os._exit",
        stopped_callback_name="os._exit",
        webhooks='[{"url": "http://127.0.0.1:1/", "events": ["finished"]}]',
        result_ttl="0",
    )
    stored = queueing.Job.fetch("decorated", connection=client, serializer=JSONSerializer)
    assert stored.success_callback is None and stored.failure_callback is None
    assert stored.stopped_callback is None and stored.webhooks == []
    work()
    assert [line.split()[0] for line in calls()] == ["4"]
    assert status(client, "decorated") == "gone"  # finished, and deleted as ours are


@pytest.mark.django_db(transaction=True)
def test_clients_outlive_a_restart_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("EVALSITE_DATA_DIR", str(tmp_path))
    settings.REDIS_URL = ""
    with pytest.raises(broker.NoBroker, match=r"manage\.py up"):
        queueing.url()
    command = broker.command()
    first = broker.start(command)
    try:
        queueing.enqueue(queueing.GRADE_CHUNK, 9)
    finally:
        broker.stop(first)
    assert not queueing.ping()
    second = broker.start(command)
    try:
        assert queueing.ping()
        assert queueing.queued_ids(queueing.GRADE_CHUNK) == {9}
    finally:
        broker.stop(second)
