"""Variance split and smallest difference, against reference values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.draws import rerun_variance
from leaderboard.precision import smallest_difference, variance_split


def test_reference_split(reference):
    (row,) = reference["variance"]
    found = variance_split([(n, c) for n, c in row["tasks"]])
    for name in (
        "task_variance",
        "se_squared",
        "within",
        "between",
        "within_share",
        "rerun_se_squared",
    ):
        assert getattr(found, name) == float(Fraction(row[name])), name


@pytest.mark.parametrize("tasks", [[], [(5, 2)], [(5, 2), (1, 1)]])
def test_without_repeats_there_is_no_split(tasks):
    assert variance_split(tasks) is None


def test_tasks_all_alike_have_nothing_to_split():
    found = variance_split([(5, 5), (5, 5)])
    assert (found.task_variance, found.within_share, found.between) == (0, 0, 0)


tasks = st.integers(2, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(st.lists(tasks, min_size=2, max_size=30))
def test_the_parts_are_shares_of_the_whole(counts):
    found = variance_split(counts)
    assert found.between >= 0
    assert 0 <= found.within_share <= 1
    assert found.between == pytest.approx(max(0, found.task_variance - found.within), abs=1e-12)
    noise = sum(rerun_variance(n, c, 1) for n, c in counts) / len(counts)
    assert found.within == pytest.approx(noise)


def test_reference_differences(reference):
    for row in reference["mde"]:
        found = smallest_difference(row["sd_diff"], row["n_tasks"], row["alpha"], row["power"])
        assert found == pytest.approx(row["value"], rel=1e-9), row
