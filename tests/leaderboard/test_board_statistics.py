"""Plus-two t, the interval and the paired test, against reference values."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.statistics import paired, paired_all, plus_two_t, t_quantile, t_two_sided


def test_reference_intervals(reference):
    rows = [row for row in reference["ci"] if row["method"] == "plus2_t"]
    assert len(rows) == 9
    for row in rows:
        values = [float(Fraction(value)) for value, times in row["values"] for _ in range(times)]
        interval = plus_two_t(values, row["level"])
        assert (interval.low, interval.high) == pytest.approx((row["lo"], row["hi"]), abs=1e-9), row


@pytest.mark.parametrize(
    ("df", "expected"),
    [
        (1, 12.706204736432095),
        (2, 4.302652729911275),
        (3, 3.182446305284263),
        (30, 2.042272456301238),
    ],
)
def test_printed_t_tables(df, expected):
    assert t_quantile(0.975, df) == pytest.approx(expected, rel=1e-9)


def test_many_degrees_of_freedom_approach_the_normal():
    assert t_quantile(0.975, 100_001) == pytest.approx(1.959964, abs=1e-4)


@pytest.mark.parametrize(("probability", "df"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_t_outside_its_domain_is_refused(probability, df):
    with pytest.raises(ValueError, match="needed"):
        t_quantile(probability, df)


def test_nothing_has_no_interval():
    assert plus_two_t([]) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_the_mean_lies_inside_and_the_width_is_never_zero(values):
    interval = plus_two_t(values)
    assert 0 <= interval.low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= interval.high <= 1
    assert interval.high - interval.low > 0


def floats(texts: list[str]) -> list[float]:
    return [float(Fraction(text)) for text in texts]


def test_reference_pairs(reference):
    for row in reference["paired"]:
        found = paired(floats(row["a"]), floats(row["b"]))
        assert found.tasks == len(row["a"])
        assert found.difference == pytest.approx(row["mean_diff_float"], abs=1e-12)
        expected = (row["plus2_lo"], row["plus2_hi"], row["plus2_p"])
        got = (found.interval.low, found.interval.high, found.p)
        assert got == pytest.approx(expected, abs=1e-9), row


@pytest.mark.parametrize(("a", "b"), [([], []), ([0.5], [0.5, 1.0])])
def test_pairs_need_the_same_tasks(a, b):
    with pytest.raises(ValueError, match="needed"):
        paired(a, b)


@given(st.integers(1, 300), st.floats(0.51, 0.9999))
def test_the_tail_and_the_quantile_are_each_other_s_inverse(df, probability):
    t = t_quantile(probability, df)
    assert t_two_sided(t, df) == pytest.approx(2 * (1 - probability), abs=1e-9)
    assert t_two_sided(-t, df) == t_two_sided(t, df)


def test_the_tail_near_and_far():
    assert t_two_sided(0, 7) == 1
    assert t_two_sided(1, 1) == pytest.approx(0.5, abs=1e-14)
    assert 0 <= t_two_sided(1e6, 500) < 1e-12
    with pytest.raises(ValueError, match="needed"):
        t_two_sided(1, 0)


scores = st.sampled_from([i / 10 for i in range(11)])


@given(st.lists(st.tuples(scores, scores), min_size=1, max_size=60))
def test_a_pair_turned_round_is_its_mirror(pairs):
    a, b = map(list, zip(*pairs, strict=True))
    there, back = paired(a, b), paired(b, a)
    assert there.difference == -back.difference
    assert there.interval.low == pytest.approx(-back.interval.high)
    assert there.p == pytest.approx(back.p)
    assert -1 <= there.interval.low <= there.interval.high <= 1
    outside = there.interval.low > 0 or there.interval.high < 0
    assert outside == (there.p < 0.05) or math.isclose(there.p, 0.05, abs_tol=1e-9)


@given(
    st.integers(1, 40).flatmap(
        lambda m: st.lists(st.lists(scores, min_size=m, max_size=m), min_size=2, max_size=5)
    )
)
def test_all_pairs_at_once_are_the_pairs_one_by_one(models):
    together = paired_all(models)
    alone = [paired(a, b) for a, b in combinations(models, 2)]
    assert [p for p, _ in together] == pytest.approx([one.p for one in alone], abs=1e-9)
    for (_, sd), one in zip(together, alone, strict=True):
        assert (sd is None) == (one.sd is None)
        assert sd is None or sd == pytest.approx(one.sd, abs=1e-6)
