"""Jobs that ought to be in the broker and are not: rung for again, for everything that waits."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from evalsite import queueing
from grading import chunks, references, regrade_runs
from grading.models import Chunk, Submission


def top_up() -> int:
    """Queue waiting chunks of every submission in work; returns how many."""
    grading = Submission.objects.filter(state=Submission.State.GRADING)
    return sum(chunks.top_up(pk) for pk in grading.values_list("pk", flat=True))


def ring_missing(grace: timedelta) -> int:
    """Ring for all that waits without a job; returns for how much.

    A chunk queued less than ``grace`` ago may be on its way into the broker, or from it to a
    worker. Raises redis.RedisError, broker.NoBroker.
    """
    due = timezone.now() - grace
    queued = Chunk.objects.filter(state=Chunk.State.QUEUED, queued_at__lte=due)
    ids = set(queued.values_list("pk", flat=True))
    missing = ids - queueing.queued_ids(queueing.GRADE_CHUNK) if ids else ids
    rung = sum(chunks.ring(pk) for pk in sorted(missing))
    return rung + references.ring_missing() + regrade_runs.ring_missing()
