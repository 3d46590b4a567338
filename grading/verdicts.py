"""Writing verdicts: the only place where a sample becomes ``done``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from grading import chunks, crash_groups
from grading.engine.outcome import Label, Outcome, Verdict
from grading.engine.program import Program
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


@dataclass(frozen=True, slots=True)
class Repeat:
    """The verdict of an equal run, with its text; and a sample's own program, with its comments."""

    run: Attempt
    program: Program


@transaction.atomic
def repeat(lease: chunks.Lease, repeats: Mapping[int, Repeat]) -> set[int]:
    """Store verdicts of equal runs, by sample id, as attempts that name those runs.

    All in one transaction; otherwise as `record`. Returns the ids of the samples that got one.
    """
    samples = list(chunks.held_samples(lease, repeats).select_for_update())
    last = dict(
        Attempt.objects.filter(sample__in=samples).values_list("sample").annotate(Max("number"))
    )
    attempts = Attempt.objects.bulk_create(
        _copy(sample, repeats[sample.pk].run, last.get(sample.pk, 0) + 1, lease.worker)
        for sample in samples
    )
    AttemptText.objects.bulk_create(
        _text_copy(attempt, repeats[attempt.sample_id]) for attempt in attempts
    )
    make_current(list(zip(samples, attempts, strict=True)))
    recompute(lease.submission_id, {sample.task_id for sample in samples})
    return {sample.pk for sample in samples}


def copy_of(run: Attempt, sample: Sample) -> Attempt:
    """Store a run with its text as the first attempt of a sample taken over from elsewhere.

    It names the run; when and by whom that was made stays. Call it in a transaction.
    """
    place = {"sample_id": sample.pk, "number": 1, "repeats_id": run.repeats_id or run.pk}
    attempt = Attempt.objects.create(**_facts_of(run) | place)
    AttemptText.objects.create(**_facts_of(run.text) | {"attempt": attempt})
    return attempt


def _facts_of(row: Attempt | AttemptText) -> dict[str, Any]:
    """All fields of a record but its key, by column."""
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if not field.primary_key
    }


def _copy(sample: Sample, run: Attempt, number: int, worker: str) -> Attempt:
    return Attempt(
        **_facts_of(run)
        | {
            "sample_id": sample.pk,
            "number": number,
            "kind": _kind(sample),
            "repeats_id": run.pk,
            "worker": worker,
            "created_at": timezone.now(),
        }
    )


def _text_copy(attempt: Attempt, repeated: Repeat) -> AttemptText:
    program = repeated.program
    own = {
        "attempt": attempt,
        "program": program.text,
        "extraction": asdict(program.extraction),
    }
    return AttemptText(**_facts_of(repeated.run.text) | own)


def _decide(sample: Sample, attempt: Attempt) -> None:
    make_current([(sample, attempt)])
    recompute(sample.submission_id, [sample.task_id])


_MAKE_CURRENT = (
    f"UPDATE {Sample._meta.db_table} SET state = %s, started_at = NULL,"
    " current_attempt_id = %s, fingerprint_id = %s WHERE id = %s"
)


def make_current(decided: crash_groups.Decided) -> None:
    """Let attempts with their texts be the verdicts of samples; task scores are not touched.

    Call it in a transaction that holds the samples.
    """
    fingerprints = crash_groups.of_attempts(decided)
    rows = [
        (Sample.State.DONE.value, attempt.pk, one.pk if one else None, sample.pk)
        for (sample, attempt), one in zip(decided, fingerprints, strict=True)
    ]
    # Every row has values of its own: as one prepared statement a tenth of a bulk update's time.
    with connection.cursor() as cursor:
        cursor.executemany(_MAKE_CURRENT, rows)
    crash_groups.woken_by(decided, fingerprints)


@transaction.atomic
def record_platform_failure(sample_id: int, chunk_token: str, reason: str) -> bool:
    """Count a failure of the platform against a queued sample; it is tried again, or given up.

    Never an attempt, never part of n.
    """
    return chunks.charge(_claimed(sample_id, chunk_token), plain(reason)) == 1


