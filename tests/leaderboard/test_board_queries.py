"""What stands on a board, and at what cost in queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grading.engine.outcome import Outcome
from grading.models import Sample
from leaderboard import snapshots
from leaderboard.queries import board, submission_figures
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


def names(rows):
    return [row.model for row in rows]


def test_figures_of_a_row():
    version = builders.version(tasks=2)
    builders.submission(
        version,
        scores=[
            {"n": 10, "c": 3, "fraction_sum": 5.0, "assertion_fail": 4, "timeout": 2, "error": 1},
            {"n": 10, "c": 0, "fraction_sum": 0.0, "syntax_error": 10},
        ],
    )
    (row,) = board(version).ranked
    result = row.figures
    assert result.pass_at == {1: 0.15, 5: pytest.approx(11 / 24), 10: 0.5, 100: None}
    assert result.why_missing(100) == "needs 100 samples on every task, this run has 10"
    assert result.mean_fraction == pytest.approx(0.25)
    assert (result.solved, result.n_min, result.n_max) == (1, 10, 10)
    assert result.outcomes == {
        Outcome.PASS: 3,
        Outcome.ASSERTION_FAIL: 4,
        Outcome.ERROR: 1,
        Outcome.TIMEOUT: 2,
        Outcome.SYNTAX_ERROR: 10,
    }
    assert result.interval.low < 0.15 < result.interval.high


def test_figures_of_a_real_run(shared: Path):
    verdicts = shared / "reference" / "verdicts" / "mistral7b_humaneval_n10.jsonl"
    passed: dict[str, list[bool]] = {}
    for line in verdicts.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        passed.setdefault(row["task_id"], []).append(row["passed"])
    version = builders.version(tasks=164)
    scores = [(len(samples), sum(samples)) for samples in passed.values()]
    result = submission_figures(builders.submission(version, scores=scores)).as_dict()
    assert {k: f"{value:.6f}" for k, value in result["pass_at_k"].items()} == {
        "1": "0.325000",
        "5": "0.403915",
        "10": "0.432927",
    }
    assert (result["samples"], result["graded"]) == (1640, 1640)


def test_ranks_and_ties():
    version = builders.version(tasks=2)
    builders.submission(version, "A", [(2, 1), (2, 1)])
    builders.submission(version, "B", [(2, 2), (2, 0)])
    builders.submission(version, "C", [(2, 2), (2, 2)])
    builders.submission(version, "D", [(2, 0), (2, 0)])
    rows = board(version).ranked
    assert [(row.rank, row.model) for row in rows] == [(1, "C"), (2, "A"), (2, "B"), (4, "D")]
    assert rows[-1].value == 0  # zero is a score
    by_five = board(version, score=5)
    assert not by_five.ranked
    assert by_five.unranked[0].reason == "needs 5 samples on every task, this run has 2"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"scores": [(5, 5), None]}, "1 of 2 tasks missing"),
        ({"scores": [(5, 5), (0, 0)]}, "1 of 2 tasks missing"),
        (
            {"scores": [(5, 5), (3, 3)], "state": "grading", "sample_count": 1640},
            "provisional, 8 of 1,640 samples graded",
        ),
        (
            {"scores": [(5, 5), (4, 4)], "sample_count": 10},
            "1 sample lost to platform failures",
        ),
        (
            {"scores": [], "state": "grading", "sample_count": 10},
            "provisional, 0 of 10 samples graded",
        ),
    ],
)
def test_incomplete_runs_stand_below_the_line(fields, reason):
    version = builders.version(tasks=2)
    builders.submission(version, "Full", [(5, 0), (5, 0)])
    builders.submission(version, "Part", **fields)
    shown = board(version)
    assert [(row.rank, row.model) for row in shown.ranked] == [(1, "Full")]
    assert [(row.model, row.reason) for row in shown.unranked] == [("Part", reason)]


def test_newest_complete_public_submission_represents_a_model():
    version = builders.version(tasks=1)
    builders.submission(version, scores=[(4, 4)], age_h=9)
    expected = builders.submission(version, scores=[(4, 1)], age_h=5)
    builders.submission(version, scores=[(4, 4)], age_h=4, visibility="private")
    builders.submission(version, scores=[(4, 4)], age_h=3, state="cancelled")
    builders.submission(version, scores=[None], age_h=2)
    builders.submission(version, scores=[(1, 1)], age_h=1, state="grading", sample_count=4)
    (row,) = board(version).ranked
    assert row.public_id == expected.public_id
    assert board(version).models == 1


def test_private_and_cancelled_runs_are_never_shown():
    version = builders.version(tasks=1)
    builders.submission(version, "Hidden", [(1, 1)], visibility="private")
    builders.submission(version, "Stopped", [(1, 1)], state="cancelled")
    assert board(version).models == 0


def test_unequal_n_counts_each_task_once():
    version = builders.version(tasks=4)
    builders.submission(version, scores=[(10, 3), (2, 1), (1, 0), (1, 1)])
    (row,) = board(version).ranked
    assert row.value == 9 / 20
    assert (row.figures.n_min, row.figures.n_max) == (1, 10)
    assert row.figures.why_missing(5) == "needs 5 samples on every task; 3 of 4 have fewer"


def test_timeouts_left_out():
    version = builders.version(tasks=2)
    scores = [{"n": 4, "c": 1, "timeout": 2, "error": 1}, {"n": 4, "c": 0, "timeout": 4}]
    builders.submission(version, scores=scores)
    assert board(version).ranked[0].value == 1 / 8
    (row,) = board(version, timeouts="missing").unranked
    assert (row.value, row.reason) == (0.5, "timeouts left out")
    assert row.figures.outcomes[Outcome.TIMEOUT] == 6


def test_filter_keeps_ranks():
    version = builders.version(tasks=1)
    builders.submission(version, "Heron", [(2, 2)])
    builders.submission(version, "Petrel", [(2, 1)], organisation="Skerry")
    shown = board(version, q=" SKERRY ")
    assert [(row.rank, row.model) for row in shown.ranked] == [(2, "Petrel")]
    assert shown.models == 2
    assert names(board(version, q="petr").ranked) == ["Petrel"]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("score", ["B", "a", "C"]),
        ("-score", ["C", "a", "B"]),
        ("name", ["a", "B", "C"]),
        ("-name", ["C", "B", "a"]),
        ("pass5", ["a", "B", "C"]),
        ("-pass5", ["a", "B", "C"]),
        ("fraction", ["B", "C", "a"]),
        ("solved", ["a", "B", "C"]),
        ("n", ["a", "B", "C"]),
        ("created", ["C", "B", "a"]),
    ],
)
def test_sorting_keeps_missing_values_last(sort, expected):
    version = builders.version(tasks=1)
    builders.submission(version, "a", [{"n": 5, "c": 2, "fraction_sum": 2.0}], age_h=3)
    builders.submission(version, "B", [{"n": 2, "c": 2, "fraction_sum": 2.0}], age_h=2)
    builders.submission(version, "C", [{"n": 1, "c": 0, "fraction_sum": 1.0}], age_h=1)
    assert names(board(version, sort=sort).ranked) == expected


@pytest.mark.parametrize("arguments", [{"score": 3}, {"sort": "rank"}, {"sort": "--name"}])
def test_unknown_choices_are_refused(arguments):
    version = builders.version(tasks=1)
    with pytest.raises(ValueError, match="needed"):
        board(version, **arguments)


def test_queries_do_not_grow_with_rows():
    version = builders.version(tasks=3)

    def cost() -> int:
        snapshots.take(version)
        with CaptureQueriesContext(connection) as captured:
            board(version)
        return len(captured)

    builders.submission(version, "A", [(2, 1)] * 3)
    before = cost()
    for i in range(30):
        builders.submission(version, f"M{i}", [(2, 1), (3, 1), (i + 1, 0)])
        builders.submission(version, f"L{i}", [(2, 1)], state="grading", sample_count=6)
    assert cost() <= before + 3 <= 9  # three more for runs that are being graded


def test_sealed_share():
    version = builders.version(tasks=2)
    made = builders.submission(version, scores=[(1, 1), (1, 1)])
    for task, sealed in zip(version.tasks.all(), (3, 4), strict=True):
        sample = Sample.objects.create(submission=made, task=task, index=0)
        builders.attempt(sample, sealed=sealed, total=4)
    assert board(version).ranked[0].sealed_share == 7 / 8
    assert submission_figures(made).sealed_share == 7 / 8


def test_submission_figures_leave_out_what_has_no_value():
    version = builders.version(tasks=3)
    made = builders.submission(
        version, scores=[(10, 5), (5, 0), None], state="grading", sample_count=30
    )
    result = json.loads(json.dumps(submission_figures(made).as_dict()))
    assert result["pass_at_k"] == {"1": 0.25, "5": pytest.approx(0.498015873)}
    assert (result["state"], result["samples"], result["graded"]) == ("grading", 30, 15)
    assert result["coverage"] == {"tasks": 3, "covered": 2}
    assert result["outcomes"]["pass"] == 5


def test_a_submission_without_samples_has_no_figures():
    version = builders.version(tasks=3)
    made = builders.submission(version, scores=[], state="grading", sample_count=3)
    result = submission_figures(made)
    assert result.pass_at_k == {}
    assert result.figures.mean_fraction is None
    assert result.figures.why_missing(1) == "no graded sample"
