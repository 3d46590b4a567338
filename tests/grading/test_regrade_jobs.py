"""Regrades through forked horses on a real broker; grading itself answers at once."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.utils import timezone

from evalsite import queueing
from grading import canaries, chunks, grader, regrade_jobs, regrade_runs, regrades, sweep
from grading.engine import canary
from grading.engine.outcome import Outcome, PlatformError, Verdict
from grading.models import Attempt, Regrade, RegradeRun, Sample, TaskScore
from tests.grading.pipeline_records import stored_submission, unstarted_sandbox, verdict, work

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # A worker forks beside the thread that listens for commands, as it does in production.
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
Grade = Callable[..., Verdict]


@pytest.fixture
def use_grade(replaced_grade: Callable[[Grade], None]) -> Callable[[Grade], None]:
    """The verdict cache stays on, to be passed by."""
    return replaced_grade


@pytest.fixture
def client(broker_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker_url) as client:
        yield client


def asked(tasks: int, per_task: int, repeats: int = 1) -> Regrade:
    """A regrade of a whole new submission, all of whose samples miss a target."""
    submission = stored_submission(tasks=tasks, per_task=per_task)
    chunks.start(submission)
    work()
    staff = User.objects.create(username="sam", is_staff=True)
    return regrades.ask(regrades.Selection(submission=submission.public_id), "why", staff, repeats)


def missing(*_: Any, **__: Any) -> Verdict:
    return verdict(Outcome.ASSERTION_FAIL, passed=1)


def figures() -> Any:
    scores = TaskScore.objects.order_by("task").values()
    return list(scores), list(Sample.objects.order_by("pk").values("state", "current_attempt"))


def age_runs() -> None:
    past = timezone.now() - timedelta(minutes=1)
    RegradeRun.objects.filter(lease_until__isnull=False).update(lease_until=past)


@pytest.mark.broker
def test_lost_jobs_and_horses_lose_no_run_and_move_no_figure(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    """Forty runs; the queue is flushed now and then, and every seventh run kills its horse."""
    use_grade(missing)
    regrade = asked(tasks=4, per_task=5, repeats=2)
    before = figures()
    dice = random.Random(11)

    def grade(*_: Any, **__: Any) -> Verdict:
        if client.incr("runs") % 7 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return verdict()

    use_grade(grade)
    for _ in range(60):
        if dice.random() < 0.3:
            client.delete("rq:queue:regrade")
        work(f"w{dice.randint(0, 1)}-1")
        age_runs()
        sweep.sweep_once()
        regrade.refresh_from_db()
        if regrade.state == "ready":
            break
    assert regrade.state == "ready"
    assert figures() == before
    states = list(regrade.runs.values_list("state", flat=True))
    assert states.count("done") + states.count("platform_failed") == 40
    assert Attempt.objects.filter(kind="regrade").count() == states.count("done") > 30
    assert regrade.runs.filter(losses__gt=0).exists()  # horses were in fact lost


@pytest.mark.broker
def test_a_regrade_waits_for_everything_else(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    use_grade(missing)
    asked(tasks=1, per_task=3)
    later = stored_submission(tasks=1, per_task=3)
    chunks.start(later)
    assert len(queueing.queued_ids(queueing.GRADE_CHUNK)) == 1
    assert len(queueing.queued_ids(queueing.REGRADE)) == 1
    work()
    order = list(Attempt.objects.order_by("pk").values_list("kind", flat=True))
    assert order == ["first"] * 6 + ["regrade"] * 3


@pytest.mark.broker
def test_every_run_is_a_run(client: redis.Redis, use_grade: Callable[[Grade], None]) -> None:
    """The programs are all equal, and their verdict is known."""

    def grade(*_: Any, **__: Any) -> Verdict:
        client.incr("runs")
        return missing()

    use_grade(grade)
    regrade = asked(tasks=1, per_task=4, repeats=3)
    client.set("runs", 0)
    work()
    regrade.refresh_from_db()
    assert (regrade.state, client.get("runs")) == ("ready", b"12")
    assert not Attempt.objects.filter(kind="regrade").exclude(repeats=None).exists()


@pytest.mark.broker
def test_the_runs_of_a_job_share_a_judge(
    client: redis.Redis, use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_grade(missing)
    regrade = asked(tasks=1, per_task=3)
    steps: list[str] = []

    @contextmanager
    def warm() -> Iterator[None]:
        steps.append("warm")
        yield
        steps.append("cold")

    def grade(*_: Any, **__: Any) -> Verdict:
        steps.append("run")
        return missing()

    use_grade(grade)
    found = unstarted_sandbox()
    found.warm = warm
    monkeypatch.setattr(grader, "sandbox", lambda: found)
    regrade_jobs.regrade(regrade.pk)
    assert steps == ["warm", "run", "run", "run", "cold"]
    assert client.llen("rq:queue:regrade") == 1  # the job that was asked for, and no more


@pytest.mark.broker
def test_a_platform_that_fails_is_tried_three_times(
    client: redis.Redis, use_grade: Callable[[Grade], None]
) -> None:
    use_grade(missing)
    regrade = asked(tasks=1, per_task=2)

    def grade(*_: Any, **__: Any) -> Verdict:
        client.incr("runs")
        raise PlatformError("no cell")

    use_grade(grade)
    client.set("runs", 0)
    work()
    regrade.refresh_from_db()
    assert (regrade.state, client.get("runs")) == ("ready", b"6")
    assert set(regrade.runs.values_list("state", "platform_failure")) == {
        ("platform_failed", "no cell")
    }


@pytest.mark.broker
def test_a_failing_canary_charges_no_run(
    client: redis.Redis, use_grade: Callable[[Grade], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_grade(missing)
    regrade = asked(tasks=1, per_task=2)
    client.delete("rq:queue:regrade")

    def fail(sandbox: object) -> None:
        raise PlatformError("the known-good program did not pass")

    with monkeypatch.context() as patch:
        patch.setattr(canary, "check", fail)
        patch.setattr(canaries, "CANARY_S", 0.0)
        regrade_jobs.regrade(regrade.pk)
    assert set(regrade.runs.values_list("state", "losses")) == {("queued", 0)}
    assert regrade_runs.ring_missing() == 1
    work()
    regrade.refresh_from_db()
    assert regrade.state == "ready"
