"""What the board of a version shows, and the figures of one submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from grading.engine.passk import TimeoutPolicy
from grading.models import BenchmarkVersion, Submission, TaskScore
from leaderboard.figures import KS, Figures, figures
from leaderboard.ranking import Standings
from leaderboard.rows import (
    Integrity,
    Row,
    groups,
    integrity_of,
    public_submissions,
    ranked,
    representing,
    rows_of,
    task_counts,
    with_integrity,
)
from leaderboard.standings import standing, standings_of
from leaderboard.words import Finding, finding

SORTS = (
    "score",
    "name",
    *(f"pass{k}" for k in KS),
    "fraction",
    "solved",
    "n",
    "coverage",
    "created",
)


class Choices(TypedDict, total=False):
    """What a reader may choose on a board; see `board`."""

    score: int
    sort: str
    q: str
    timeouts: TimeoutPolicy


@dataclass(frozen=True, slots=True)
class Board:
    """One benchmark version's models: ``ranked`` and, below the line, ``unranked``.

    ``models`` counts them, ``standings`` holds the ranked ones' tests and ``finding`` speaks of
    them as before the filter ``q``; ``ks`` are the k with a value in any row. ``integrity`` is
    that of all models together.
    """

    benchmark: str
    slug: str
    version: int
    tasks: int
    score: int
    sort: str
    q: str
    timeouts: TimeoutPolicy
    ks: tuple[int, ...]
    models: int
    standings: Standings
    finding: Finding
    integrity: Integrity
    ranked: tuple[Row, ...]
    unranked: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class SubmissionFigures:
    """One submission's result in numbers."""

    state: str
    sample_count: int
    figures: Figures
    sealed_share: float | None

    @property
    def pass_at_k(self) -> dict[str, float]:
        """Only the k that every covered task has samples for."""
        values = self.figures.pass_at.items()
        return {str(k): value for k, value in values if value is not None}

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "state": self.state,
            "samples": self.sample_count,
            "graded": sum(self.figures.outcomes.values()),
            "outcomes": {outcome.value: n for outcome, n in self.figures.outcomes.items()},
            "mean_fraction": self.figures.mean_fraction,
            "pass_at_k": self.pass_at_k,
            "coverage": {"tasks": self.figures.tasks, "covered": self.figures.covered},
            "sealed_share": self.sealed_share,
        }


def board(version: BenchmarkVersion, **choices: Unpack[Choices]) -> Board:
    """The board of one version, ranked by pass@``score`` (default 1).

    ``sort``: one of `SORTS` (default ``score``), with a leading ``-`` turned round; ``q`` filters
    by model or organisation and leaves the ranks as they are. ``timeouts="missing"`` leaves
    timeouts out of every figure and ranks nobody. Raises ValueError for a score or sort that
    does not exist.
    """
    score, sort = choices.get("score", 1), choices.get("sort", "score")
    q, timeouts = choices.get("q", ""), choices.get("timeouts", "zero")
    if score not in KS or sort.removeprefix("-") not in SORTS:
        raise ValueError(f"score={score}, sort={sort!r}: one of {KS} and of {SORTS} is needed")
    tasks = task_counts([version.pk])
    rows = ranked(with_integrity(_candidates(version, tasks, score, timeouts)), timeouts)
    (tested,) = standings_of([rows])
    rows = standing(rows, tested)
    ks = tuple(k for k in KS if any(row.figures.pass_at[k] is not None for row in rows))
    sort = _column(sort, score, ks)
    shown = _sorted([row for row in rows if _matches(row, q)], sort)
    return Board(
        benchmark=version.benchmark.title,
        slug=version.benchmark.slug,
        version=version.number,
        tasks=tasks.get(version.pk, 0),
        score=score,
        sort=sort,
        q=q,
        timeouts=timeouts,
        ks=ks,
        models=len(rows),
        standings=tested,
        finding=finding(rows, f"pass@{score}", tested),
        integrity=sum((row.integrity for row in rows), Integrity()),
        ranked=tuple(row for row in shown if row.rank is not None),
        unranked=tuple(row for row in shown if row.rank is None),
    )


def submission_figures(submission: Submission) -> SubmissionFigures:
    """Figures of one submission, whatever its state; pass@k over the tasks with samples."""
    tasks = task_counts([submission.version_id])
    found = groups(TaskScore.objects.filter(submission=submission))
    return SubmissionFigures(
        state=submission.state,
        sample_count=submission.sample_count,
        figures=figures(found.get(submission.pk, ()), tasks.get(submission.version_id, 0)),
        sealed_share=integrity_of([submission.public_id])
        .get(submission.public_id, Integrity())
        .sealed_share,
    )


def _candidates(
    version: BenchmarkVersion, tasks: dict[int, int], score: int, timeouts: TimeoutPolicy
) -> list[Row]:
    """One row per model."""
    scores = TaskScore.objects.filter(
        submission__version=version, submission__visibility=Submission.Visibility.PUBLIC
    )
    submissions = public_submissions().filter(version=version)
    return representing(rows_of(submissions, scores, tasks, score, timeouts))


def _matches(row: Row, q: str) -> bool:
    wanted = q.strip().casefold()
    return wanted in row.model.casefold() or wanted in row.organisation.casefold()


def _column(sort: str, score: int, ks: tuple[int, ...]) -> str:
    """``sort`` by a column the board has: the chosen score's is ``score``."""
    key = sort.removeprefix("-")
    shown = {f"pass{k}" for k in ks if k != score}
    if not key.startswith("pass") or key in shown:
        return sort
    return "-score" if sort.startswith("-") else "score"


def _sorted(rows: list[Row], sort: str) -> list[Row]:
    """Numbers highest first, names from A, dates newest first; ``-`` turns that round.

    Missing values come last either way; equal ones stay in order of name.
    """
    key = sort.removeprefix("-")
    turned = sort.startswith("-")
    named = sorted(rows, key=lambda row: row.model.casefold())
    if key == "name":
        return named[::-1] if turned else named
    known = [row for row in named if _sort_value(row, key) is not None]
    unknown = [row for row in named if _sort_value(row, key) is None]
    return sorted(known, key=lambda row: _sort_value(row, key), reverse=not turned) + unknown


def _sort_value(row: Row, key: str) -> Any:
    if key.startswith("pass"):
        return row.figures.pass_at[int(key.removeprefix("pass"))]
    return {
        "score": row.value,
        "fraction": row.figures.mean_fraction,
        "solved": row.figures.solved,
        "n": row.figures.n_min,
        "coverage": row.figures.covered,
        "created": row.created_at,
    }[key]
