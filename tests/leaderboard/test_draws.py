"""What k drawn samples hold, against reference values and every draw."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.passk import pass_at_k
from leaderboard.draws import best_at_k, g_pass_at_k, pass_hat_k, rerun_variance


def exact(text: str | None) -> float | None:
    return None if text is None else float(Fraction(text))


def test_all_of_k(reference):
    for row in reference["passk"]:
        assert pass_hat_k(row["n"], row["c"], row["k"]) == exact(row["pass_hat_k"]), row


def test_at_least_so_many_of_k(reference):
    for row in reference["g_pass_at_k"]:
        value = g_pass_at_k(row["n"], row["c"], row["k"], row["at_least"])
        assert value == exact(row["value"]), row


def test_best_of_k(reference):
    for row in reference["best_at_k"]:
        fractions = [Fraction(text) for text in row["fractions"]]
        assert best_at_k(fractions, row["k"]) == exact(row["value"]), row


def test_rerun_variance(reference):
    for row in reference["passk_rerun_variance"]:
        assert rerun_variance(row["n"], row["c"], row["k"]) == exact(row["value"]), row
    assert rerun_variance(9, 3, 5) is None


@pytest.mark.parametrize("at_least", [0, 4])
def test_more_than_k_of_k_is_refused(at_least):
    with pytest.raises(ValueError, match="needed"):
        g_pass_at_k(5, 2, 3, at_least)


def test_counts_are_checked():
    for call in (pass_hat_k, rerun_variance):
        with pytest.raises(ValueError, match="needed"):
            call(3, 4, 1)


points = st.integers(1, 8).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


@given(points)
def test_every_draw_counted(point):
    n, c, k = point
    draws = [sum(draw) for draw in combinations([1] * c + [0] * (n - c), k)]
    for least in range(1, k + 1):
        share = sum(passing >= least for passing in draws) / len(draws)
        assert g_pass_at_k(n, c, k, least) == share
    assert g_pass_at_k(n, c, k, k) == pass_hat_k(n, c, k)
    assert g_pass_at_k(n, c, k, 1) == pass_at_k(n, c, k)
    assert best_at_k([Fraction(1)] * c + [Fraction(0)] * (n - c), k) == pass_at_k(n, c, k)


@given(st.lists(st.fractions(0, 1, max_denominator=6), min_size=1, max_size=7), st.data())
def test_the_best_of_every_draw(fractions, data):
    k = data.draw(st.integers(1, len(fractions)))
    best = [max(draw) for draw in combinations(fractions, k)]
    assert best_at_k(fractions, k) == float(sum(best) / Fraction(len(best)))
