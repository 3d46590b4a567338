"""What it takes to tell two models apart: by definition, by simulation, in words."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.comparison import compare
from leaderboard.comparison_words import what_it_takes
from leaderboard.precision import smallest_difference
from leaderboard.separation import samples_needed, separation, tasks_needed
from leaderboard.statistics import paired
from tests.leaderboard import builders

sizes = st.floats(0.01, 1)


@given(sizes, sizes)
def test_so_many_tasks_find_it_and_one_less_does_not(sd, difference):
    tasks = tasks_needed(sd, difference)
    assert smallest_difference(sd, tasks) <= difference * (1 + 1e-9)
    assert tasks == 1 or smallest_difference(sd, tasks - 1) > difference * (1 - 1e-9)


@given(sizes, sizes, sizes, st.integers(10, 500))
def test_so_many_samples_find_it_and_one_less_does_not(between, per_sample, difference, tasks):
    noise = per_sample / 3
    variance = between**2 + noise

    def found(samples: float) -> float:
        return smallest_difference((between**2 + per_sample / samples) ** 0.5, tasks)

    needed = samples_needed(variance, noise, per_sample, difference, tasks)
    if needed is None:
        assert found(1e9) > difference * (1 - 1e-6)
    else:
        assert found(needed) <= difference * (1 + 1e-9)
        assert needed == 1 or found(needed - 1) > difference * (1 - 1e-9)


def test_the_noise_of_samples_is_that_of_drawing_again():
    """Against the spread of differences simulated with as many samples as asked for."""
    dice = random.Random(0)
    rates = [(dice.random(), dice.random()) for _ in range(4000)]

    def drawn(n: int, side: int) -> list[tuple[int, int]]:
        return [(n, sum(dice.random() < rate[side] for _ in range(n))) for rate in rates]

    def spread(n: int) -> float:
        a, b = drawn(n, 0), drawn(n, 1)
        return paired([c / n for n, c in a], [c / n for n, c in b]).sd

    a, b = drawn(5, 0), drawn(5, 1)
    test = paired([c / n for n, c in a], [c / n for n, c in b])
    noise = separation(test, a, b).noise
    between = test.sd**2 - noise
    for n in (2, 20):
        assert spread(n) ** 2 == pytest.approx(between + 5 * noise / n, rel=0.05)


def test_one_sample_leaves_the_noise_unknown():
    a, b = builders.solving(8, 20), builders.solving(6, 20)
    test = paired([c for _, c in a], [c for _, c in b])
    held = separation(test, a, b)
    assert (held.noise, held.samples) == (None, None)
    assert held.tasks == tasks_needed(test.sd, 0.1)
    assert held.win_rate == 0.55


def test_what_is_found_already_needs_nothing():
    a, b = [(1, 1)] * 40, [(1, 0)] * 40
    held = separation(paired([1] * 40, [0] * 40), a, b)
    assert (held.tasks, held.samples, held.win_rate) == (None, None, 1)


def said_of(a, b) -> str:
    version = builders.version(tasks=len(a))
    builders.submission(version, "A", a)
    builders.submission(version, "B", b)
    return what_it_takes(compare(version, "a", "b"))


@pytest.mark.django_db
def test_words_for_one_sample_each():
    said = said_of(builders.solving(20, 40), builders.solving(19, 40))
    assert said.startswith(
        "With 40 tasks as varied as these, one test finds a true difference of 7.0 points in "
        "four of five cases. If the true difference were the one seen, about 314 tasks like these"
    )
    assert said.endswith(
        "what more samples would do is not known, for a task has only one of either model."
    )


@pytest.mark.django_db
def test_words_where_samples_would_do():
    assert "samples of both for each of these." in said_of_noisy()


def said_of_noisy() -> str:
    """The same true rate nearly everywhere: what differs is noise of the samples."""
    dice = random.Random(3)
    version = builders.version(tasks=60, slug="noisy")
    for name, rate in (("A", 0.55), ("B", 0.5)):
        scores = [(4, sum(dice.random() < rate for _ in range(4))) for _ in range(60)]
        builders.submission(version, f"{name} noisy", scores)
    return what_it_takes(compare(version, "a-noisy", "b-noisy"))


@pytest.mark.django_db
def test_the_same_run_and_few_tasks_need_no_words(client):
    version = builders.version(tasks=12)
    builders.submission(version, "A", builders.solving(3, 12))
    builders.submission(version, "B", builders.solving(2, 12))
    assert what_it_takes(compare(version, "a", "a")) == ""
    assert what_it_takes(compare(version, "a", "b"))
    assert said_of_few() == ""


def said_of_few() -> str:
    version = builders.version(tasks=5, slug="few")
    builders.submission(version, "C", builders.solving(3, 5))
    builders.submission(version, "D", builders.solving(2, 5))
    return what_it_takes(compare(version, "c", "d"))
