"""What other scores would do to the ranks of a board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grading.models import BenchmarkVersion, Regrade
from grading.queries.regrades import versions_of
from grading.regrade_results import ScoreChange
from leaderboard import queries
from leaderboard.ranking import competition_ranks


@dataclass(frozen=True, slots=True)
class RankChange:
    """A model whose rank by pass@1 would be another one; it stays ranked."""

    model: str
    submission: str
    before: int
    after: int


def boards_with(
    regrade: Regrade, changes: Iterable[ScoreChange]
) -> list[tuple[BenchmarkVersion, list[RankChange]]]:
    """The boards on which ranks would move if a regrade was applied, and how."""
    gains = {change.submission: change.after - change.before for change in changes}
    boards = [(version, rank_changes(version, gains)) for version in versions_of(regrade)]
    return [(version, found) for version, found in boards if found]


def rank_changes(version: BenchmarkVersion, gains: Mapping[str, float]) -> list[RankChange]:
    """Ranks that would move if pass@1 of submissions rose by ``gains``, in order of rank.

    ``gains`` by public id; of complete ranked submissions only, the others take no rank.
    """
    rows = queries.board(version).ranked
    values = [
        None if row.value is None else row.value + gains.get(row.public_id, 0.0) for row in rows
    ]
    # Equal scores share a rank; rounding of the sum must not part them.
    ranks = competition_ranks([None if value is None else round(value, 12) for value in values])
    return [
        RankChange(row.model, row.public_id, row.rank, rank)
        for row, rank in zip(rows, ranks, strict=True)
        if rank is not None and row.rank is not None and rank != row.rank
    ]
