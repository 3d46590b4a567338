"""Jobs in forked horses on a real broker, and one sample at a time in this process.

What a program comes to is not the question here, so grading itself is replaced by a function that
answers at once; tests/e2e/test_faults.py runs the same path with real sandboxes.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connections
from django.utils import timezone
from pytest_django import Settings
from rq.timeouts import BaseTimeoutException

from evalsite import queueing
from grading import canaries, chunks, jobs, sweep
from grading.engine import canary
from grading.engine.outcome import Outcome, PlatformError, Verdict
from grading.models import Attempt, Chunk, Sample, TaskScore
from tests.grading.pipeline_records import (
    age_chunks,
    stored_submission,
    verdict,
    work,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A worker forks beside the thread that listens for commands, as it does in production.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
Grade = Callable[..., Verdict]


@pytest.fixture
def use_grade(
    replaced_grade: Callable[[Grade], None], settings: Settings
) -> Callable[[Grade], None]:
    """Every sample is run, whatever was run before."""
    settings.VERDICT_CACHE = False
    return replaced_grade


@pytest.fixture
def client(broker_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker_url) as client:
        yield client


def passing(*_: Any, **__: Any) -> Verdict:
    return verdict()


def queued_chunk(**shape: int) -> int:
    """Id of the only chunk of a new submission, queued without a job."""
    chunk = stored_submission(tasks=1, **shape).chunks.get()
    chunks.ring(chunk.pk)
    return chunk.pk


@pytest.mark.broker
def test_lost_and_doubled_jobs_and_lost_horses_leave_one_verdict_each(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    """Sixty samples; jobs doubled, dropped and flushed, and every eighth run kills its horse."""
    dice = random.Random(7)
    runs = "runs"

    def grade(*_: Any, **__: Any) -> Verdict:
        if client.incr(runs) % 8 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return verdict()

    use_grade(grade)
    submission = stored_submission(tasks=6, per_task=10, per_chunk=10)
    chunks.start(submission)
    for _ in range(60):
        for chunk in Chunk.objects.filter(state="queued"):
            for _ in range(dice.choice((0, 0, 1, 2))):
                queueing.enqueue(queueing.GRADE_CHUNK, chunk.pk)
        if dice.random() < 0.3:
            client.delete("rq:queue:grade")
        work(f"w{dice.randint(0, 1)}-1")
        age_chunks()
        sweep.sweep_once()
        submission.refresh_from_db()
        if submission.state == "done":
            break
    assert submission.state == "done"
    states = list(submission.samples.values_list("state", flat=True))
    lost = states.count("platform_failed")
    assert states.count("done") + lost == 60
    assert Attempt.objects.count() == states.count("done")
    assert Attempt.objects.filter(number__gt=1).count() == 0
    assert Attempt.objects.filter(kind="retry").exists()  # horses were in fact lost
    assert sum(score.n for score in TaskScore.objects.all()) == 60 - lost
    assert not Chunk.objects.exclude(state="done").exists()


@pytest.mark.broker
def test_a_worker_that_is_asked_to_stop_puts_the_rest_back(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    def grade(*_: Any, **__: Any) -> Verdict:
        os.kill(os.getppid(), signal.SIGTERM)
        while not queueing.stopping():
            time.sleep(0.005)
        return verdict()

    use_grade(grade)
    submission = stored_submission(tasks=1, per_task=5, per_chunk=5)
    chunks.start(submission)
    work("w0-1")
    assert Attempt.objects.count() == 1
    chunk = submission.chunks.get()
    assert (chunk.state, chunk.token) == ("queued", "")
    assert not submission.samples.filter(losses__gt=0).exists()
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == {chunk.pk}
    use_grade(passing)
    work("w1-2")
    assert Attempt.objects.count() == 5
    assert {attempt.worker for attempt in Attempt.objects.all()} == {"w0-1", "w1-2"}


@pytest.mark.broker
def test_a_job_ends_long_before_its_time_and_the_rest_follows(
    client: redis.Redis, use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "BUDGET_S", -1.0)
    use_grade(passing)
    submission = stored_submission(tasks=1, per_task=3, per_chunk=3)
    chunks.start(submission)
    work()
    assert Attempt.objects.count() == 3
    assert (submission.chunks.get().tries, submission.chunks.get().state) == (3, "done")


@pytest.mark.broker
def test_a_horse_dies_with_its_worker_and_the_sample_gets_a_second_try(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    def grade(*_: Any, **__: Any) -> Verdict:
        client.set("horse", os.getpid())
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
        return verdict()

    use_grade(grade)
    submission = stored_submission(tasks=1, per_task=5, per_chunk=5)
    chunks.start(submission)
    connections.close_all()
    worker = os.fork()
    if worker == 0:
        try:
            queueing.worker("w0-1").work(burst=True, logging_level="CRITICAL")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == -signal.SIGKILL
    horse = Path("/proc") / client.get("horse").decode()
    deadline = time.monotonic() + 20
    while horse.exists() and "Z" not in (horse / "stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (in_flight,) = submission.samples.filter(started_at__isnull=False)
    age_chunks()
    assert sweep.sweep_once().recovered == 1
    use_grade(passing)
    work("w1-2")
    retried = Attempt.objects.get(kind="retry")
    assert (retried.sample_id, retried.worker) == (in_flight.pk, "w1-2")
    assert Attempt.objects.count() == 5


@pytest.mark.broker
def test_a_large_submission_does_not_starve_a_small_one(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    use_grade(passing)
    large = stored_submission(tasks=1, per_task=4 * chunks.IN_QUEUE, per_chunk=1)
    chunks.start(large)
    small = stored_submission(tasks=1, per_task=1)
    chunks.start(small)
    work("w0-1")
    last = Attempt.objects.get(sample__submission=small).created_at
    behind = Attempt.objects.filter(sample__submission=large, created_at__lt=last)
    assert behind.count() == chunks.IN_QUEUE
    assert Attempt.objects.count() == 4 * chunks.IN_QUEUE + 1


def test_a_doubled_job_changes_nothing(use_grade: Callable[[Grade], None]) -> None:
    use_grade(passing)
    chunk_id = queued_chunk(per_task=3)
    jobs.grade_chunk(chunk_id)
    first = list(Attempt.objects.values())
    jobs.grade_chunk(chunk_id)
    jobs.grade_chunk(10**9)
    assert list(Attempt.objects.values()) == first
    assert len(first) == 3


def test_a_platform_failure_is_tried_again_and_then_shown(
    use_grade: Callable[[Grade], None],
) -> None:
    chunk_id = queued_chunk(per_task=3)
    bad = Sample.objects.order_by("index")[1]
    started = []

    def grade(*_: Any, **__: Any) -> Verdict:
        (running,) = Sample.objects.filter(started_at__isnull=False)
        started.append(running.pk)
        if running.pk == bad.pk:
            raise PlatformError("no cell")
        return verdict(Outcome.ASSERTION_FAIL, passed=1)

    use_grade(grade)
    jobs.grade_chunk(chunk_id)
    chunk = Chunk.objects.get(pk=chunk_id)
    assert chunk.state == "queued"
    jobs.grade_chunk(chunk_id)
    jobs.grade_chunk(chunk_id)
    bad.refresh_from_db()
    assert (bad.state, bad.losses, bad.platform_failure) == ("platform_failed", 3, "no cell")
    assert started.count(bad.pk) == 3 and len(started) == 5
    score = TaskScore.objects.get()
    assert (score.n, score.c, score.assertion_fail) == (2, 0, 2)
    chunk.refresh_from_db()
    assert (chunk.state, chunk.submission.state) == ("done", "done")


def test_a_failing_canary_holds_the_chunk(
    use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_grade(passing)
    chunk_id = queued_chunk(per_task=2)

    def fail(sandbox: object) -> None:
        raise PlatformError("the known-good program did not pass")

    with monkeypatch.context() as patch:
        patch.setattr(canary, "check", fail)
        jobs.grade_chunk(chunk_id)
    sample = Sample.objects.first()
    assert sample is not None
    assert sample.platform_failure == "Held: the known-good program did not pass"
    assert (sample.state, sample.losses) == ("queued", 0)
    assert not Attempt.objects.exists()
    jobs.grade_chunk(chunk_id)
    assert Attempt.objects.count() == 2


@pytest.mark.broker
def test_canaries_run_once_for_jobs_that_follow_each_other(
    client: redis.Redis, use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_grade(passing)
    monkeypatch.setattr(canary, "check", lambda sandbox: client.incr("canaries"))
    chunks.start(stored_submission(tasks=1, per_task=3, per_chunk=1))
    work("w0-1")
    assert Attempt.objects.count() == 3
    assert client.get("canaries") == b"1"
    monkeypatch.setattr(canaries, "CANARY_S", 0.0)
    chunks.start(stored_submission(tasks=1, per_task=3, per_chunk=1))
    work("w0-1")
    assert client.get("canaries") == b"4"


def test_a_job_time_out_is_not_swallowed(use_grade: Callable[[Grade], None]) -> None:
    def grade(*_: Any, **__: Any) -> Verdict:
        raise BaseTimeoutException

    use_grade(grade)
    chunk_id = queued_chunk(per_task=2)
    with pytest.raises(BaseTimeoutException):
        jobs.grade_chunk(chunk_id)
    assert not Attempt.objects.exists()
    assert Chunk.objects.get(pk=chunk_id).state == "running"  # until its lease ends
    age_chunks()
    assert sweep.sweep_once().recovered == 1


def test_the_lease_is_renewed_while_a_program_runs(
    use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "RENEW_S", 0.0)

    def grade(*_: Any, tick: Callable[[], None], **__: Any) -> Verdict:
        age_chunks()
        tick()
        assert Chunk.objects.filter(lease_until__gt=timezone.now()).count() == 1
        return verdict()

    use_grade(grade)
    jobs.grade_chunk(queued_chunk(per_task=2))
    assert Attempt.objects.count() == 2
