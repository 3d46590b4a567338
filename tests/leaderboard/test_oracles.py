"""The statistics against scipy and statsmodels; every kind of reference row is read by a test."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from leaderboard.bootstrap import percentile_bootstrap, percentile_interval
from leaderboard.discordance import mcnemar_p, sign_flip_p
from leaderboard.multiple import holm
from leaderboard.precision import smallest_difference
from leaderboard.statistics import paired, plus_two_t, t_quantile, t_two_sided

TESTS = Path(__file__).parents[1]

scores = st.sampled_from([i / 10 for i in range(11)])
boards = st.lists(scores, min_size=1, max_size=80)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def expanded(row):
    return [float(Fraction(value)) for value, times in row["values"] for _ in range(times)]


def test_every_kind_of_reference_row_is_read_by_a_test(reference):
    modules = [*TESTS.glob("leaderboard/test_*.py"), TESTS / "engine" / "test_passk.py"]
    sources = " ".join(module.read_text(encoding="utf-8") for module in modules)
    unread = [kind for kind in reference if f'reference["{kind}"]' not in sources]
    assert unread == []


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 10, 19, 51, 165, 501, 1001, 5001])
def test_student_t(df):
    for probability in (0.5, 0.6, 0.9, 0.975, 0.995, 0.99999):
        expected = stats.t.ppf(probability, df)
        assert t_quantile(probability, df) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    for t in (0.0, 0.1, 1.0, 1.96, 4.5, 12.0):
        assert t_two_sided(t, df) == pytest.approx(2 * stats.t.sf(t, df), rel=1e-7, abs=1e-13)


@given(boards)
@settings(deadline=None)
def test_plus_two_t_is_the_t_interval_of_two_tasks_more(values):
    more = [*values, 0.0, 1.0]
    low, high = stats.t.interval(0.95, len(more) - 1, loc=np.mean(more), scale=stats.sem(more))
    found = plus_two_t(values)
    assert (found.low, found.high) == pytest.approx((max(0, low), min(1, high)), abs=1e-9)


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=80))
@settings(deadline=None)
def test_the_paired_test_is_the_t_test_with_two_differences_more(pairs):
    a, b = map(list, zip(*pairs, strict=True))
    expected = stats.ttest_rel([*a, 1.0, 0.0], [*b, 0.0, 1.0])
    low, high = expected.confidence_interval(0.95)
    found = paired(a, b)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    ends = (max(-1, low), min(1, high))
    assert (found.interval.low, found.interval.high) == pytest.approx(ends, abs=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
@settings(deadline=None)
def test_mcnemar(only_a, only_b):
    expected = min(1.0, mcnemar([[3, only_a], [only_b, 5]], exact=True).pvalue)
    assert mcnemar_p(only_a, only_b) == pytest.approx(expected, rel=1e-9)
    if only_a + only_b:
        coin = stats.binomtest(only_a, only_a + only_b).pvalue
        assert mcnemar_p(only_a, only_b) == pytest.approx(coin, rel=1e-9)


def test_sign_flips():
    differences = [Fraction(d, 5) for d in (1, 2, -1, 3, 0, 5, -2, 4, 1, -3)]
    expected = stats.permutation_test(
        ([float(d) for d in differences],),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert sign_flip_p(differences) == pytest.approx(expected.pvalue, rel=1e-9)


@given(p_values)
@settings(deadline=None)
def test_corrections_for_many_tests(p):
    expected = multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("sd", "tasks"), [(0.5, 50), (0.35, 164), (0.2, 1000)])
def test_a_true_difference_of_that_size_is_found_in_four_of_five_cases(sd, tasks):
    z = smallest_difference(sd, tasks) / (sd / math.sqrt(tasks))
    power = stats.norm.sf(stats.norm.ppf(0.975) - z) + stats.norm.cdf(-stats.norm.ppf(0.975) - z)
    assert power == pytest.approx(0.8, abs=1e-5)


def oracle(row):
    """The interval of a reference row's method by the libraries, or by numpy where they differ."""
    values, level = expanded(row), row["level"]
    solved, tasks = round(sum(values)), len(values)
    match row["method"]:
        case "plus2_t":
            found = plus_two_t(values, level)
            return found.low, found.high
        case "normal":
            return stats.norm.interval(level, np.mean(values), stats.sem(values) or 1e-300)
        case "wilson":
            return proportion_confint(solved, tasks, 1 - level, method="wilson")
        case "clopper_pearson":
            return proportion_confint(solved, tasks, 1 - level, method="beta")
        case "bootstrap_percentile_exact":
            means = [sum(drawn) / tasks for drawn in product(values, repeat=tasks)]
        case "bootstrap_percentile_randomstate":
            draws = np.random.RandomState(row["seed"]).randint(0, tasks, size=(row["B"], tasks))
            means = np.asarray(values)[draws].mean(axis=1).tolist()
        case method:
            pytest.fail(f"no oracle for {method}")
    found = percentile_interval(means, level)
    return found.low, found.high


def test_every_interval_of_the_reference(reference):
    for row in reference["ci"]:
        assert oracle(row) == pytest.approx((row["lo"], row["hi"]), abs=1e-9), row


def test_the_bootstrap_comes_close_to_all_its_resamples(reference):
    rows = [row for row in reference["ci"] if row["method"] == "bootstrap_percentile_exact"]
    for row in rows:
        found = percentile_bootstrap(expanded(row), draws=10_000)
        assert (found.low, found.high) == pytest.approx((row["lo"], row["hi"]), abs=0.02)
    assert rows


def test_the_bootstrap_repeats_itself_and_collapses_where_all_tasks_are_alike():
    values = [0.0, 0.5, 1.0, 1.0]
    assert percentile_bootstrap(values) == percentile_bootstrap(values)
    assert percentile_bootstrap([]) is None
    alike = percentile_bootstrap([1.0] * 20)
    assert alike.low == alike.high == 1
