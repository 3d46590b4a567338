"""The change column: since which snapshot, of which score, and where there is none."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading.models import Submission
from leaderboard import queries, snapshots
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    """Heron at 50, 75 and 100 %; Petrel at 25 % from the second snapshot on."""
    made = builders.version(tasks=4)
    for solved in (2, 3, 4):
        builders.submission(made, "Heron", builders.solving(solved, 4), age_h=9 - solved)
        if solved == 3:
            builders.submission(made, "Petrel", builders.solving(1, 4))
        snapshots.take(made)
    return made


def changes(version, **choices):
    shown = queries.board(version, **choices)
    return shown.since, {row.model: row.change for row in shown.ranked}


def test_changes_are_counted_from_the_snapshot_before(version):
    assert changes(version) == (2, {"Heron": 0.25, "Petrel": 0.0})
    assert changes(version, snapshot=2) == (1, {"Heron": 0.25, "Petrel": None})


def test_changes_since_a_snapshot_of_choice(version):
    assert changes(version, since=1) == (1, {"Heron": 0.5, "Petrel": None})
    assert changes(version, since=7)[0] == 2
    assert changes(version, since=0)[0] == 2


def test_there_are_none_on_the_first_snapshot_nor_on_some_tasks(version):
    assert changes(version, snapshot=1) == (None, {"Heron": None})
    assert changes(version, without=["tidepool-0"])[0] is None
    assert queries.board(version, snapshot=1, sort="change").sort == "score"


def test_runs_that_are_no_longer_public_are_not_told(version):
    old = Submission.objects.filter(language_model__slug="heron").order_by("pk")[1]
    Submission.objects.filter(pk=old.pk).update(visibility="private")
    assert changes(version)[1]["Heron"] is None


def test_rows_can_be_sorted_by_change(version):
    shown = queries.board(version, sort="-change")
    assert [row.model for row in shown.ranked] == ["Petrel", "Heron"]


def test_the_page_and_the_exports_say_it(client, version):
    address = reverse("board", args=["tidepool"])
    body = client.get(address).content.decode()
    assert '<td role="cell" class="num more">+25.0</td>' in body
    assert "Change: of pass@1 in points since snapshot <a" in body
    assert "no score in that snapshot" in client.get(f"{address}?since=1").content.decode()
    first = client.get(reverse("board_snapshot", args=["tidepool", 1, 1])).content.decode()
    assert "Change" not in first.partition("<thead")[2].partition("</thead>")[0]
    assert client.get(f"{address}?since=1e9").status_code == 200
    table = csv.DictReader(io.StringIO(client.get(f"{address}?format=csv").content.decode()))
    assert [row["change"] for row in table] == ["0.25", "0.0"]
    assert json.loads(client.get(f"{address}?format=json&since=1").content)["changes_since"] == 1


def test_it_costs_one_query_however_many_rows(version):
    def cost():
        with CaptureQueriesContext(connection) as captured:
            queries.board(version)
        return len(captured)

    before = cost()
    for i in range(5):
        builders.submission(version, f"M{i}", builders.solving(i, 4))
    snapshots.take(version)
    assert cost() == before
