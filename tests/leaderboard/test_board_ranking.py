"""Competition ranks, rank ranges and the tests behind them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.multiple import holm
from leaderboard.ranking import Standing, competition_ranks, rank_ranges, standings
from leaderboard.statistics import paired


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


def test_reference_ranges(reference):
    for row in reference["rank_range"]:
        better = [(winner, loser) for winner, loser in row["significantly_better"]]
        assert rank_ranges(row["models"], better) == [tuple(held) for held in row["ranges"]]


def solved(count: int, of: int = 40) -> list[float]:
    return [1.0] * count + [0.0] * (of - count)


def test_models_far_apart_are_separated():
    found = standings({"a": solved(40), "b": solved(38), "c": solved(2)})
    assert found.of() == {
        "a": Standing(1, 2, better=1, worse=0, level=1),
        "b": Standing(1, 2, better=1, worse=0, level=1),
        "c": Standing(3, 3, better=0, worse=2, level=0),
    }
    assert found.level("a", "b")
    assert not found.level("c", "a")
    assert found.adjusted_p("a", "b") == found.adjusted_p("b", "a") > 0.05
    assert found.adjusted_p("c", "b") < 0.05
    assert found.adjusted_p("a", "a") is found.adjusted_p("a", "x") is None


def test_few_tasks_separate_nobody():
    found = standings({"a": solved(9, of=9), "b": solved(0, of=9)})
    assert [held.high for held in found.of().values()] == [2, 2]
    assert (found.adjusted_p("a", "b"), found.smallest) == (1, None)
    assert standings({"a": solved(10, of=10), "b": solved(0, of=10)}).of()["a"].high == 1


def test_nobody_and_one_alone():
    assert standings({}).of() == {}
    assert standings({"a": solved(3)}).of() == {"a": Standing(1, 1, 0, 0, 0)}


def test_equal_models_have_no_smallest_difference():
    assert standings({"a": solved(3), "b": solved(3)}).smallest is None
    assert standings({"a": solved(3), "b": solved(9)}).smallest == pytest.approx(0.1599, abs=1e-3)


scores = st.sampled_from([0.0, 0.2, 0.6, 1.0])
boards = st.lists(st.lists(scores, min_size=25, max_size=25), min_size=1, max_size=7)


@given(boards)
def test_ranges_hold_the_rank_and_follow_from_the_pairs(values):
    models = {str(i): one for i, one in enumerate(values)}
    found = standings(models)
    ranks = competition_ranks([round(sum(one), 9) for one in values])
    for rank, held in zip(ranks, found.of().values(), strict=True):
        assert held.low <= rank <= held.high
        assert held.better + held.worse + held.level == len(models) - 1
    pairs = list(combinations(models, 2))
    expected = holm([paired(models[a], models[b]).p for a, b in pairs])
    assert [found.adjusted_p(a, b) for a, b in pairs] == pytest.approx(expected, abs=1e-9)


@given(boards, st.randoms(use_true_random=False))
def test_the_order_of_models_changes_nothing(values, random):
    models = {str(i): one for i, one in enumerate(values)}
    mixed = list(models)
    random.shuffle(mixed)
    assert standings(models).of() == standings({name: models[name] for name in mixed}).of()
