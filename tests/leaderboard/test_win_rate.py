"""Win rates, against reference values."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.win_rate import pairwise


def test_reference_rates(reference):
    for row in reference["win_rate"]:
        models = {
            name: {task: float(Fraction(text)) for task, text in scores.items()}
            for name, scores in row["scores"].items()
        }
        expected = row["expected"]
        assert pairwise(models) == {
            name: float(Fraction(rates["pairwise_half_ties"])) for name, rates in expected.items()
        }


def test_nothing_in_common_has_no_rate():
    assert pairwise({"a": {"t1": 1.0}, "b": {"t2": 1.0}}) == {"a": None, "b": None}


@given(
    st.integers(1, 10).flatmap(
        lambda m: st.lists(
            st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=m, max_size=m),
            min_size=2,
            max_size=6,
        )
    )
)
def test_on_the_same_tasks_rates_average_to_a_half(values):
    models = {str(i): dict(enumerate(scores)) for i, scores in enumerate(values)}
    assert abs(sum(pairwise(models).values()) / len(models) - 0.5) < 1e-12
