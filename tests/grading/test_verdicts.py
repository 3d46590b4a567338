"""Exactly one verdict per sample, and scores that follow from the verdicts alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.utils import timezone

from grading import chunks, verdicts
from grading.engine.outcome import Label, Outcome, Stream, TargetResult
from grading.models import Attempt, Sample, Submission, TaskScore
from tests.grading.pipeline_records import failure, first_lease, stored_submission, verdict

pytestmark = pytest.mark.django_db


def begun(submission: Submission) -> tuple[chunks.Lease, Sample]:
    """The submission's first sample, in flight."""
    lease = first_lease(submission)
    sample_id = chunks.queued_samples(lease)[0]
    assert chunks.begin(lease, sample_id)
    return lease, Sample.objects.get(pk=sample_id)


def test_a_verdict_is_stored_whole() -> None:
    lease, sample = begun(stored_submission())
    assert sample.started_at is not None
    given = verdict(
        Outcome.ASSERTION_FAIL,
        passed=2,
        targets=[
            TargetResult(0, True, Label.SEALED),
            TargetResult(1, True, Label.IN_PROCESS),
            TargetResult(2, False, Label.SEALED, "is false", 0.01),
        ],
        failure=failure(),
        stdout=Stream("head", "tail", 9_000),
        starved=True,
    )
    assert verdicts.record(sample.pk, lease.token, given, lease.worker)
    sample.refresh_from_db()
    assert (sample.state, sample.started_at) == ("done", None)
    attempt = sample.current_attempt
    assert attempt is not None
    assert (attempt.number, attempt.kind, attempt.worker) == (1, "first", "w0-1")
    assert (attempt.outcome, attempt.passed, attempt.total) == ("assertion_fail", 2, 3)
    assert (attempt.score, attempt.sealed, attempt.starved) == (2 / 3, 2, True)
    assert (attempt.failure_phase, attempt.exception) == ("target", "ValueError")
    assert attempt.text.targets[2]["detail"] == "is false"
    assert attempt.text.stdout == {"head": "head", "tail": "tail", "size": 9_000}
    assert attempt.text.failure["frames"] == [[2, "add"]]
    assert attempt.text.extraction["rule"] == "whole"
    assert attempt.text.limits["timeout_s"] == 3.0


def test_hostile_text_is_stored() -> None:
    lease, sample = begun(stored_submission())
    hostile = "nul \0 lone \ud800 end"
    given = verdict(
        Outcome.ERROR,
        passed=0,
        detail=hostile,
        denied=["os\0system"],
        failure=failure(hostile + "x" * 500),
        program=hostile,
        stderr=Stream(hostile, "", 10),
    )
    assert verdicts.record(sample.pk, lease.token, given, lease.worker)
    attempt = Attempt.objects.get(sample=sample)
    assert attempt.detail == "nul \ufffd lone \ufffd end"
    assert len(attempt.exception) == 120 and "\0" not in attempt.exception
    assert attempt.denied == ["os\ufffdsystem"]
    assert attempt.text.program == hostile
    assert attempt.text.stderr["head"] == hostile


def test_a_second_verdict_changes_nothing() -> None:
    lease, sample = begun(stored_submission())
    assert verdicts.record(sample.pk, lease.token, verdict(), lease.worker)
    assert not verdicts.record(
        sample.pk, lease.token, verdict(Outcome.ERROR, passed=0), lease.worker
    )
    attempt = Attempt.objects.get(sample=sample)
    assert attempt.outcome == "pass"
    score = TaskScore.objects.get()
    assert (score.n, score.c, score.error) == (1, 1, 0)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(
            lambda lease, sample: chunks.cancel_submission(sample.submission), id="cancel"
        ),
        pytest.param(lambda lease, sample: chunks.finish(lease), id="lease given back"),
        pytest.param(
            lambda lease, sample: Sample.objects.filter(pk=sample.pk).update(chunk=None),
            id="chunk gone",
        ),
    ],
)
def test_a_late_verdict_changes_nothing(
    spoil: Callable[[chunks.Lease, Sample], object],
) -> None:
    lease, sample = begun(stored_submission())
    spoil(lease, sample)
    assert not verdicts.record(sample.pk, lease.token, verdict(), lease.worker)
    assert not Attempt.objects.exists()
    assert not TaskScore.objects.exists()


