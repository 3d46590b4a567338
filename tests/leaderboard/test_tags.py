"""Weakest tags: beside whom, on how many tasks, in what order."""

from __future__ import annotations

import pytest

from grading.models import Task
from leaderboard import snapshots
from leaderboard.cards import card
from leaderboard.tags import weakness
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    """40 tasks: 20 tagged text, 16 numbers, 4 rare."""
    made = builders.version(tasks=40)
    for first, last, tag in ((0, 20, "text"), (20, 36, "numbers"), (36, 40, "rare")):
        tasks = Task.objects.filter(version=made, position__gte=first, position__lt=last)
        tasks.update(metadata={"tags": [tag]}, category="")
    return made


def of_heron(version, user):
    return weakness(version, "heron", card("heron", user).tasks)


def test_tags_stand_furthest_behind_first_beside_the_others(version):
    rosa = builders.user()
    builders.submission(version, "Heron", [(1, 1)] * 20 + [(1, 0)] * 20)
    builders.submission(version, "Petrel", [(1, 1)] * 40)
    builders.submission(version, "Skua", [(1, 0)] * 20 + [(1, 1)] * 20)
    snapshots.take(version)
    found = of_heron(version, rosa)
    assert [(line.tag, line.tasks, line.own, line.field) for line in found.lines] == [
        ("numbers", 16, 0.0, 1.0),
        ("text", 20, 1.0, 0.5),
    ]
    numbers, text = found.lines
    assert (numbers.behind, text.behind) == (-1.0, 0.5)
    assert numbers.clear
    assert numbers.interval.high < 0 < text.interval.high
    assert (found.models, found.left_out) == (2, 1)
    assert found.behind == pytest.approx((20 * 0.5 - 20) / 40)


def test_a_small_difference_is_not_clear(version):
    builders.submission(version, "Heron", builders.solving(39, 40))
    builders.submission(version, "Petrel", builders.solving(40, 40))
    snapshots.take(version)
    assert not any(line.clear for line in of_heron(version, builders.user()).lines)


def test_without_others_there_is_no_field(version):
    builders.submission(version, "Heron", builders.solving(20, 40))
    builders.submission(version, "Partial", builders.solving(20, 30))
    snapshots.take(version)
    assert of_heron(version, builders.user()).models == 0


def test_one_tag_for_all_says_nothing():
    version = builders.version(tasks=12)
    for name in ("Heron", "Petrel"):
        builders.submission(version, name, builders.solving(6, 12))
    snapshots.take(version)
    found = of_heron(version, builders.user())
    assert (found.lines, found.models, found.left_out) == ((), 1, 0)
