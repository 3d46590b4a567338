"""The plus-two t interval against reference values."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.statistics import plus_two_t, t_quantile


def test_reference_intervals(shared: Path):
    text = (shared / "reference" / "passk.jsonl").read_text(encoding="utf-8")
    rows = [row for row in map(json.loads, text.splitlines()) if row["kind"] == "ci"]
    rows = [row for row in rows if row["method"] == "plus2_t"]
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
