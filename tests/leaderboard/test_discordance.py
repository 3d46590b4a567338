"""Exact tests by counting, against reference values and brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.discordance import TwoByTwo, mcnemar_p, sign_flip_p, two_by_two


def test_reference_pairs(reference):
    for row in reference["paired"]:
        a, b = ([Fraction(text) for text in row[side]] for side in "ab")
        differences = [x - y for x, y in zip(a, b, strict=True)]
        assert sign_flip_p(differences) == float(Fraction(row["sign_flip_p"])), row
        counts = [sum(d > 0 for d in differences), sum(d < 0 for d in differences)]
        assert [*counts, differences.count(0)] == [
            row["n_a_better"],
            row["n_b_better"],
            row["n_tied"],
        ]
        if "mcnemar_exact_p" in row:
            table = two_by_two((x == 1, y == 1) for x, y in zip(a, b, strict=True))
            assert [table.only_a, table.only_b] == counts
            assert table.mcnemar_p == float(Fraction(row["mcnemar_exact_p"])), row


def test_two_by_two_counts_every_task_once():
    tasks = [(True, True), (True, False), (True, False), (False, True), (False, False)]
    assert two_by_two(tasks) == TwoByTwo(both=1, only_a=2, only_b=1, neither=1)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"), [(0, 0, 1), (1, 1, 1), (5, 0, 1 / 16), (3_000, 2_999, 1)]
)
def test_mcnemar_at_its_edges(only_a, only_b, p):
    assert mcnemar_p(only_a, only_b) == mcnemar_p(only_b, only_a) == pytest.approx(p, abs=0.01)


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="needed"):
        mcnemar_p(-1, 3)


def test_too_many_sums_have_no_p():
    assert sign_flip_p([Fraction(1, 2 + i) for i in range(30)]) is None
    assert sign_flip_p([]) == 1


@given(st.lists(st.fractions(-1, 1, max_denominator=5), max_size=7))
def test_sign_flips_are_those_of_every_choice(differences):
    sums = [
        sum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    extreme = sum(abs(total) >= abs(sum(differences)) for total in sums)
    assert sign_flip_p(differences) == extreme / len(sums)


@given(st.lists(st.booleans(), max_size=60))
def test_at_one_sample_per_task_both_tests_are_one(wins):
    differences = [Fraction(1 if win else -1) for win in wins]
    assert sign_flip_p(differences) == mcnemar_p(wins.count(True), wins.count(False))
