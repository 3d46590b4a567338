"""What the live part of a submission page reads: how far it is and when it will be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from grading import chunks, queue_control
from grading.engine.outcome import Outcome
from grading.models import Attempt, QueueChange, Sample, Submission, TaskScore, WorkerLoss
from grading.queries.submissions import Row, graded_samples, outcome_counts, rows, sample_states

LATEST = 5
# An ETA from fewer verdicts than this is noise.
ETA_MIN_SAMPLES = 20
ETA_WINDOWS = (20, 100)
# No heartbeat for this long means that no worker is at it.
SILENT_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker that holds a chunk of the submission; ``left`` samples of it are not done."""

    name: str
    left: int
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """A live submission. ``eta_s`` is a range in seconds; ``rate`` in samples per second.

    ``faulted`` samples met a fault of the platform and are queued again, ``fault`` is the last
    one's reason; ``failed`` ones met it too often. ``ahead_*`` count older submissions that are
    still being graded. ``losses`` are the workers lost while they held a chunk of it, newest first;
    ``stopped`` is the operator's word while nothing new begins, and then there is no ETA.
    """

    total: int
    done: int
    cancelled: int
    failed: int
    faulted: int
    fault: str
    counts: dict[str, int]
    workers: list[WorkerRow]
    latest: list[Row]
    ahead_submissions: int
    ahead_samples: int
    silent: bool
    rate: float | None
    eta_s: tuple[float, float] | None
    losses: list[WorkerLoss]
    stopped: QueueChange | None

    @property
    def running(self) -> bool:
        return bool(self.workers)

    @property
    def left(self) -> int:
        return self.total - self.done - self.cancelled - self.failed

    @property
    def passing(self) -> float:
        """Share of the graded samples that pass."""
        return self.counts[Outcome.PASS.value] / self.done if self.done else 0.0

    @property
    def quarter(self) -> int:
        """Quarters of the samples that are graded, 0 to 4."""
        return 4 * self.done // self.total if self.total else 0


def progress(submission: Submission) -> Progress:
    """Eight or nine queries, whatever the size of the submission."""
    states = sample_states(submission)
    rates = rates_of(_attempts(submission))
    stopped = queue_control.stopped()
    left = states["queued"]
    ahead = _ahead(submission)
    enough = states["done"] >= ETA_MIN_SAMPLES
    return Progress(
        total=submission.sample_count,
        done=states["done"],
        cancelled=states["cancelled"],
        failed=states["failed"],
        faulted=states["faulted"],
        fault=_last_fault(submission) if states["faulted"] else "",
        counts=outcome_counts(TaskScore.objects.filter(submission=submission)),
        workers=_workers(submission),
        latest=rows(graded_samples(submission).order_by("-current_attempt_id")[:LATEST]),
        ahead_submissions=ahead[0],
        ahead_samples=ahead[1],
        silent=_silent(submission),
        rate=rates[0] if rates else None,
        eta_s=eta(left, rates) if enough and not stopped else None,
        losses=list(WorkerLoss.objects.filter(submission=submission)),
        stopped=stopped,
    )


def _attempts(submission: Submission) -> QuerySet[Attempt]:
    """Those of its newest samples' time: older ones say nothing of how fast they go."""
    attempts = Attempt.objects.filter(sample__submission=submission)
    return attempts.filter(created_at__gte=submission.added_at) if submission.added_at else attempts


def rates_of(attempts: QuerySet[Attempt]) -> list[float]:
    """Verdicts per second over the last few and the last many attempts, as far as known."""
    newest = attempts.order_by("-pk").values_list("created_at", flat=True)
    moments = list(newest[: max(ETA_WINDOWS)])
    return [rate for rate in (_rate(moments[:window]) for window in ETA_WINDOWS) if rate]


def eta(left: int, rates: Sequence[float]) -> tuple[float, float] | None:
    """Seconds until ``left`` samples are graded, as a range."""
    return (left / max(rates), left / min(rates)) if rates else None


def _silent(submission: Submission) -> bool:
    last = submission.heartbeat_at or submission.queued_at
    return timezone.now() - last > SILENT_AFTER


def _last_fault(submission: Submission) -> str:
    faulted = Sample.objects.filter(submission=submission, state=Sample.State.QUEUED)
    reasons = faulted.exclude(platform_failure="").order_by("-pk")
    return reasons.values_list("platform_failure", flat=True).first() or ""


def _rate(moments: Sequence[datetime]) -> float | None:
    """Verdicts per second over a window, newest first; None where it says nothing."""
    if len(moments) < 2:
        return None
    span = (moments[0] - moments[-1]).total_seconds()
    return (len(moments) - 1) / span if span > 0 else None


def _ahead(submission: Submission) -> tuple[int, int]:
    """Older submissions still being graded, and their queued samples."""
    queued = Sample.objects.filter(
        state=Sample.State.QUEUED,
        submission__state=Submission.State.GRADING,
    )
    came = Coalesce("submission__added_at", "submission__created_at")
    queued = queued.annotate(came=came).filter(came__lt=submission.queued_at)
    found = queued.aggregate(submissions=Count("submission", distinct=True), samples=Count("pk"))
    return found["submissions"], found["samples"]


def _workers(submission: Submission) -> list[WorkerRow]:
    held = chunks.at_work().filter(submission=submission)
    rows = held.annotate(left=chunks.LEFT).order_by("worker", "position")
    return [
        WorkerRow(row.worker, row.left, row.lease_until - chunks.LEASE)
        for row in rows
        if row.lease_until
    ]
