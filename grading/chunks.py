"""Chunks: who grades which samples, and until when that claim holds.

``waiting`` -> ``queued`` (a job rings for it) -> ``running`` (leased) -> ``done``. The rows are the
record; a job that rings for a chunk in any other state than ``queued`` changes nothing. Locks are
taken in the order chunk, sample, task score, submission.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from evalsite import queueing
from grading import crash_groups
from grading.models import Addition, Chunk, Generation, Sample, Submission, WorkerLoss

# Taking a chunk costs a worker 0.15 s, for a fork and its own sandboxes; so a large submission has
# large ones, and a small one enough of them for all workers.
LEAST_SAMPLES, MOST_SAMPLES = 20, 80
CHUNKS = 20
LEASE = timedelta(seconds=15)
# Chunks of one submission in the queue or at work at once: enough for every worker, few enough
# that a small submission does not wait behind all of a huge one.
IN_QUEUE = max(4, 2 * (os.cpu_count() or 1))
MAX_LOSSES = 3
REMOVED_AT_ONCE = 1_000
IDLE = (Chunk.State.WAITING, Chunk.State.QUEUED)
# Samples of a chunk that are not graded, to annotate chunks with.
LEFT = Count("samples", filter=Q(samples__state=Sample.State.QUEUED))


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's claim on a chunk; the token tells it from every earlier and later claim."""

    chunk_id: int
    submission_id: int
    token: str
    worker: str


def start(submission: Submission) -> None:
    """Put the first chunks of a new submission in the queue, once the transaction commits."""
    top_up(submission.pk)


@transaction.atomic
def top_up(submission_id: int) -> int:
    """Queue waiting chunks until ``IN_QUEUE`` are open; returns how many were queued."""
    submission = Submission.objects.select_for_update().get(pk=submission_id)
    if submission.state != Submission.State.GRADING:
        return 0
    chunks = Chunk.objects.filter(submission=submission)
    taken = chunks.filter(state__in=[Chunk.State.QUEUED, Chunk.State.RUNNING]).count()
    waiting = chunks.filter(state=Chunk.State.WAITING).order_by("position")
    ids = waiting.values_list("pk", flat=True)[: max(0, IN_QUEUE - taken)]
    return sum(ring(chunk_id) for chunk_id in list(ids))


def ring(chunk_id: int) -> bool:
    """Mark a waiting or queued chunk queued and enqueue a job for it; False if it is neither."""
    idle = Chunk.objects.filter(pk=chunk_id, state__in=IDLE)
    if not idle.update(state=Chunk.State.QUEUED, queued_at=timezone.now()):
        return False
    queueing.enqueue(queueing.GRADE_CHUNK, chunk_id)
    return True


def take(chunk_id: int, worker: str) -> Lease | None:
    """Lease a queued chunk to ``worker``; None when it is not to be had (any more)."""
    token = secrets.token_hex(16)
    taken = Chunk.objects.filter(pk=chunk_id, state=Chunk.State.QUEUED).update(
        state=Chunk.State.RUNNING,
        token=token,
        lease_until=timezone.now() + LEASE,
        tries=F("tries") + 1,
        worker=worker,
    )
    if not taken:
        return None
    submission_id = Chunk.objects.values_list("submission_id", flat=True).get(pk=chunk_id)
    return Lease(chunk_id, submission_id, token, worker)


def renew(lease: Lease) -> bool:
    """Extend the lease and the submission's heartbeat; False when the lease was lost."""
    now = timezone.now()
    if not _held(lease).update(lease_until=now + LEASE):
        return False
    Submission.objects.filter(pk=lease.submission_id).update(heartbeat_at=now)
    return True


def at_work() -> QuerySet[Chunk]:
    """Chunks with a lease in force; their workers last renewed it `LEASE` before its end."""
    return Chunk.objects.filter(state=Chunk.State.RUNNING, lease_until__gt=timezone.now())


def queued_samples(lease: Lease) -> list[int]:
    """Ids of the samples the lease holder still has to grade, in order."""
    samples = _queued(lease.chunk_id).order_by("task__position", "index")
    return list(samples.values_list("pk", flat=True))


