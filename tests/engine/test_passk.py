"""pass@k against exact reference values, and the properties that define it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.outcome import Outcome
from grading.engine.passk import (
    TimeoutPolicy,
    counts_under,
    mean_fraction,
    mean_pass_at_k,
    pass_at_k,
    task_score,
)


def exact(text: str | None) -> float | None:
    return None if text is None else float(Fraction(text))


def test_points(reference):
    for row in reference["passk"]:
        assert pass_at_k(row["n"], row["c"], row["k"]) == exact(row["pass_at_k"]), row


def test_invalid_points_are_refused(reference):
    for row in reference["invalid"]:
        with pytest.raises(ValueError, match=r"needed|at least"):
            pass_at_k(row["n"], row["c"], row["k"])


@pytest.mark.parametrize(
    "point", [(True, 1, 1), (5, True, 1), (5, 1, True), (5.0, 1, 1), ("5", 1, 1)]
)
def test_only_whole_numbers(point):
    pass_at_k(1, 1, 1), pass_at_k(5, 1, 1)  # an equal point that is remembered changes nothing
    with pytest.raises(ValueError, match="whole numbers"):
        pass_at_k(*point)


def test_the_contract_point():
    assert pass_at_k(5, 3, 4) == 1


def test_nothing_solved_with_too_few_samples_has_no_value():
    assert pass_at_k(1, 0, 10) is None
    assert pass_at_k(0, 0, 1) is None


def test_task_scores(reference):
    for row in reference["task_score"]:
        assert task_score(row["passed"], row["total"]) == exact(row["score"]), row


@pytest.mark.parametrize(("passed", "total"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_task_scores_are_refused(passed, total):
    with pytest.raises(ValueError, match="needed"):
        task_score(passed, total)


def test_mean_fraction_is_over_tasks(reference):
    row = reference["mean_fraction"][0]
    sums = [(len(task), fsum(task_score(*sample) for sample in task)) for task in row["tasks"]]
    value = mean_fraction(sums)
    assert value == pytest.approx(exact(row["mean_over_tasks"]), rel=1e-12)
    assert value != pytest.approx(exact(row["mean_over_samples"]), rel=1e-3)
    assert value != pytest.approx(exact(row["pooled_assertions"]), rel=1e-3)
    assert mean_fraction([*sums, (0, 0.0)]) == value
    assert mean_fraction([]) is None


def counts(tasks: list[list[int] | None]) -> list[tuple[int, int] | None]:
    return [None if task is None else (task[0], task[1]) for task in tasks]


def test_aggregates(reference):
    for row in reference["aggregate"]:
        assert mean_pass_at_k(counts(row["tasks"]), row["k"], row["missing"]) == exact(
            row["value"]
        ), row


def test_aggregate_is_not_pooled_over_samples(reference):
    row = reference["aggregate_pooled_trap"][0]
    value = mean_pass_at_k(counts(row["tasks"]), row["k"])
    assert value == exact(row["mean_over_tasks"])
    assert value != exact(row["pooled_over_samples"])


def counts_from(outcomes: dict[str, int], timeouts: TimeoutPolicy) -> tuple[int, int]:
    n = sum(outcomes[outcome] for outcome in Outcome)
    return counts_under(timeouts, n, outcomes["pass"], outcomes["timeout"])


def test_timeout_policies(reference):
    for row in reference["timeout_policy"]:
        tasks = [counts_from(outcomes, row["timeouts"]) for outcomes in row["outcomes"]]
        assert tasks == [tuple(pair) for pair in row["n_c"]], row
        assert mean_pass_at_k(tasks, 1, row["missing"]) == exact(row["pass_at_1"]), row


def test_a_mean_checks_what_it_is_given():
    with pytest.raises(ValueError, match="at least 1"):
        mean_pass_at_k([], 0)
    with pytest.raises(ValueError, match="whole numbers"):
        mean_pass_at_k([(1, 1), (True, True)], 1)


def test_no_task_has_no_mean():
    assert mean_pass_at_k([], 1, "zero") is None
    assert mean_pass_at_k([None, (0, 0)], 1) is None
    assert mean_pass_at_k([None], 1, "zero") == 0


def points(most: int) -> st.SearchStrategy[tuple[int, int, int]]:
    """Defined points (n, c, k) with n up to ``most``."""
    return st.integers(1, most).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
    )


@given(points(60))
def test_monotone_in_c_and_k(point):
    n, c, k = point
    value = pass_at_k(n, c, k)
    assert 0 <= value <= 1
    if c < n:
        assert pass_at_k(n, c + 1, k) >= value
    if k < n:
        assert pass_at_k(n, c, k + 1) >= value


@given(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_equals_counting_every_draw(point):
    n, c, k = point
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == float(Fraction(sum(map(any, draws)), len(draws)))


@given(st.lists(points(60), min_size=1, max_size=20))
def test_mean_is_correctly_rounded(tasks):
    k = min(n for n, _, _ in tasks)
    values = [1 - Fraction(_falling(n - c, k), _falling(n, k)) for n, c, _ in tasks]
    assert mean_pass_at_k([(n, c) for n, c, _ in tasks], k) == float(sum(values) / len(values))


def _falling(n: int, k: int) -> int:
    product = 1
    for i in range(k):
        product *= max(n - i, 0)
    return product
