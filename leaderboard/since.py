"""Scores of an earlier snapshot, to show what moved since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from grading.engine.passk import TimeoutPolicy
from grading.models import BenchmarkVersion, Submission
from leaderboard.models import SnapshotRow
from leaderboard.rows import Row


@dataclass(frozen=True, slots=True)
class Earlier:
    """``snapshot``: its number, None where there is no earlier one; ``scores`` by model slug."""

    snapshot: int | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)

    def beside(self, rows: Iterable[Row]) -> list[Row]:
        """The same rows with the score they had then."""
        return [replace(row, before=self.scores.get(row.model_slug)) for row in rows]


def earlier(
    version: BenchmarkVersion,
    shown: int | None,
    wanted: int | None,
    score: int,
    timeouts: TimeoutPolicy,
) -> Earlier:
    """Scores by pass@``score`` in snapshot ``wanted``, else in the one before ``shown``.

    Runs that are no longer public are left out. One query.
    """
    if shown is None or shown < 2:
        return Earlier()
    number = wanted if wanted is not None and 0 < wanted < shown else shown - 1
    public = Submission.objects.filter(visibility=Submission.Visibility.PUBLIC)
    rows = SnapshotRow.objects.filter(
        snapshot__version=version,
        snapshot__number=number,
        submission__in=public.values("public_id"),
    )
    read = rows.values_list("facts__model_slug", f"figures__{timeouts}__pass_at")
    return Earlier(number, {slug: held[str(score)] for slug, held in read})
