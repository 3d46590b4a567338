"""Running a regrade: leases on single runs, so that no loss of a worker loses one.

``queued`` -> ``running`` (leased) -> ``done``; a run whose lease ran out is queued again, and the
third loss makes it ``platform_failed``. The rows are the record, jobs only ring; several jobs may
work on one regrade.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from evalsite import queueing
from grading import chunks, verdicts
from grading.engine.outcome import Verdict
from grading.fields import plain
from grading.models import Regrade, RegradeRun, Sample

# Few, so that a submission that comes in meanwhile does not wait long for a worker.
RUNS_PER_JOB = 10
LEASE = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's claim on one run."""

    run: RegradeRun
    token: str
    worker: str


def ring(regrade: Regrade) -> None:
    """Enqueue as many jobs as may work at once, when the transaction commits."""
    waiting = _queued(regrade.pk).count()
    for _ in range(min(chunks.IN_QUEUE, -(-waiting // RUNS_PER_JOB))):
        queueing.enqueue(queueing.REGRADE, regrade.pk)


def ring_missing() -> int:
    """Enqueue a job for each regrade with runs to make and none in the queue; returns how many.

    Raises redis.RedisError, broker.NoBroker.
    """
    left = Exists(_queued(OuterRef("pk")))
    ids = set(_running().filter(left).values_list("pk", flat=True))
    missing = ids - queueing.queued_ids(queueing.REGRADE) if ids else ids
    for regrade_id in sorted(missing):
        queueing.enqueue(queueing.REGRADE, regrade_id)
    return len(missing)


def claim(regrade_id: int, worker: str) -> Claim | None:
    """Lease the next run; None where none is left or the regrade is not running any more."""
    if not _running().filter(pk=regrade_id).exists():
        return None
    token = secrets.token_hex(16)
    while (pk := _queued(regrade_id).values_list("pk", flat=True).first()) is not None:
        taken = RegradeRun.objects.filter(pk=pk, state=RegradeRun.State.QUEUED).update(
            state=RegradeRun.State.RUNNING,
            token=token,
            lease_until=timezone.now() + LEASE,
            worker=worker,
        )
        if taken:
            rows = RegradeRun.objects.select_related(
                "sample__generation", "task__version__benchmark", "task__version__environment"
            )
            return Claim(rows.get(pk=pk), token, worker)
    return None


def renew(claim: Claim) -> bool:
    """Extend the lease; False where it was lost."""
    return bool(_held(claim).update(lease_until=timezone.now() + LEASE))


@transaction.atomic
def record(claim: Claim, verdict: Verdict, run_key: str) -> bool:
    """Store a shadow attempt; False, changing nothing, where the claim or the regrade ended."""
    if _locked(claim) is None:
        return False
    sample = Sample.objects.select_for_update().get(pk=claim.run.sample_id)
    attempt = verdicts.store_shadow(sample, verdict, claim.worker, run_key)
    _held(claim).update(state=RegradeRun.State.DONE, attempt=attempt, token="", lease_until=None)
    close(claim.run.regrade_id)
    return True


@transaction.atomic
def fail(claim: Claim, reason: str) -> None:
    """Count a failure of the platform against a run; it is made again, or given up."""
    run = _locked(claim)
    if run is not None:
        _charge(run, reason)
        close(run.regrade_id)


def recover() -> int:
    """Take back runs whose lease ran out: their worker is lost. Returns how many."""
    expired = RegradeRun.objects.filter(
        state=RegradeRun.State.RUNNING, lease_until__lt=timezone.now()
    )
    recovered = 0
    for pk in list(expired.values_list("pk", flat=True)):
        with transaction.atomic():
            run = expired.select_for_update().filter(pk=pk).first()
            if run is not None:
                _charge(run, f"Worker {run.worker} was lost while it ran this sample.")
                close(run.regrade_id)
                recovered += 1
    return recovered


def close(regrade_id: int) -> bool:
    """Mark the regrade ready when no run is open; True if that was now."""
    open_ = RegradeRun.objects.filter(
        regrade=OuterRef("pk"), state__in=[RegradeRun.State.QUEUED, RegradeRun.State.RUNNING]
    )
    closed = _running().filter(pk=regrade_id).exclude(Exists(open_))
    return bool(closed.update(state=Regrade.State.READY, ready_at=timezone.now()))


def _charge(run: RegradeRun, reason: str) -> None:
    lost = run.losses + 1 >= chunks.MAX_LOSSES
    states = RegradeRun.State
    RegradeRun.objects.filter(pk=run.pk).update(
        state=states.PLATFORM_FAILED if lost else states.QUEUED,
        losses=F("losses") + 1,
        platform_failure=plain(reason),
        token="",
        lease_until=None,
    )


def _running() -> QuerySet[Regrade]:
    return Regrade.objects.filter(state=Regrade.State.RUNNING)


def _queued(regrade_id: int | OuterRef) -> QuerySet[RegradeRun]:
    found = RegradeRun.objects.filter(regrade=regrade_id, state=RegradeRun.State.QUEUED)
    return found.order_by("pk")


def _held(claim: Claim) -> QuerySet[RegradeRun]:
    return RegradeRun.objects.filter(
        pk=claim.run.pk, token=claim.token, state=RegradeRun.State.RUNNING
    )


def _locked(claim: Claim) -> RegradeRun | None:
    """The run, locked, while the claim holds and the regrade runs."""
    regrade = _running().select_for_update().filter(pk=claim.run.regrade_id)
    if regrade.first() is None:
        return None
    return _held(claim).select_for_update().first()