def test_a_verdict_without_a_token_is_refused() -> None:
    submission = stored_submission()
    sample = submission.samples.all()[0]
    assert not verdicts.record(sample.pk, "", verdict(), "w0-1")


def test_scores_are_recomputed_from_the_attempts() -> None:
    submission = stored_submission(tasks=1, per_task=5, per_chunk=5)
    lease = first_lease(submission)
    given = [
        verdict(),
        verdict(Outcome.ASSERTION_FAIL, passed=2),
        verdict(Outcome.TIMEOUT, passed=1),
        verdict(Outcome.SYNTAX_ERROR, passed=0),
    ]
    for sample_id, one in zip(chunks.queued_samples(lease), given, strict=False):
        assert verdicts.record(sample_id, lease.token, one, lease.worker)
    # A wrong count left by anything else is put right by the next verdict, not carried on.
    TaskScore.objects.update(n=40, c=40, error=7)
    last = chunks.queued_samples(lease)[0]
    assert verdicts.record(last, lease.token, verdict(Outcome.ERROR, passed=3), lease.worker)
    score = TaskScore.objects.get()
    assert (score.n, score.c) == (5, 1)
    assert score.fraction_sum == pytest.approx(1 + 2 / 3)
    counts = (score.assertion_fail, score.timeout, score.syntax_error, score.error)
    assert counts == (1, 1, 1, 1)


def test_platform_failures_are_tried_three_times_and_never_count() -> None:
    submission = stored_submission(tasks=1, per_task=2, per_chunk=2)
    lease, sample = begun(submission)
    for losses in (1, 2):
        assert verdicts.record_platform_failure(sample.pk, lease.token, "no sandbox \0")
        sample.refresh_from_db()
        assert (sample.state, sample.losses, sample.started_at) == ("queued", losses, None)
    assert sample.platform_failure == "no sandbox \ufffd"
    assert verdicts.record_platform_failure(sample.pk, lease.token, "disk full")
    sample.refresh_from_db()
    assert (sample.state, sample.losses) == ("platform_failed", 3)
    assert sample.platform_failure == "disk full"
    assert not verdicts.record_platform_failure(sample.pk, lease.token, "again")
    other = chunks.queued_samples(lease)
    assert len(other) == 1
    assert verdicts.record(other[0], lease.token, verdict(), lease.worker)
    assert TaskScore.objects.get().n == 1
    assert not Attempt.objects.filter(sample=sample).exists()


def test_a_verdict_after_a_loss_is_a_retry() -> None:
    lease, sample = begun(stored_submission())
    assert verdicts.record_platform_failure(sample.pk, lease.token, "no sandbox")
    assert verdicts.record(sample.pk, lease.token, verdict(), lease.worker)
    assert Attempt.objects.get(sample=sample).kind == "retry"


@pytest.mark.django_db(transaction=True)
def test_workers_that_write_at_once_lose_no_count() -> None:
    """Four threads, each with a chunk of its own, all with samples of one task."""
    submission = stored_submission(tasks=1, per_task=40, per_chunk=10)
    leases = []
    for chunk in submission.chunks.all():
        chunks.ring(chunk.pk)
        lease = chunks.take(chunk.pk, f"w{chunk.position}-1")
        assert lease is not None
        leases.append(lease)

    def grade_all(lease: chunks.Lease) -> None:
        try:
            for sample_id in chunks.queued_samples(lease):
                assert chunks.begin(lease, sample_id)
                assert verdicts.record(sample_id, lease.token, verdict(), lease.worker)
            chunks.finish(lease)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(grade_all, leases))
    score = TaskScore.objects.get()
    assert (score.n, score.c, score.fraction_sum) == (40, 40, 40.0)
    assert Attempt.objects.count() == 40
    submission.refresh_from_db()
    assert submission.state == "done"
    assert submission.finished_at is not None and submission.finished_at <= timezone.now()


@pytest.mark.django_db(transaction=True)
def test_a_verdict_is_stored_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, sample = begun(stored_submission())

    def fail(*_: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(verdicts, "recompute", fail)
    with pytest.raises(ZeroDivisionError):
        verdicts.record(sample.pk, lease.token, verdict(), lease.worker)
    assert not Attempt.objects.exists()
    sample.refresh_from_db()
    assert sample.state == "queued"
