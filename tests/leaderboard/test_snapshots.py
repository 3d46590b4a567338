"""Snapshots: when one is stored, what it holds, and that it stays as it is."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from grading import model_merges
from grading.models import (
    Addition,
    Benchmark,
    BenchmarkVersion,
    LanguageModel,
    Submission,
    TaskScore,
)
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


def reopen(model, more):
    """A finished run to which ``more`` samples were added that are not graded yet."""
    run = Submission.objects.get(language_model__name=model)
    Addition.objects.create(submission=run, sample_count=more, reopened=True, by=run.uploader)
    run.state, run.finished_at, run.sample_count = "grading", None, run.sample_count + more
    run.save()
    return run


def finish(run, **scores):
    TaskScore.objects.filter(submission=run).update(**scores)
    Submission.objects.filter(pk=run.pk).update(state="done", finished_at=timezone.now())


def test_a_run_stands_as_it_was_while_samples_are_added(version):
    snapshots.take_due()
    before = shown(version)
    run = reopen("Petrel", 30)
    TaskScore.objects.filter(submission=run, task__position=0).update(n=2, c=2)
    assert snapshots.take_due() == ""
    assert shown(version) == before
    builders.submission(version, "Gannet", builders.solving(28, 30))
    LanguageModel.objects.filter(name="Petrel").update(organisation="Moor")
    (said, *_) = causes(snapshots.take(version))
    assert said.startswith("Gannet entered"), "the others go on"
    rows = {row.model: row for row in board(version).ranked}
    assert (rows["Petrel"].rank, rows["Petrel"].sample_count) == (3, 30)
    assert (rows["Petrel"].state, rows["Petrel"].organisation) == ("done", "Moor")
    assert rows["Petrel"].standing is not None
    assert not any("Petrel left" in cause for cause in causes(Snapshot.objects.latest("number")))


def test_added_samples_are_on_the_board_once_they_are_graded(version):
    snapshots.take(version)
    run = reopen("Petrel", 30)
    finish(run, n=2, c=2, assertion_fail=0)
    taken = snapshots.take(version)
    assert causes(taken)[0] == (
        f"Petrel samples added to submission {run.public_id}: 30 more, 60 in all; "
        "at pass@1 100.0 %, at pass@1 83.3 % before."
    )
    (petrel,) = (row for row in board(version).ranked if row.model == "Petrel")
    assert (petrel.figures.n_min, petrel.value, petrel.rank) == (2, 1.0, 1)
    (petrel,) = (row for row in board(version, snapshot=1).ranked if row.model == "Petrel")
    assert petrel.figures.n_min == 1


def test_the_missing_task_comes_later_and_the_run_is_ranked(version):
    snapshots.take(version)
    assert "Tern" in {row.model for row in board(version).unranked}
    run = reopen("Tern", 1)
    builders.score(run, version.tasks.last(), (1, 1))
    finish(run)
    assert "Tern samples added" in causes(snapshots.take(version))[0]
    assert "Tern" in {row.model for row in board(version).ranked}


def test_a_run_that_was_never_finished_is_provisional_though_samples_were_added(version):
    snapshots.take(version)
    run = builders.submission(version, "Gannet", [(1, 1)], state="grading", sample_count=30)
    Addition.objects.create(submission=run, sample_count=10, by=run.uploader)
    assert snapshots.take(version) is None
    assert "Gannet" in {row.model for row in board(version).unranked}


def test_a_withdrawn_run_does_not_stand_on(version):
    snapshots.take(version)
    run = reopen("Petrel", 30)
    Submission.objects.filter(pk=run.pk).update(visibility="unlisted")
    assert "Petrel left" in causes(snapshots.take(version))[0]


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

    def slow(of, last):
        """The edition of a process that another one overtakes."""
        monkeypatch.undo()
        edition = computed(of, last)
        assert snapshots.take(of).number == 2
        return edition

    monkeypatch.setattr(snapshots, "computed", slow)
    assert snapshots.take(version) is None
    assert Snapshot.objects.count() == 2


@pytest.mark.broker
def test_the_sweep_takes_snapshots(version, broker_url, capsys):
    call_command("sweep", "--once")
    assert "stored Tidepool version 1 snapshot 1" in capsys.readouterr().out


def test_a_merged_model_is_one_row_with_the_newest_complete_run(version):
    newer = builders.submission(version, "Heron v2", builders.solving(20, 30), age_h=0.5)
    snapshots.take(version)
    heron, other = (LanguageModel.objects.get(name=name) for name in ("Heron", "Heron v2"))
    model_merges.merge(other, heron, builders.user(), "the same weights")
    said = causes(snapshots.take(version))
    assert "Heron v2 was merged into Heron: its runs are that one's." in said
    assert any(f"Heron is represented by submission {newer.public_id}" in one for one in said)
    (row,) = (row for row in board(version).ranked if row.model.startswith("Heron"))
    assert (row.model, row.public_id) == ("Heron", newer.public_id)
    assert {"Heron", "Heron v2"} <= {row.model for row in board(version, snapshot=1).ranked}
    model_merges.undo(other, builders.user())
    assert any("Heron v2 entered" in one for one in causes(snapshots.take(version)))


def test_a_run_that_samples_are_added_to_moves_with_its_model(version):
    snapshots.take(version)
    reopen("Petrel", 30)
    petrel, skua = (LanguageModel.objects.get(name=name) for name in ("Petrel", "Skua"))
    model_merges.merge(skua, petrel, builders.user(), "the same weights")
    snapshots.take(version)
    assert [row.model for row in board(version).ranked] == ["Heron", "Petrel"]


def test_the_badge_of_a_merged_model_leads_on(version, client):
    snapshots.take(version)
    skua, petrel = (LanguageModel.objects.get(name=name) for name in ("Skua", "Petrel"))
    model_merges.merge(skua, petrel, builders.user(), "the same weights")
    snapshots.take(version)
    moved = client.get("/b/tidepool/badge/skua.svg")
    assert (moved.status_code, moved.headers["Location"]) == (301, "/b/tidepool/badge/petrel.svg")
