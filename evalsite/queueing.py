"""The queue: the only module that knows RQ.

A job is one allow-listed function and the ids of records. Jobs are JSON, never pickle, and RQ's
own import of any dotted path, its callbacks and its webhooks are cut off: what is in the broker
cannot make a worker run anything but our functions. The database is the record of what is to be
done; a job only rings the bell, so a lost or doubled one changes nothing.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import FrameType
from typing import Any

import redis
import rq
from django.conf import settings
from django.db import connections, transaction
from rq import suspension
from rq.command import send_shutdown_command
from rq.job import Job as RqJob
from rq.serializers import JSONSerializer
from rq.utils import import_attribute
from rq.worker import WorkerStatus

from evalsite import broker, spawn

GRADE_CHUNK = "grading.jobs.grade_chunk"
GRADE_REFERENCES = "grading.jobs.grade_references"
REGRADE = "grading.regrade_jobs.regrade"
FUNCTIONS = frozenset({GRADE_CHUNK, GRADE_REFERENCES, REGRADE})
# What waits until nothing else does.
LOW = frozenset({REGRADE})

JOB_TIMEOUT_S = 3600
FAILURE_TTL_S = 24 * 3600
# An idle worker wakes worker_ttl - 15 s after its last job; all three decide how soon the loss of
# another worker shows in RQ's own registries.
WORKER_TTL_S = 30
MAINTENANCE_S = 10
MONITORING_S = 5

log = logging.getLogger(__name__)


class Job(RqJob):
    """A job that may only call a function of :data:`FUNCTIONS` with whole numbers."""

    @property
    def func(self) -> Callable[..., Any]:
        numbers = all(type(argument) is int for argument in self.args)
        if self.func_name not in FUNCTIONS or self.instance or self.kwargs or not numbers:
            raise PermissionError(f"job {self.id} asks for something no job may do")
        return import_attribute(self.func_name)

    def restore(self, raw_data: Any) -> None:
        super().restore(raw_data)
        self._success_callback_name = None
        self._failure_callback_name = None
        self._stopped_callback_name = None
        self.webhooks = []


class Worker(rq.Worker):
    """A forking worker: each job runs in a process of its own, the horse.

    SIGTERM ends it after the sample in hand. The horse ends with its worker, and never before it:
    a broker that went away does not make the worker leave a horse alone.
    """

    job_class = Job
    stopping = False
    before_fork: Callable[[], None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["job_class"] = Job
        kwargs["serializer"] = JSONSerializer
        kwargs.setdefault("worker_ttl", WORKER_TTL_S)
        kwargs.setdefault("maintenance_interval", MAINTENANCE_S)
        kwargs.setdefault("job_monitoring_interval", MONITORING_S)
        kwargs.setdefault("log_job_description", False)
        kwargs.setdefault("default_result_ttl", 0)
        super().__init__(*args, **kwargs)

    def execute_job(self, job: RqJob, queue: rq.Queue) -> None:
        if self.before_fork:
            self.before_fork()
        # A connection that crosses a fork is used by two processes at once.
        connections.close_all()
        super().execute_job(job, queue)

    def maintain_heartbeats(self, job: RqJob, execution: Any) -> None:
        try:
            super().maintain_heartbeats(job, execution)
        except redis.RedisError as problem:
            log.warning("%s: no heartbeat, the broker does not answer: %s", self.name, problem)

    def handle_warm_shutdown_request(self) -> None:
        super().handle_warm_shutdown_request()
        if self.horse_pid:
            self.kill_horse(signal.SIGTERM)

    def setup_work_horse_signals(self) -> None:
        super().setup_work_horse_signals()
        signal.signal(signal.SIGTERM, _finish_sample)
        assert self.pid is not None
        spawn.die_with_parent(self.pid)

    def perform_job(self, *args: Any, **kwargs: Any) -> bool:
        try:
            return super().perform_job(*args, **kwargs)
        finally:
            if self.is_horse:
                connections.close_all()


def _finish_sample(_signal: int, _frame: FrameType | None) -> None:
    Worker.stopping = True


def stopping() -> bool:
    """Was the job in this process asked to end after the sample in hand?"""
    return Worker.stopping


def worker(name: str, before_fork: Callable[[], None] | None = None) -> Worker:
    """A worker on both queues, the low one last; its connection has the time-outs it needs.

    ``before_fork`` is called in its own process before each job's is forked.
    """
    # Loaded once here, not anew in each job's process.
    for path in FUNCTIONS:
        import_attribute(path)
    client = redis.Redis.from_url(url())
    found = Worker([_queue(client), _queue(client, low=True)], name=name)
    found.before_fork = before_fork
    return found


def worker_name() -> str:
    """Name of the worker that runs the current job."""
    return os.environ.get("RQ_WORKER_ID") or f"local-{os.getpid()}"


def url() -> str:
    """URL of the broker as of now: the configured one, else the data directory's own.

    Raises broker.NoBroker when neither is there.
    """
    found = settings.REDIS_URL or broker.running_url()
    if not found:
        raise broker.NoBroker(
            "No broker is running. Start `manage.py up`, or name one in EVALSITE_REDIS_URL."
        )
    return str(found)


def enqueue(path: str, *ids: int) -> None:
    """Ring the bell for ``path(*ids)`` when the current transaction commits.

    A broker that is away is logged, not raised: the records are stored, and the sweep rings again.
    """
    if path not in FUNCTIONS:
        raise ValueError(f"{path} is not one of the functions a job may call")
    transaction.on_commit(lambda: _ring(path, ids))


def _ring(path: str, ids: tuple[int, ...]) -> None:
    name = path.rpartition(".")[2]
    numbers = "-".join(map(str, ids))
    try:
        _queue(_client(url()), path in LOW).enqueue_call(
            path,
            args=ids,
            job_id=f"{name}-{numbers}-{secrets.token_hex(6)}",
            description=f"{name} {numbers}",
            timeout=JOB_TIMEOUT_S,
            result_ttl=0,
            failure_ttl=FAILURE_TTL_S,
        )
    except (redis.RedisError, broker.NoBroker) as problem:
        log.warning("%s %s is not in the queue yet: %s", name, numbers, problem)


def queued_ids(path: str) -> set[int]:
    """First ids of the jobs for ``path`` that wait in the queue.

    Jobs a worker has taken are not counted: their records are leased, and where a worker was lost
    between the two, counting them would hide that. Raises redis.RedisError, broker.NoBroker.
    """
    return _first_ids(path, _queue(_client(url()), path in LOW).get_job_ids())


def running_ids(path: str) -> set[int]:
    """First ids of the jobs for ``path`` that a worker has taken; of a lost worker, for 90 s.

    Raises redis.RedisError, broker.NoBroker.
    """
    registry = _queue(_client(url()), path in LOW).started_job_registry
    return _first_ids(path, registry.get_job_ids(cleanup=False))


def _first_ids(path: str, job_ids: list[str]) -> set[int]:
    pattern = re.compile(rf"{path.rpartition('.')[2]}-(\d+)-")
    return {int(match[1]) for match in map(pattern.match, job_ids) if match}


def worker_count() -> int:
    """Workers that listen on the broker. Raises redis.RedisError, broker.NoBroker."""
    return int(rq.Worker.count(connection=_client(url())))


@dataclass(frozen=True, slots=True)
class Listening:
    """A worker that listens on the broker; ``state`` is busy, idle, suspended or started."""

    name: str
    state: str
    began_at: datetime | None
    heartbeat_at: datetime | None


def listening() -> list[Listening]:
    """All workers, by name; a lost one for 90 s. Raises redis.RedisError, broker.NoBroker."""
    found = rq.Worker.all(connection=_client(url()))
    rows = (
        Listening(one.name, str(one.get_state()), one.birth_date, one.last_heartbeat)
        for one in found
    )
    return sorted(rows, key=lambda row: row.name)


def suspend() -> None:
    """Have workers take no job until `resume`. Raises redis.RedisError, broker.NoBroker.

    One that waits for a job at this moment goes on waiting, and takes one more.
    """
    suspension.suspend(_client(url()))


def resume() -> None:
    """Have workers take jobs again. Raises redis.RedisError, broker.NoBroker."""
    suspension.resume(_client(url()))


def end_idle(began_before: datetime) -> int:
    """Ask workers to end that run no job and began before that moment; returns how many.

    A worker between taking a job and running it ends as well: its record waits, and is rung for
    again. Raises redis.RedisError, broker.NoBroker.
    """
    old = [
        one.name
        for one in listening()
        if one.state != WorkerStatus.BUSY and one.began_at and one.began_at < began_before
    ]
    for name in old:
        send_shutdown_command(_client(url()), name)
    return len(old)


def ping() -> bool:
    """Does the broker answer?"""
    try:
        return bool(_client(url()).ping())
    except (redis.RedisError, broker.NoBroker):
        return False


@lru_cache(maxsize=4)
def _client(at: str) -> redis.Redis:
    return redis.Redis.from_url(at)


def _queue(client: redis.Redis, low: bool = False) -> rq.Queue:
    name = settings.LOW_QUEUE if low else settings.GRADE_QUEUE
    return rq.Queue(name, connection=client, job_class=Job, serializer=JSONSerializer)