def recompute(submission_id: int, task_ids: Collection[int]) -> None:
    """Derive task scores from the current attempts of the tasks' done samples.

    The scores are locked first, in one order, so that of two at once the later one counts what the
    earlier one decided.
    """
    _lock_scores(submission_id, task_ids)
    facts = _facts(submission_id, task_ids)
    TaskScore.objects.bulk_create(
        [
            TaskScore(submission_id=submission_id, task_id=pk, **facts.get(pk, _NOTHING))
            for pk in task_ids
        ],
        update_conflicts=True,
        unique_fields=["submission", "task"],
        update_fields=list(_NOTHING),
    )


def _lock_scores(submission_id: int, task_ids: Collection[int]) -> None:
    scores = TaskScore.objects.filter(submission_id=submission_id, task_id__in=task_ids)
    ordered = scores.order_by("task_id").select_for_update().values_list("task_id", flat=True)
    missing = set(task_ids) - set(ordered)
    if missing:
        made = [TaskScore(submission_id=submission_id, task_id=pk, **_NOTHING) for pk in missing]
        TaskScore.objects.bulk_create(made, ignore_conflicts=True)
        list(ordered.all())


_FAILING = [outcome for outcome in Outcome if outcome is not Outcome.PASS]
_NOTHING: dict[str, Any] = {"n": 0, "c": 0, "fraction_sum": 0.0} | dict.fromkeys(
    (outcome.value for outcome in _FAILING), 0
)


def _facts(submission_id: int, task_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """What the scores of tasks with a done sample are."""
    outcome = "current_attempt__outcome"
    done = Sample.objects.filter(
        submission_id=submission_id, task_id__in=task_ids, state=Sample.State.DONE
    )
    rows = (
        done.order_by()
        .values("task_id")
        .annotate(
            n=Count("pk"),
            c=Count("pk", filter=Q(**{outcome: Outcome.PASS})),
            fraction_sum=Sum("current_attempt__score", default=0.0),
            **{kind.value: Count("pk", filter=Q(**{outcome: kind})) for kind in _FAILING},
        )
    )
    return {row["task_id"]: {name: dict(row)[name] for name in _NOTHING} for row in rows}


def _claimed(sample_id: int, chunk_token: str) -> QuerySet[Sample]:
    """The sample, if it is queued in the chunk that runs under ``chunk_token``; locked when read.

    The chunk is locked first, and every condition is on the locked row itself: one inside a
    subquery would still hold after waiting for the transaction that broke it.
    """
    chunk_id = Sample.objects.filter(pk=sample_id).values_list("chunk_id", flat=True).first()
    if chunk_id is None:
        return Sample.objects.none()
    running = Chunk.objects.filter(pk=chunk_id, token=chunk_token, state=Chunk.State.RUNNING)
    if running.select_for_update().first() is None:
        return Sample.objects.none()
    return Sample.objects.select_for_update().filter(
        pk=sample_id, state=Sample.State.QUEUED, chunk_id=chunk_id
    )


def _place(sample: Sample) -> dict[str, Any]:
    """Which attempt of the sample comes next."""
    last = sample.attempts.aggregate(last=Max("number"))["last"] or 0
    return {"sample_id": sample.pk, "number": last + 1, "kind": _kind(sample)}


def _kind(sample: Sample) -> str:
    return Attempt.Kind.RETRY if sample.losses else Attempt.Kind.FIRST


def store_shadow(sample: Sample, verdict: Verdict, worker: str, run_key: str) -> Attempt:
    """Store the verdict of a regrade beside the sample's own, which it does not touch.

    Call it in a transaction that holds the sample.
    """
    return _store_attempt(sample, verdict, worker, run_key, Attempt.Kind.REGRADE)


def _store_attempt(
    sample: Sample, verdict: Verdict, worker: str, run_key: str, kind: str = ""
) -> Attempt:
    attempt = Attempt.objects.create(
        **_place(sample) | ({"kind": kind} if kind else {}),
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
        environment=verdict.environment,
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
