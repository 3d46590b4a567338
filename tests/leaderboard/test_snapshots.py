"""Snapshots: when one is stored, what it holds, and that it stays as it is."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading.models import Benchmark, BenchmarkVersion, LanguageModel, Submission, TaskScore
from leaderboard import snapshots
from leaderboard.editions import computed
from leaderboard.models import ScoreSheet, Snapshot
from leaderboard.queries import board
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    made = builders.version(tasks=30)
    builders.submission(made, "Heron", builders.solving(30, 30), settings={"temperature": 0.2})
    builders.submission(made, "Petrel", builders.solving(25, 30))
    builders.submission(made, "Skua", [(5, 1), *builders.solving(9, 29)])
    builders.submission(made, "Tern", builders.solving(9, 29))
    return made


def shown(version, **choices):
    """A board without what tells a stored one from one computed for the reader."""
    found = board(version, **choices)
    rows = [
        (row.model, row.rank, row.standing, row.reason, row.figures, row.created_at)
        for row in (*found.ranked, *found.unranked)
    ]
    return rows, found.standings.better, found.finding, found.ks, found.integrity


def causes(snapshot):
    return [f"{change['model']} {change['text']}".strip() for change in snapshot.changes]


def test_a_stored_board_is_the_computed_one(version):
    wanted = [{}, {"score": 5}, {"timeouts": "missing"}, {"without": ["tidepool-3"]}]
    before = [shown(version, **choices) for choices in wanted]
    assert board(version).snapshot is None
    snapshots.take(version)
    assert board(version).snapshot == 1
    assert [shown(version, **choices) for choices in wanted] == before


def test_nothing_is_stored_where_nothing_moved(version):
    assert snapshots.take(version).number == 1
    assert snapshots.take(version) is None
    with CaptureQueriesContext(connection) as first:
        assert snapshots.take_due() == ""
    with CaptureQueriesContext(connection) as second:
        assert snapshots.take_due() == ""
    assert len(second) == 3 < len(first)  # versions; runs and newest number of the one there is


def test_an_empty_board_has_no_snapshot():
    assert snapshots.take(builders.version()) is None


def test_a_finished_run_makes_the_next_snapshot_and_the_old_one_stays(version):
    assert snapshots.take_due() == "stored Tidepool version 1 snapshot 1"
    old = shown(version, snapshot=1)
    made = builders.submission(version, "Gannet", builders.solving(28, 30))
    assert len(board(version).ranked) == 3
    assert snapshots.take_due() == "stored Tidepool version 1 snapshot 2"
    assert shown(version, snapshot=1) == old
    assert len(board(version).ranked) == 4
    newest = Snapshot.objects.latest("number")
    assert causes(newest)[0] == (
        f"Gannet entered with submission {made.public_id} at pass@1 93.3 %."
    )


def test_runs_being_graded_are_live_and_in_no_snapshot(version):
    snapshots.take(version)
    builders.submission(version, "Gannet", [(1, 1)], state="grading", sample_count=30)
    assert snapshots.take(version) is None
    (row,) = (row for row in board(version).unranked if row.model == "Gannet")
    assert row.reason == "provisional, 1 of 30 samples graded"
    assert all(row.model != "Gannet" for row in board(version, snapshot=1).unranked)


def test_changes_say_what_moved_the_board(version):
    snapshots.take(version)
    heron = Submission.objects.get(language_model__name="Heron")
    TaskScore.objects.filter(submission=heron, task__position__lt=6).update(c=0, assertion_fail=1)
    newer = builders.submission(version, "Petrel", builders.solving(26, 30), age_h=0.5)
    Submission.objects.filter(language_model__name="Skua").update(visibility="private")
    Benchmark.objects.update(preamble="prompt")
    version = BenchmarkVersion.objects.get()
    said = " ".join(causes(snapshots.take(version)))
    assert "Rule “prefix”: imports before, prompt now." in said
    assert "Skua left: submission" in said
    assert f"Petrel is represented by submission {newer.public_id} at pass@1 86.7 %" in said
    assert "Heron has other scores for the same submission" in said
    assert "at pass@1 80.0 %, at pass@1 100.0 % before." in said


def test_a_range_that_moves_by_another_s_run_is_told(version):
    snapshots.take(version)
    builders.submission(version, "Gannet", builders.solving(30, 30))
    said = causes(snapshots.take(version))
    assert "Skua may hold ranks 4, before 3." in said


def test_a_withdrawn_run_is_shown_in_no_snapshot(version):
    snapshots.take(version)
    Submission.objects.filter(language_model__name="Heron").update(visibility="private")
    found = board(version)
    assert [row.model for row in found.ranked] == ["Petrel", "Skua"]
    assert found.withdrawn == 1
    assert "Heron" not in found.finding.rest


def test_equal_scores_share_a_sheet(version):
    snapshots.take(version)
    builders.submission(version, "Gannet", builders.solving(25, 30))
    snapshots.take(version)
    assert ScoreSheet.objects.count() == 4
    assert Snapshot.objects.count() == 2


def test_a_renamed_model_is_news_only_for_the_next_snapshot(version):
    snapshots.take(version)
    LanguageModel.objects.filter(name="Heron").update(name="Grey Heron")
    assert {row.model for row in board(version).ranked} >= {"Heron"}
    snapshots.take(version)
    assert {row.model for row in board(version).ranked} >= {"Grey Heron"}
    assert {row.model for row in board(version, snapshot=1).ranked} >= {"Heron"}


def test_two_processes_at_once_store_one(version, monkeypatch):
    snapshots.take(version)
    builders.submission(version, "Gannet", builders.solving(28, 30))

    def slow(of):
        """The edition of a process that another one overtakes."""
        monkeypatch.undo()
        edition = computed(of)
        assert snapshots.take(of).number == 2
        return edition

    monkeypatch.setattr(snapshots, "computed", slow)
    assert snapshots.take(version) is None
    assert Snapshot.objects.count() == 2


@pytest.mark.broker
def test_the_sweep_takes_snapshots(version, broker_url, capsys):
    call_command("sweep", "--once")
    assert "stored Tidepool version 1 snapshot 1" in capsys.readouterr().out
