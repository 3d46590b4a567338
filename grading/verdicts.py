"""Writing verdicts: the only place where a sample becomes ``done``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from grading import chunks, crash_groups
from grading.engine.outcome import Extraction, Label, Outcome, Verdict
from grading.fields import plain
from grading.models import Attempt, AttemptText, Chunk, Sample, TaskScore

EXCEPTION_CHARACTERS = 120


@transaction.atomic
def record(
    sample_id: int, chunk_token: str, verdict: Verdict, worker: str, run_key: str = ""
) -> bool:
    """Store a verdict: attempt, sample and task score in one transaction.

    Only the holder of the chunk's lease may, and only once: returns False, changing nothing, when
    the sample is no longer queued or its chunk no longer runs under ``chunk_token``.
    """
    sample = _claimed(sample_id, chunk_token).first()
    if sample is None:
        return False
    _decide(sample, _store_attempt(sample, verdict, worker, run_key))
    return True


@transaction.atomic
def repeat(
    sample_id: int, chunk_token: str, run: Attempt, extraction: Extraction, worker: str
) -> bool:
    """Store the verdict of an equal run as an attempt that names it; otherwise as `record`.

    ``run`` with its text; ``extraction`` is how this sample's own generation came to the program.
    """
    sample = _claimed(sample_id, chunk_token).first()
    if sample is None:
        return False
    _decide(sample, _copy_attempt(sample, run, extraction, worker))
    return True


def _decide(sample: Sample, attempt: Attempt) -> None:
    make_current(sample, attempt)
    recompute(sample.submission_id, sample.task_id)


def make_current(sample: Sample, attempt: Attempt) -> None:
    """Let an attempt with its text be the sample's verdict; the task score is not touched.

    Call it in a transaction that holds the sample.
    """
    Sample.objects.filter(pk=sample.pk).update(
        state=Sample.State.DONE,
        started_at=None,
        current_attempt=attempt,
        fingerprint=crash_groups.of_attempt(attempt, sample.task_id),
    )


@transaction.atomic
def record_platform_failure(sample_id: int, chunk_token: str, reason: str) -> bool:
    """Count a failure of the platform against a queued sample; it is tried again, or given up.

    Never an attempt, never part of n.
    """
    return chunks.charge(_claimed(sample_id, chunk_token), plain(reason)) == 1


def recompute(submission_id: int, task_id: int) -> None:
    """Derive the task score from the current attempts of its done samples."""
    score, _ = TaskScore.objects.select_for_update().get_or_create(
        submission_id=submission_id,
        task_id=task_id,
        defaults={"n": 0, "c": 0, "fraction_sum": 0.0},
    )
    done = Sample.objects.filter(
        submission_id=submission_id, task_id=task_id, state=Sample.State.DONE
    )
    outcome = "current_attempt__outcome"
    facts = done.aggregate(
        n=Count("pk"),
        c=Count("pk", filter=Q(**{outcome: Outcome.PASS})),
        fraction_sum=Sum("current_attempt__score", default=0.0),
        **{
            kind.value: Count("pk", filter=Q(**{outcome: kind}))
            for kind in Outcome
            if kind is not Outcome.PASS
        },
    )
    TaskScore.objects.filter(pk=score.pk).update(**facts)


def _claimed(sample_id: int, chunk_token: str) -> QuerySet[Sample]:
    """The sample, if it is queued in the chunk that runs under ``chunk_token``; locked when read.

    The chunk is locked first, and every condition is on the locked row itself: one inside a
    subquery would still hold after waiting for the transaction that broke it.
    """
    chunk_id = Sample.objects.values_list("chunk_id", flat=True).get(pk=sample_id)
    running = Chunk.objects.filter(pk=chunk_id, token=chunk_token, state=Chunk.State.RUNNING)
    if running.select_for_update().first() is None:
        return Sample.objects.none()
    return Sample.objects.select_for_update().filter(
        pk=sample_id, state=Sample.State.QUEUED, chunk_id=chunk_id
    )


def _copy_attempt(sample: Sample, run: Attempt, extraction: Extraction, worker: str) -> Attempt:
    facts = {
        field.attname: getattr(run, field.attname)
        for field in Attempt._meta.concrete_fields
        if not field.primary_key
    }
    facts |= {
        **_place(sample),
        "repeats_id": run.pk,
        "worker": worker,
        "created_at": timezone.now(),
    }
    attempt = Attempt.objects.create(**facts)
    texts = {
        field.attname: getattr(run.text, field.attname)
        for field in AttemptText._meta.concrete_fields
        if not field.primary_key
    }
    AttemptText.objects.create(attempt=attempt, **(texts | {"extraction": asdict(extraction)}))
    return attempt


def _place(sample: Sample) -> dict[str, Any]:
    """Which attempt of the sample comes next."""
    last = sample.attempts.aggregate(last=Max("number"))["last"] or 0
    kind = Attempt.Kind.RETRY if sample.losses else Attempt.Kind.FIRST
    return {"sample_id": sample.pk, "number": last + 1, "kind": kind}


def _store_attempt(sample: Sample, verdict: Verdict, worker: str, run_key: str) -> Attempt:
    attempt = Attempt.objects.create(
        **_place(sample),
        run_key=run_key,
        outcome=verdict.outcome.value,
        passed=verdict.passed,
        total=verdict.total,
        score=verdict.score,
        sealed=sum(target.label is Label.SEALED for target in verdict.targets),
        detail=plain(verdict.detail),
        failure_phase=verdict.failure.phase if verdict.failure else "",
        exception=_exception(verdict),
        denied=[plain(name) for name in verdict.denied],
        wall_s=verdict.wall_s,
        cpu_s=verdict.cpu_s,
        peak_bytes=verdict.peak_bytes,
        starved=verdict.starved,
        tier=verdict.tier,
        hardening=verdict.hardening,
        tricks=[trick.value for trick in verdict.tricks],
        python=verdict.python,
        grader_version=verdict.grader_version,
        worker=worker,
        created_at=timezone.now(),
    )
    AttemptText.objects.create(
        attempt=attempt,
        program=verdict.program,
        targets=[asdict(target) for target in verdict.targets],
        failure=asdict(verdict.failure) if verdict.failure else None,
        stdout=asdict(verdict.stdout),
        stderr=asdict(verdict.stderr),
        limits=verdict.limits,
        extraction=asdict(verdict.extraction),
    )
    return attempt


def _exception(verdict: Verdict) -> str:
    return plain(verdict.failure.exception)[:EXCEPTION_CHARACTERS] if verdict.failure else ""
