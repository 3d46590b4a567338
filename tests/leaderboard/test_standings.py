"""Rank ranges of a board: who takes part, and what they are of."""

from __future__ import annotations

import pytest

from grading.models import TaskScore
from leaderboard.queries import Board, board
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def ranges(shown: Board) -> dict[str, tuple[int, int] | None]:
    rows = (*shown.ranked, *shown.unranked)
    return {
        row.model: (row.standing.low, row.standing.high) if row.standing else None for row in rows
    }


def test_only_complete_public_runs_take_part():
    version = builders.version(tasks=30)
    builders.submission(version, "Heron", builders.solving(30, 30))
    builders.submission(version, "Skua", builders.solving(1, 30))
    before = board(version)
    builders.submission(version, "Partial", builders.solving(30, 30)[:29])
    live = builders.solving(30, 30)
    builders.submission(version, "Live", live, state="grading", sample_count=60)
    builders.submission(version, "Hidden", live, visibility="private")
    builders.submission(version, "Lost", live, sample_count=31)
    shown = board(version)
    assert shown.standings == before.standings
    assert ranges(shown) == {
        "Heron": (1, 1),
        "Skua": (2, 2),
        "Partial": None,
        "Live": None,
        "Lost": None,
    }


def test_timeouts_left_out_test_nobody():
    version = builders.version(tasks=30)
    for name, solved in (("Heron", 30), ("Skua", 1)):
        builders.submission(version, name, builders.solving(solved, 30))
    shown = board(version, timeouts="missing")
    assert ranges(shown) == {"Heron": None, "Skua": None}
    assert shown.standings.names == ()


def test_a_filter_changes_no_range():
    version = builders.version(tasks=30)
    for name, solved in (("Heron", 30), ("Petrel", 29), ("Skua", 1)):
        builders.submission(version, name, builders.solving(solved, 30))
    assert ranges(board(version, q="petrel")) == {"Petrel": (1, 2)}


def test_the_tests_are_of_the_chosen_score():
    version = builders.version(tasks=60)
    builders.submission(version, "Sure", [(5, 5)] * 30 + [(5, 0)] * 30)
    builders.submission(version, "Varied", [(5, 2)] * 60)
    assert ranges(board(version)) == {"Sure": (1, 2), "Varied": (1, 2)}
    assert ranges(board(version, score=5)) == {"Varied": (1, 1), "Sure": (2, 2)}


def test_new_scores_are_tested_anew_though_all_counts_stay():
    version = builders.version(tasks=60)
    heron = builders.submission(version, "Heron", builders.solving(40, 60))
    builders.submission(version, "Petrel", builders.solving(30, 60))
    before = board(version)
    tasks = list(version.tasks.all())
    scores = TaskScore.objects.filter(submission=heron)
    scores.filter(task__in=tasks[:20]).update(c=0, assertion_fail=1)
    scores.filter(task__in=tasks[40:]).update(c=1, assertion_fail=0)
    after = board(version)
    assert [row.value for row in after.ranked] == [row.value for row in before.ranked]
    assert after.standings.adjusted > before.standings.adjusted
    assert ranges(before)["Heron"] == (1, 1)
    assert ranges(after)["Heron"] == (1, 2)
