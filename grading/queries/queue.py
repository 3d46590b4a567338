"""What the queue page reads: submissions being graded, oldest first, and who grades them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis
from django.db.models import Count, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from evalsite import broker, queueing
from grading import chunks, queue_control
from grading.models import Attempt, QueueChange, RegradeRun, Sample, Submission
from grading.permissions import Viewer, visible_submissions
from grading.queries.progress import eta, rates_of

SHOWN = 100
BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A submission being graded; ``ahead`` samples of older ones wait as well.

    ``submission`` None where this viewer may not know whose it is.
    """

    submission: Submission | None
    samples: int
    left: int
    ahead: int
    workers: int
    heartbeat_at: datetime | None
    own: bool

    @property
    def done(self) -> int:
        return self.samples - self.left


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker; ``left`` samples of the chunk it holds are not graded, None where it holds none."""

    name: str
    state: str
    left: int | None
    heartbeat_at: datetime | None


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue as a whole. ``stopped`` is the operator's word while nothing new begins.

    ``waiting`` is at most `SHOWN` submissions, ``samples`` counts what waits of all. Without
    ``answers``, the broker is away and only workers that hold a chunk are known.
    """

    stopped: QueueChange | None
    waiting: list[Waiting]
    samples: int
    workers: list[Worker]
    answers: bool
    eta_s: tuple[float, float] | None

    @property
    def busy(self) -> int:
        """How many workers are at work."""
        return sum(worker.state == BUSY for worker in self.workers)


def queue(viewer: Viewer) -> Queue:
    """At most seven queries, whatever waits."""
    stopped = queue_control.stopped()
    held = list(chunks.at_work().annotate(left=chunks.LEFT))
    lines = _waiting(viewer, held)
    samples = sum(line.left for line in lines) if len(lines) < SHOWN else _samples().count()
    known = _listening()
    working = samples and held and not stopped
    return Queue(
        stopped=stopped,
        waiting=lines,
        samples=samples,
        workers=_workers(known or [], held),
        answers=known is not None,
        eta_s=eta(samples, rates_of(Attempt.objects.all())) if working else None,
    )


def holding() -> int:
    """Chunks, and runs of regrades, that workers hold; two queries."""
    runs = RegradeRun.objects.filter(state=RegradeRun.State.RUNNING, lease_until__gt=timezone.now())
    return chunks.at_work().count() + runs.count()


def _waiting(viewer: Viewer, held: list[Any]) -> list[Waiting]:
    """At most `SHOWN` submissions; three queries."""
    grading = Submission.objects.filter(state=Submission.State.GRADING)
    grading = grading.order_by(Coalesce("added_at", "created_at"))
    rows = list(grading.select_related("language_model", "version__benchmark")[:SHOWN])
    keys = [row.pk for row in rows]
    seen = set(visible_submissions(viewer).filter(pk__in=keys).values_list("pk", flat=True))
    queued = _samples().filter(submission__in=keys).order_by()
    left = dict(queued.values_list("submission").annotate(Count("pk")))
    lines, ahead = [], 0
    for row in rows:
        lines.append(
            Waiting(
                submission=row if row.pk in seen else None,
                samples=row.sample_count,
                left=left.get(row.pk, 0),
                ahead=ahead,
                workers=len({chunk.worker for chunk in held if chunk.submission_id == row.pk}),
                heartbeat_at=row.heartbeat_at,
                own=viewer.is_authenticated and row.uploader_id == viewer.pk,
            )
        )
        ahead += lines[-1].left
    return lines


def _samples() -> QuerySet[Sample]:
    return Sample.objects.filter(
        state=Sample.State.QUEUED, submission__state=Submission.State.GRADING
    )


def _listening() -> list[queueing.Listening] | None:
    """None where the broker does not answer."""
    try:
        return queueing.listening()
    except (redis.RedisError, broker.NoBroker):
        return None


def _workers(known: list[queueing.Listening], held: list[Any]) -> list[Worker]:
    """Those that hold a chunk, and those that only listen, by name."""
    found = {one.name: Worker(one.name, one.state, None, one.heartbeat_at) for one in known}
    for chunk in held:
        heartbeat_at = chunk.lease_until - chunks.LEASE
        found[chunk.worker] = Worker(chunk.worker, BUSY, chunk.left, heartbeat_at)
    return sorted(found.values(), key=lambda worker: worker.name)
