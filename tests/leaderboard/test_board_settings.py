"""Settings that make rows comparable, and boards on some of the tasks."""

from __future__ import annotations

import csv
import io

import pytest
from django.urls import reverse

from grading.models import Task
from leaderboard import snapshots
from leaderboard.conditions import conditions, differing
from leaderboard.queries import board
from leaderboard.selection import select
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db
COOL = {"temperature": 0.2, "prompt_style": "chat"}


@pytest.fixture
def version():
    made = builders.version(tasks=30)
    Task.objects.filter(version=made, position__lt=12).update(metadata={"tags": ["strings"]})
    builders.submission(made, "Heron", builders.solving(30, 30), settings=COOL)
    builders.submission(made, "Petrel", builders.solving(25, 30), settings=COOL)
    builders.submission(made, "Skua", [(2, 1)] * 30, settings=COOL | {"temperature": 0.8})
    builders.submission(made, "Tern", builders.solving(9, 30))
    snapshots.take(made)
    return made


def rows(version, **choices):
    return {row.model: row for row in board(version, **choices).ranked}


def test_conditions_come_from_the_upload_the_benchmark_and_the_grading(version):
    assert conditions(rows(version)["Heron"]) == {
        "temperature": "0.2",
        "n": "1",
        "prompt_style": "chat",
        "extraction": "auto",
        "prefix": "imports",
        "tier": "",
    }


def test_a_row_differs_in_what_it_states_otherwise_not_in_what_it_leaves_open(version):
    shown = board(version)
    assert shown.usual["temperature"] == "0.2"
    differ = {row.model: differing(row, shown.usual) for row in shown.ranked}
    assert differ == {"Heron": [], "Petrel": [], "Skua": ["temperature", "n"], "Tern": []}
    assert shown.offered == {"temperature": ["0.2", "0.8"], "n": ["1", "2"]}


def test_where_no_value_is_that_of_most_runs_none_is_marked_and_it_is_said(client):
    made = builders.version(tasks=12)
    for model, style in {
        "Heron": "chat",
        "Petrel": "chat",
        "Skua": "plain",
        "Tern": "list",
    }.items():
        settings = {"temperature": 0, "prompt_style": style}
        builders.submission(made, model, builders.solving(6, 12), settings=settings)
    snapshots.take(made)
    shown = board(made)
    assert "prompt_style" not in shown.usual
    assert shown.usual["temperature"] == "0"
    assert shown.mixed == ["prompt_style"]
    assert [differing(row, shown.usual) for row in shown.ranked] == [[]] * 4
    page = client.get(reverse("board", args=["tidepool"])).content.decode()
    assert "Runs differ in prompt style, and no value is that of most runs" in page


def test_a_filter_by_settings_keeps_the_ranks(version):
    found = rows(version, where={"temperature": "0.8"})
    assert {model: row.rank for model, row in found.items()} == {"Skua": 3}
    assert rows(version, where={"temperature": "2"}) == {}


def test_tags_come_from_the_task_file(version):
    assert select(version).tags == ("code_exec", "strings")
    assert len(select(version, "strings").places) == 12
    assert select(version, "graphs").places is None
    found = board(version, tag="strings")
    assert found.tasks == 12
    assert [row.model for row in found.ranked if row.rank == 1] == ["Heron", "Petrel"]


def test_without_a_task_everything_is_computed_for_the_others(version):
    shown = board(version, without=["tidepool-29", "no-such-task"])
    assert shown.selection.without == (("tidepool-29", "Tidepool/29"),)
    assert shown.tasks == 29
    petrel = next(row for row in shown.ranked if row.model == "Petrel")
    assert petrel.value == 25 / 29
    assert petrel.figures.tasks == 29
    assert petrel.standing.low == 1


def test_a_sample_lost_to_the_platform_bars_a_rank_on_part_of_the_tasks_too(version):
    builders.submission(version, "Gannet", builders.solving(30, 30), sample_count=31)
    snapshots.take(version)
    (row,) = board(version, without=["tidepool-29"]).unranked
    assert row.reason == "1 sample lost to platform failures"


def test_the_page_has_switches_and_marks(client, version):
    address = reverse("board", args=["tidepool"])
    body = client.get(address).content.decode()
    assert '<span class="tag warn">temperature 0.8</span>' in body
    assert 'href="?timeouts=missing"' in body
    assert 'href="?columns=settings"' in body
    part = client.get(f"{address}?without=tidepool-29,tidepool-28").content.decode()
    assert "On 28 tasks only, without" in part
    assert 'value="tidepool-28,tidepool-29"' in part
    by_settings = client.get(f"{address}?columns=settings").content.decode()
    assert by_settings.count("differs") == 2
    nobody = client.get(f"{address}?temperature=7").content.decode()
    assert "was run with temperature 7" in nobody


def test_settings_are_columns_of_the_export(client, version):
    text = client.get(reverse("board", args=["tidepool"]) + "?format=csv").content.decode()
    held = {row["model"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert held["Skua"]["setting_temperature"] == "0.8"
    assert (held["Tern"]["setting_temperature"], held["Tern"]["setting_n"]) == ("", "1")


def test_old_snapshots_keep_their_address(client, version):
    builders.submission(version, "Gannet", builders.solving(28, 30))
    snapshots.take(version)
    old = reverse("board_snapshot", args=["tidepool", 1, 1])
    assert "Gannet" not in client.get(old).content.decode()
    assert "The board of today" in client.get(old).content.decode()
    assert "Gannet" in client.get(reverse("board", args=["tidepool"])).content.decode()
    assert client.get(reverse("board_snapshot", args=["tidepool", 1, 3])).status_code == 404
    said = client.get(reverse("board_changes", args=["tidepool", 1])).content.decode()
    assert said.index("Snapshot 2") < said.index("entered with submission")
    assert "The first snapshot, of 4 models." in said
