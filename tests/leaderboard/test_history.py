"""A model's score from snapshot to snapshot: what counts as a move, why, and its chart."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from grading.models import Submission, TaskScore
from leaderboard import snapshots
from leaderboard.history import Moment, history
from leaderboard.history_chart import history_chart
from leaderboard.models import Snapshot
from leaderboard.statistics import Interval
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return builders.version(tasks=4)


def of_heron(version):
    public = Submission.objects.filter(language_model__slug="heron").values_list("public_id")
    return history(version, "heron", [one for (one,) in public])


def test_moves_have_their_reasons_and_quiet_snapshots_are_left_out(version):
    first = builders.submission(version, "Heron", builders.solving(2, 4), age_h=9)
    snapshots.take(version)
    for name in ("Petrel", "Skua", "Gannet"):
        builders.submission(version, name, builders.solving(1, 4))
        snapshots.take(version)
    second = builders.submission(version, "Heron", builders.solving(3, 4), age_h=1)
    snapshots.take(version)
    found = of_heron(version)
    assert [(one.snapshot, one.submission, one.value) for one in found] == [
        (1, first.public_id, 0.5),
        (5, second.public_id, 0.75),
    ]
    assert found[0].reasons == ("The first snapshot, of 1 model.",)
    assert found[1].reasons[0].startswith(f"is represented by submission {second.public_id}")
    assert found[1].interval.low < 0.75 < found[1].interval.high


def test_the_newest_snapshot_is_there_though_nothing_moved(version):
    builders.submission(version, "Heron", builders.solving(2, 4))
    snapshots.take(version)
    builders.submission(version, "Petrel", builders.solving(1, 4))
    snapshots.take(version)
    assert [(one.snapshot, one.reasons != ()) for one in of_heron(version)] == [
        (1, True),
        (2, False),
    ]


def test_a_regrade_is_a_move(version):
    made = builders.submission(version, "Heron", builders.solving(2, 4))
    snapshots.take(version)
    TaskScore.objects.filter(submission=made, task__position=3).update(c=1, fraction_sum=1)
    snapshots.take(version)
    moved = of_heron(version)[-1]
    assert moved.value == 0.75
    assert "has other scores for the same submission" in moved.reasons[0]


def test_runs_that_are_no_longer_public_are_left_out(version, client):
    made = builders.submission(version, "Heron", builders.solving(2, 4), age_h=9)
    snapshots.take(version)
    builders.submission(version, "Heron", builders.solving(4, 4), age_h=1)
    snapshots.take(version)
    Submission.objects.filter(pk=made.pk).update(visibility="unlisted")
    body = client.get(reverse("model", args=["heron"])).content.decode()
    table = body.partition('aria-label="History, table"')[2].partition("</table>")[0]
    assert re.findall(r"/s(\d+)/", table) == ["2"]


def test_the_chart_says_its_moves_and_leads_to_their_snapshots():
    at = [datetime(2026, 11, day, tzinfo=UTC) for day in (2, 4, 10)]
    moments = [
        Moment(1, at[0], "aaa", 0.5, Interval(0.4, 0.6), ("entered.",)),
        Moment(4, at[1], "bbb", 0.7, Interval(0.62, 0.78), ()),
        Moment(9, at[2], "bbb", 0.7, None, ()),
    ]
    drawn = history_chart(moments, lambda number: f"/s{number}/")
    assert "<title>Snapshot 1, 2 Nov 2026: 50.0 %, 95 % interval " in drawn
    assert "40.0 to 60.0; entered.</title>" in drawn
    assert "; submission bbb</title>" in drawn
    assert re.findall(r'data-href="([^"]*)"', drawn) == ["/s1/", "/s4/", "/s9/"]
    x = [float(one) for one in re.findall(r'<circle class="dot" cx="([\d.]+)"', drawn)]
    assert (x[1] - x[0]) / (x[2] - x[0]) == pytest.approx(2 / 8, abs=0.001)
    assert drawn.count('class="whisk"') == 2
    assert "50.0 in snapshot 1, 70.0 in snapshot 9" in drawn


def test_one_snapshot_is_a_dot_in_the_middle():
    alone = Moment(1, datetime(2026, 11, 2, tzinfo=UTC), "aaa", 0.0, Interval(0.0, 0.2), ())
    drawn = history_chart([alone], lambda number: "")
    assert drawn.count("<circle") == 1
    assert drawn.count("2 Nov 2026") == 2  # the axis and the dot
    assert "data-href" not in drawn


def test_history_costs_two_queries(version, django_assert_num_queries):
    builders.submission(version, "Heron", builders.solving(2, 4))
    for name in ("Petrel", "Skua", "Gannet"):
        builders.submission(version, name, builders.solving(1, 4))
        snapshots.take(version)
    assert Snapshot.objects.count() == 3
    public = list(Submission.objects.values_list("public_id", flat=True))
    with django_assert_num_queries(2):
        history(version, "heron", public)
