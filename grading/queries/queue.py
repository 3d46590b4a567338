"""What the queue page reads: submissions being graded, oldest first, and who grades them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from grading.models import Chunk, Sample, Submission
from grading.permissions import Viewer, visible_submissions

SHOWN = 100


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
class Busy:
    """A worker that holds a chunk; ``left`` samples of it are not graded."""

    name: str
    left: int


def waiting(viewer: Viewer) -> list[Waiting]:
    """At most `SHOWN` submissions; four queries."""
    grading = Submission.objects.filter(state=Submission.State.GRADING).order_by("created_at")
    rows = list(grading.select_related("language_model", "version__benchmark")[:SHOWN])
    keys = [row.pk for row in rows]
    seen = set(visible_submissions(viewer).filter(pk__in=keys).values_list("pk", flat=True))
    queued = Sample.objects.filter(submission__in=keys, state=Sample.State.QUEUED)
    left = _counts(queued, Count("pk"))
    workers = _counts(_running().filter(submission__in=keys), Count("worker", distinct=True))
    lines, ahead = [], 0
    for row in rows:
        lines.append(
            Waiting(
                submission=row if row.pk in seen else None,
                samples=row.sample_count,
                left=left.get(row.pk, 0),
                ahead=ahead,
                workers=workers.get(row.pk, 0),
                heartbeat_at=row.heartbeat_at,
                own=viewer.is_authenticated and row.uploader_id == viewer.pk,
            )
        )
        ahead += lines[-1].left
    return lines


def _counts(rows: QuerySet[Any], what: Count) -> dict[int, int]:
    """``what``, by submission."""
    return dict(rows.order_by().values_list("submission").annotate(what))


def _running() -> QuerySet[Chunk]:
    now = timezone.now()
    return Chunk.objects.filter(state=Chunk.State.RUNNING, lease_until__gt=now)


def busy() -> list[Busy]:
    """Workers with a lease in force, by name; one query."""
    unfinished = Count("samples", filter=Q(samples__state=Sample.State.QUEUED))
    held = _running().annotate(left=unfinished).order_by("worker")
    return [Busy(*found) for found in held.values_list("worker", "left")]
