"""The sweep: finds what was lost and sets it going again. No state stays silent.

It runs in a process of its own every few seconds. Each step repairs a state that a crash of a
worker, of the broker or of a web process can leave behind, and does nothing where all is well.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta

import redis
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from evalsite import broker
from grading import bells, chunks, queue_control, regrade_runs, storing
from grading.intake import staging
from grading.models import Chunk, Sample, Submission

# A chunk younger than this may be on its way into the queue, or from it to a worker.
GRACE = timedelta(seconds=5)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep repaired: counts of chunks, samples and submissions."""

    recovered: int
    adopted: int
    rung: int
    closed: int

    @property
    def repaired(self) -> bool:
        return bool(self.recovered or self.adopted or self.rung)

    def __str__(self) -> str:
        return (
            f"{self.recovered} chunks of lost workers taken back, {self.adopted} samples without "
            f"a chunk adopted, {self.rung} missing jobs enqueued, {self.closed} submissions closed"
        )


def sweep_once() -> Swept:
    """Repair everything there is to repair once; remove staged files and drafts left lying."""
    staging.expire()
    queue_control.tell()
    storing.remove_abandoned()
    regrade_runs.recover()
    return Swept(_recover(), _adopt(), _ring_missing(), _close())


def _recover() -> int:
    expired = Chunk.objects.filter(state=Chunk.State.RUNNING, lease_until__lt=timezone.now())
    return sum(chunks.recover(pk) for pk in expired.values_list("pk", flat=True))


def _adopt() -> int:
    """Queued samples that no open chunk holds, such as after a chunk was deleted by hand."""
    homeless = Sample.objects.filter(
        Q(chunk__isnull=True) | Q(chunk__state=Chunk.State.DONE),
        state=Sample.State.QUEUED,
        submission__state=Submission.State.GRADING,
    ).order_by()
    adopted = 0
    for submission_id in homeless.values_list("submission_id", flat=True).distinct():
        with transaction.atomic():
            ids = list(homeless.filter(submission_id=submission_id).values_list("pk", flat=True))
            chunks.cut_singly(submission_id, ids)
            adopted += len(ids)
    return adopted


def _ring_missing() -> int:
    """Queued chunks without a job, such as after the broker was emptied; and waiting ones."""
    rung = bells.top_up()
    try:
        return rung + bells.ring_missing(GRACE)
    except (redis.RedisError, broker.NoBroker) as problem:
        log.warning("the broker does not answer: %s", problem)
        return rung


def _close() -> int:
    grading = Submission.objects.filter(state=Submission.State.GRADING)
    return sum(chunks.close_if_graded(pk) for pk in grading.values_list("pk", flat=True))
