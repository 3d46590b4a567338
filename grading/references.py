"""Reference solutions graded in the background: asked for on the version's row, so that the
request outlives its job."""

from __future__ import annotations

from evalsite import queueing
from grading.models import BenchmarkVersion

ASKED = "references_asked"


def ask(version: BenchmarkVersion) -> None:
    """Have the reference solutions without a verdict graded by a worker, once this commits."""
    version.notes[ASKED] = True
    version.save(update_fields=["notes"])
    queueing.enqueue(queueing.GRADE_REFERENCES, version.pk)


def answered(version: BenchmarkVersion) -> None:
    """Every reference solution of the version has its verdict."""
    version.notes.pop(ASKED, None)
    version.save(update_fields=["notes"])


def ring_missing() -> int:
    """Enqueue what was asked for and is neither queued nor running; returns how many.

    Raises redis.RedisError, broker.NoBroker.
    """
    asked = BenchmarkVersion.objects.filter(**{f"notes__{ASKED}": True})
    ids = set(asked.values_list("pk", flat=True))
    if not ids:
        return 0
    path = queueing.GRADE_REFERENCES
    missing = ids - queueing.queued_ids(path) - queueing.running_ids(path)
    for version_id in sorted(missing):
        queueing.enqueue(path, version_id)
    return len(missing)
