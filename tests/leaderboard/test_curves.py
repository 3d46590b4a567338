"""The pass@k curve of a model's page, its cross-check, and the points lost by outcome."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.urls import reverse

from leaderboard.cards import TaskLine
from leaderboard.curve_chart import curve_chart
from leaderboard.curves import cross_check, curve, lost
from leaderboard.statistics import plus_two_t
from tests.leaderboard import builders

OUTCOMES = ("assertion_fail", "error", "timeout", "syntax_error")


def line(n, c, **failed):
    outcomes = {"pass": c} | dict.fromkeys(OUTCOMES, 0) | failed
    return TaskLine("T/0", "t-0", n, c, c / n if n else None, outcomes)


def test_the_curve_runs_to_the_fewest_samples_of_a_task():
    points = curve([line(10, 3), line(20, 20), line(0, 0)])
    assert [one.k for one in points] == list(range(1, 11))
    assert points[0].value == pytest.approx((0.3 + 1) / 2)
    assert points[0].interval == plus_two_t([0.3, 1.0])
    assert points[-1].value == 1
    assert all(a.value <= b.value for a, b in pairwise(points))
    assert len(curve([line(200, 3)])) <= 25


def test_without_a_graded_sample_there_is_nothing():
    assert curve([line(0, 0)]) == []
    assert cross_check([line(0, 0)]) is None
    assert lost([line(0, 0)]) == {}


def test_what_is_lost_and_what_passes_make_one():
    tasks = [line(4, 2, error=1, timeout=1), line(2, 0, assertion_fail=2)]
    assert lost(tasks) == {"assertion_fail": 0.5, "error": 0.125, "timeout": 0.125}
    assert sum(lost(tasks).values()) + curve(tasks)[0].value == 1


def test_the_chart_says_where_the_curve_goes():
    drawn = curve_chart(curve([line(10, 3), line(10, 10)]))
    assert "from 65.0 at k = 1 to 100.0 at k = 10" in drawn
    assert drawn.count("<path") == 2


@pytest.mark.django_db
def test_the_model_page_shows_both(client):
    version = builders.version(tasks=2)
    builders.submission(version, "Heron", [(5, 2), (5, 5)])
    builders.submission(version, "Petrel", [(1, 1), (1, 1)])
    said = client.get(reverse("model", args=["heron"])).content.decode()
    assert "Cross-check of pass@1 by the percentile bootstrap: 40.0–100.0" in said
    assert "?outcome=assertion_fail" in said
    one = client.get(reverse("model", args=["petrel"])).content.decode()
    assert "One sample per task: there is no curve" in one
    assert "None: every sample passes." in one