def held_samples(lease: Lease, ids: Iterable[int]) -> QuerySet[Sample]:
    """Those of the samples that the lease holder still has to grade. Locks the chunk.

    Call it in a transaction. The chunk is locked first, so that a lease that ends meanwhile has
    ended before or ends after.
    """
    if not _lock(lease):
        return Sample.objects.none()
    return _queued(lease.chunk_id).filter(pk__in=list(ids)).order_by("pk")


def begin(lease: Lease, sample_id: int) -> bool:
    """Mark a sample as in flight; False when it is no longer ours to grade."""
    if not renew(lease):
        return False
    return bool(_queued(lease.chunk_id).filter(pk=sample_id).update(started_at=timezone.now()))


def finish(lease: Lease) -> None:
    """End the lease: the chunk is done, or queued again while it holds queued samples."""
    with transaction.atomic():
        if not _lock(lease):
            return
        left = _queued(lease.chunk_id).exists()
        _release(lease.chunk_id, Chunk.State.QUEUED if left else Chunk.State.DONE)
        if left:
            ring(lease.chunk_id)
        top_up(lease.submission_id)
    close_if_graded(lease.submission_id)


@transaction.atomic
def hold(lease: Lease, reason: str) -> None:
    """The platform cannot grade now: keep the chunk queued and say why on its samples.

    No job is enqueued: the sweep rings for it again, so a broken platform is tried every few
    seconds and no sample is charged for it.
    """
    if _lock(lease):
        _queued(lease.chunk_id).update(platform_failure=reason)
        _release(lease.chunk_id, Chunk.State.QUEUED)
        Chunk.objects.filter(pk=lease.chunk_id).update(queued_at=timezone.now())


def recover(chunk_id: int) -> bool:
    """Take back a chunk whose lease ran out: its worker is lost.

    The sample in flight is charged with the loss (the third one makes it ``platform_failed``).
    What is left is cut into single samples, so that one that kills its worker harms no other.
    Returns False when the lease turned out to hold.
    """
    with transaction.atomic():
        expired = Chunk.objects.select_for_update().filter(
            pk=chunk_id, state=Chunk.State.RUNNING, lease_until__lt=timezone.now()
        )
        chunk = expired.first()
        if chunk is None:
            return False
        in_flight = _queued(chunk_id).filter(started_at__isnull=False)
        charge(in_flight, f"Worker {chunk.worker} was lost while it ran this sample.")
        left = list(_queued(chunk_id).values_list("pk", flat=True))
        _release(chunk_id, Chunk.State.WAITING if len(left) == 1 else Chunk.State.DONE)
        if len(left) > 1:
            cut_singly(chunk.submission_id, left)
        WorkerLoss.objects.create(
            submission_id=chunk.submission_id, worker=chunk.worker, samples=len(left)
        )
        top_up(chunk.submission_id)
    close_if_graded(chunk.submission_id)
    return True


def charge(samples: QuerySet[Sample], reason: str) -> int:
    """Count a loss against queued samples; the last one allowed ends them. Returns how many.

    Call it in a transaction.
    """
    ids = list(samples.values_list("pk", flat=True))
    queued = Sample.objects.filter(pk__in=ids, state=Sample.State.QUEUED)
    charged = queued.update(losses=F("losses") + 1, started_at=None, platform_failure=reason)
    lost = queued.filter(losses__gte=MAX_LOSSES)
    if lost.exists():
        fingerprint = crash_groups.of_platform_failure(reason)
        lost.update(state=Sample.State.PLATFORM_FAILED, fingerprint=fingerprint)
    return charged


def cut_singly(submission_id: int, sample_ids: list[int]) -> None:
    """Give each queued sample a waiting chunk of its own, at the end of the submission."""
    first = next_position(submission_id)
    for offset, sample_id in enumerate(sample_ids):
        chunk = Chunk.objects.create(submission_id=submission_id, position=first + offset)
        Sample.objects.filter(pk=sample_id, state=Sample.State.QUEUED).update(
            chunk=chunk, started_at=None
        )


