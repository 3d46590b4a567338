"""Competition ranks."""

from __future__ import annotations

import pytest

from leaderboard.ranking import competition_ranks


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ([], []),
        ([0.5, 0.9, 0.1], [2, 1, 3]),
        ([0.5, None, 0.9, 0.5, 0.1], [2, None, 1, 2, 4]),
        ([0.0, 0.0], [1, 1]),
        ([None], [None]),
    ],
)
def test_ties_share_a_rank_and_missing_values_take_none(values, ranks):
    assert competition_ranks(values) == ranks
