"""Adjusted p-values, against reference values and their definitions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.multiple import holm

p_values = st.lists(st.floats(0, 1), max_size=40)


def test_reference_values(reference):
    for row in reference["multiple"]:
        p = [Fraction(text) for text in row["p"]]
        assert holm(p) == [Fraction(text) for text in row["holm"]]


def test_no_tests_need_no_adjustment():
    assert holm([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(p):
    with pytest.raises(ValueError, match="within"):
        holm([0.5, p])


@given(p_values)
def test_order_is_kept_and_nothing_gets_smaller(p):
    adjusted = holm(p)
    for i, j in zip(range(len(p)), range(1, len(p)), strict=False):
        if p[i] < p[j]:
            assert adjusted[i] <= adjusted[j]
    assert all(value <= held <= 1 for value, held in zip(p, adjusted, strict=True))


@given(p_values, st.floats(0.001, 0.2))
def test_holm_rejects_what_its_steps_reject(p, level):
    rejected = 0
    for step, value in enumerate(sorted(p)):
        if (len(p) - step) * value >= level:
            break
        rejected += 1
    assert sum(value < level for value in holm(p)) == rejected