def samples_each(count: int) -> int:
    """How many of ``count`` samples a chunk holds."""
    return min(max(count // CHUNKS, LEAST_SAMPLES), MOST_SAMPLES)


def next_position(submission_id: int) -> int:
    """Where a further chunk of the submission goes."""
    chunks = Chunk.objects.filter(submission_id=submission_id)
    last: int | None = chunks.aggregate(last=Max("position"))["last"]
    return 0 if last is None else last + 1


@transaction.atomic
def close_if_graded(submission_id: int) -> bool:
    """Mark the submission done when none of its samples is queued; True if that was now.

    It is locked first, so that samples added at this moment are either seen here or reopen it.
    """
    _lock_submission(submission_id)
    queued = Sample.objects.filter(submission=OuterRef("pk"), state=Sample.State.QUEUED)
    grading = Submission.objects.filter(pk=submission_id, state=Submission.State.GRADING)
    closed = grading.exclude(Exists(queued)).update(
        state=Submission.State.DONE, finished_at=timezone.now()
    )
    return bool(closed)


@transaction.atomic
def cancel_submission(submission: Submission, by: int | None = None) -> int:
    """Cancel what is still queued; verdicts so far stay. Returns the number of samples cancelled.

    ``by`` is the key of who asked for it. A sample in flight ends unrecorded. Where the submission
    had been done before samples were added, those still queued are taken away, and it is done.
    """
    was_done = Addition.objects.filter(submission=submission, reopened=True).exists()
    cancelled = _stop(submission, was_done)
    # Samples come before their submission in the order of locks, so some may have been added
    # between the two; from here on none is.
    _lock_submission(submission.pk)
    cancelled += _stop(submission, was_done)
    grading = Submission.objects.filter(pk=submission.pk, state=Submission.State.GRADING)
    ended: dict[str, Any]
    if was_done:
        _shrink_additions(submission, cancelled)
        ended = {"state": Submission.State.DONE, "sample_count": F("sample_count") - cancelled}
    else:
        ended = {"state": Submission.State.CANCELLED, "cancelled_by": by}
    grading.update(finished_at=timezone.now(), **ended)
    Chunk.objects.filter(submission=submission, state__in=IDLE).update(state=Chunk.State.DONE)
    return cancelled


def _shrink_additions(submission: Submission, removed: int) -> None:
    """Let the newest additions say how many of their samples are left; none: it never was."""
    for one in Addition.objects.filter(submission=submission).order_by("-pk"):
        left = max(0, one.sample_count - removed)
        removed -= one.sample_count - left
        if left:
            Addition.objects.filter(pk=one.pk).update(sample_count=left)
        else:
            one.delete()


def _stop(submission: Submission, remove: bool) -> int:
    """Cancel its queued samples, or remove them; returns how many."""
    samples = Sample.objects.filter(submission=submission, state=Sample.State.QUEUED)
    if not remove:
        return samples.update(state=Sample.State.CANCELLED, started_at=None)
    ids = list(samples.order_by("pk").select_for_update().values_list("pk", flat=True))
    for start in range(0, len(ids), REMOVED_AT_ONCE):
        some = ids[start : start + REMOVED_AT_ONCE]
        Generation.objects.filter(sample__in=some).delete()
        Sample.objects.filter(pk__in=some).delete()
    return len(ids)


def _lock_submission(submission_id: int) -> None:
    # Not against foreign keys: a verdict's new task score refers to it.
    Submission.objects.select_for_update(no_key=True).filter(pk=submission_id).first()


def _held(lease: Lease) -> QuerySet[Chunk]:
    return Chunk.objects.filter(pk=lease.chunk_id, token=lease.token, state=Chunk.State.RUNNING)


def _lock(lease: Lease) -> bool:
    """Lock the chunk if the lease still holds."""
    return _held(lease).select_for_update().first() is not None


def _queued(chunk_id: int) -> QuerySet[Sample]:
    return Sample.objects.filter(chunk_id=chunk_id, state=Sample.State.QUEUED)


def _release(chunk_id: int, state: Chunk.State) -> None:
    Chunk.objects.filter(pk=chunk_id).update(state=state, token="", lease_until=None)
