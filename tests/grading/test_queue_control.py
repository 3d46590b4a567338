"""Pause, drain and resume with a real broker, forked horses and whole workers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import StringIO
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connections
from pytest_django import Settings

from evalsite import queueing
from grading import chunks, queue_control, references, regrades, sweep
from grading.engine.outcome import Verdict
from grading.models import Attempt, Chunk, QueueChange, RegradeRun, Sample
from grading.queries import queue as queries
from grading.queue_control import Mode
from tests.evalsite.running import alive, wait_until
from tests.grading import web_records
from tests.grading.conftest import Grade
from tests.grading.pipeline_records import age_chunks, stored_submission, verdict, work

pytestmark = [
    pytest.mark.broker,
    pytest.mark.django_db(transaction=True),
    # A worker forks beside the thread that listens for commands, as it does in production.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
SUSPENDED = "rq:suspended"


@pytest.fixture
def client(broker_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker_url) as client:
        yield client


@pytest.fixture
def ada(client: redis.Redis) -> User:
    return web_records.person("admin", superuser=True)


@pytest.fixture
def use_grade(
    replaced_grade: Callable[[Grade], None], settings: Settings
) -> Callable[[Grade], None]:
    settings.VERDICT_CACHE = False
    return replaced_grade


def passing(*_: Any, **__: Any) -> Verdict:
    return verdict()


def waiting() -> set[int]:
    return set(Chunk.objects.filter(state="queued").values_list("pk", flat=True))


@contextmanager
def running_worker(name: str) -> Iterator[int]:
    """A worker that waits for jobs, in a process of its own, as `manage.py worker` is."""
    connections.close_all()
    pid = os.fork()
    if pid == 0:
        queueing.worker(name).work(logging_level="CRITICAL")
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def state_of(name: str) -> str:
    return next((one.state for one in queueing.listening() if one.name == name), "gone")


def test_what_waits_while_paused_stays_and_goes_on_after(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    use_grade(passing)
    assert queue_control.change(Mode.PAUSED, ada, "new disk")
    submission = stored_submission(tasks=2, per_task=4, per_chunk=2)
    chunks.start(submission)
    work()
    assert not Attempt.objects.exists() and len(waiting()) == 4
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == waiting()
    assert queue_control.change(Mode.RUNNING, ada)
    work()
    submission.refresh_from_db()
    assert (submission.state, Attempt.objects.count()) == ("done", 8)
    assert set(submission.chunks.values_list("tries", flat=True)) == {1}


def test_a_job_that_starts_all_the_same_hands_its_chunk_back_uncounted(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    """As one does whose worker was waiting for it when the pause came."""
    use_grade(passing)
    submission = stored_submission(tasks=1, per_task=6, per_chunk=2)
    chunks.start(submission)
    queue_control.change(Mode.PAUSED, ada, "why")
    client.delete(SUSPENDED)
    work()
    assert client.llen("rq:queue:grade") == 0
    assert len(waiting()) == 3 and not Attempt.objects.exists()
    assert not submission.chunks.exclude(tries=0, token="", worker="").exists()
    assert not Sample.objects.exclude(losses=0, started_at=None, platform_failure="").exists()
    queue_control.change(Mode.RUNNING, ada)
    # Everything that waits has one job, and no more.
    assert client.llen("rq:queue:grade") == 3
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == waiting()
    work()
    submission.refresh_from_db()
    assert submission.state == "done"


def test_a_chunk_at_work_is_finished_and_the_next_is_not_begun(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    def pause(*_: Any, **__: Any) -> Verdict:
        queue_control.change(Mode.PAUSED, ada, "why")
        return verdict()

    use_grade(pause)
    submission = stored_submission(tasks=1, per_task=9, per_chunk=3)
    chunks.start(submission)
    work()
    states = submission.chunks.order_by("position").values_list("state", flat=True)
    assert list(states) == ["done", "queued", "queued"]
    assert Attempt.objects.count() == 3
    assert QueueChange.objects.count() == 1


def test_regrades_and_references_wait_as_well(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    use_grade(passing)
    submission = stored_submission(tasks=1, per_task=2)
    chunks.start(submission)
    work()
    queue_control.change(Mode.PAUSED, ada, "why")
    chosen = regrades.Selection(submission=submission.public_id)
    regrade = regrades.ask(chosen, "why", ada)
    references.ask(submission.version)
    client.delete(SUSPENDED)
    work()
    assert RegradeRun.objects.filter(state="queued").count() == 2
    submission.version.refresh_from_db()
    assert submission.version.notes[references.ASKED]
    queue_control.change(Mode.RUNNING, ada)
    work()
    regrade.refresh_from_db()
    submission.version.refresh_from_db()
    assert regrade.state == "ready"
    assert references.ASKED not in submission.version.notes


def test_the_sweep_makes_the_broker_say_what_the_record_says(
    client: redis.Redis, ada: User, settings: Settings
) -> None:
    url, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    assert queue_control.change(Mode.PAUSED, ada, "the broker is away")
    settings.REDIS_URL = url
    assert not client.exists(SUSPENDED)
    sweep.sweep_once()
    assert client.exists(SUSPENDED)
    client.flushall()
    sweep.sweep_once()
    assert client.exists(SUSPENDED)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert queue_control.change(Mode.RUNNING, ada)
    settings.REDIS_URL = url
    assert client.exists(SUSPENDED)
    sweep.sweep_once()
    assert not client.exists(SUSPENDED)


def test_a_lost_worker_is_noticed_while_paused_and_its_samples_wait(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    use_grade(passing)
    submission = stored_submission(tasks=1, per_task=3, per_chunk=3)
    chunks.start(submission)
    chunk = submission.chunks.get()
    assert chunks.take(chunk.pk, "w9-9")
    queue_control.change(Mode.PAUSED, ada, "why")
    age_chunks()
    assert sweep.sweep_once().recovered == 1
    work()
    assert not Attempt.objects.exists() and len(waiting()) == 3
    queue_control.change(Mode.RUNNING, ada)
    work()
    assert Attempt.objects.count() == 3


@pytest.mark.slow
def test_an_idle_worker_takes_no_work_while_paused_and_goes_on_after(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    use_grade(passing)
    with running_worker("w0-idle"):
        wait_until(lambda: state_of("w0-idle") == "idle", 20, "the worker does not start")
        queue_control.change(Mode.PAUSED, ada, "why")
        chunks.start(stored_submission(tasks=1, per_task=4, per_chunk=2))
        wait_until(lambda: state_of("w0-idle") == "suspended", 20, "the worker heeds no pause")
        assert client.llen("rq:queue:grade") == 1 and len(waiting()) == 2
        assert not Attempt.objects.exists()
        queue_control.change(Mode.RUNNING, ada)
        wait_until(lambda: Attempt.objects.count() == 4, 20, "the worker does not go on")
    assert set(Chunk.objects.values_list("tries", flat=True)) == {1}


@pytest.mark.slow
def test_a_drain_ends_idle_workers_and_new_ones_wait_for_the_resume(
    client: redis.Redis, use_grade: Callable[[Grade], None], ada: User
) -> None:
    use_grade(passing)
    with running_worker("w0-idle") as idle, ExitStack() as stack:
        wait_until(lambda: state_of("w0-idle") == "idle", 20, "the worker does not start")
        queue_control.change(Mode.PAUSED, ada, "first a pause")
        old = stack.enter_context(running_worker("w1-old"))
        wait_until(lambda: state_of("w1-old") == "suspended", 20, "the worker heeds no pause")
        queue_control.change(Mode.DRAINING, ada, "new version")
        wait_until(lambda: not alive([old, idle]), 20, "it does not end")
        assert {state_of("w0-idle"), state_of("w1-old")} == {"gone"}
        chunks.start(stored_submission(tasks=1, per_task=2))
        with running_worker("w1-new"):
            wait_until(lambda: state_of("w1-new") == "suspended", 20, "a new worker takes work")
            sweep.sweep_once()  # which asks nobody to end that came after the drain
            assert not Attempt.objects.exists()
            queue_control.change(Mode.RUNNING, ada)
            wait_until(lambda: Attempt.objects.count() == 2, 20, "the new worker does not go on")


def test_who_stops_says_why_and_the_same_word_twice_is_one(client: redis.Redis, ada: User) -> None:
    with pytest.raises(ValueError, match="Say why"):
        queue_control.change(Mode.PAUSED, ada, "  ")
    with pytest.raises(ValueError, match="300"):
        queue_control.change(Mode.DRAINING, ada, "x" * 301)
    assert queue_control.stopped() is None
    assert not queue_control.change(Mode.RUNNING, ada)
    assert queue_control.change(Mode.PAUSED, ada, "a\0b")
    assert not queue_control.change(Mode.PAUSED, ada, "again")
    now = queue_control.stopped()
    assert now is not None and (now.mode, now.by, now.reason) == ("paused", ada, "a\ufffdb")
    assert queue_control.change(Mode.DRAINING, ada, "more")
    assert queue_control.change(Mode.RUNNING, ada)
    assert queue_control.stopped() is None
    assert list(QueueChange.objects.values_list("mode", flat=True)) == [
        "running",
        "draining",
        "paused",
    ]


def told(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("queue", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_command_says_and_changes_how_it_stands(
    client: redis.Redis, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = stored_submission(tasks=1, per_task=2, per_chunk=2)
    chunks.start(submission)
    lease = chunks.take(submission.chunks.get().pk, "w1-1")
    assert lease is not None
    assert told("status") == {"mode": "running", "samples_waiting": 2, "workers": 1, "held": 1}
    # The wait looks three times, and ends as soon as nothing is held.
    held = iter([1, 1, 0, 0])
    monkeypatch.setattr(queries, "holding", lambda: next(held))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    found = told("drain", "--reason", "new disk", "--wait")
    assert (found["mode"], found["by"], found["reason"]) == ("draining", "admin", "new disk")
    assert found["held"] == 0 and list(held) == []
    monkeypatch.undo()
    assert told("resume")["mode"] == "running"
    assert told("resume")["mode"] == "running"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pause"], "Say why"),
        (["pause", "--reason", "x", "--user", "nobody"], "No user 'nobody'"),
        (["stop"], "invalid choice"),
    ],
)
def test_what_the_command_refuses(ada: User, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("queue", *arguments)
    assert not QueueChange.objects.exists()
