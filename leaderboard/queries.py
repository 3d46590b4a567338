"""Reads behind the leaderboard: few queries, however many rows.

A model is represented on a board by its newest complete public submission, else by its newest
one that is not cancelled. Complete: graded to the end, every task has a graded sample and no
sample was lost to the platform. Only complete runs take a rank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet, Sum

from grading.engine.outcome import Outcome
from grading.engine.passk import TimeoutPolicy
from grading.models import BenchmarkVersion, Submission, Task, TaskScore
from leaderboard.figures import KS, Figures, Group, figures
from leaderboard.ranking import competition_ranks

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


@dataclass(frozen=True, slots=True)
class Row:
    """One submission in a table. ``reason`` says why there is no rank; empty where there is.

    ``ungraded``: uploaded samples without an outcome (still queued, or platform failures once
    ``state`` is done). ``sealed_share``: targets evaluated outside the cell, of all evaluated.
    """

    model: str
    model_slug: str
    organisation: str
    synthetic: bool
    public_id: str
    state: str
    settings: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None
    sample_count: int
    figures: Figures
    sealed_share: float | None = None
    rank: int | None = None
    reason: str = ""

    @property
    def value(self) -> float | None:
        """The chosen score."""
        return self.figures.pass_at[self.figures.score]

    @property
    def ungraded(self) -> int:
        return self.sample_count - sum(self.figures.outcomes.values())

    @property
    def platform_failures(self) -> int:
        return self.ungraded if self.state == Submission.State.DONE else 0

    @property
    def complete(self) -> bool:
        done = self.state == Submission.State.DONE
        return done and self.figures.full_coverage and not self.ungraded


@dataclass(frozen=True, slots=True)
class Board:
    """One benchmark version's models: ``ranked`` and, below the line, ``unranked``.

    ``models`` counts them before the filter ``q``; ``ks`` are the k with a value in any row.
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


def board(
    version: BenchmarkVersion,
    *,
    score: int = 1,
    sort: str = "score",
    q: str = "",
    timeouts: TimeoutPolicy = "zero",
) -> Board:
    """The board of one version, ranked by pass@``score``.

    ``sort``: one of `SORTS`, with a leading ``-`` turned round; ``q`` filters by model or
    organisation and leaves the ranks as they are. ``timeouts="missing"`` leaves timeouts out of
    every figure and ranks nobody. Raises ValueError for a score or sort that does not exist.
    """
    if score not in KS or sort.removeprefix("-") not in SORTS:
        raise ValueError(f"score={score}, sort={sort!r}: one of {KS} and of {SORTS} is needed")
    tasks = Task.objects.filter(version=version).count()
    rows = _representing(_rows(_on_board([version.pk]), {version.pk: tasks}, score, timeouts))
    rows = _ranked(_with_sealed(rows), timeouts)
    shown = _sorted([row for row in rows if _matches(row, q)], sort)
    return Board(
        benchmark=version.benchmark.title,
        slug=version.benchmark.slug,
        version=version.number,
        tasks=tasks,
        score=score,
        sort=sort,
        q=q,
        timeouts=timeouts,
        ks=tuple(k for k in KS if any(row.figures.pass_at[k] is not None for row in rows)),
        models=len(rows),
        ranked=tuple(row for row in shown if row.rank is not None),
        unranked=tuple(row for row in shown if row.rank is None),
    )


def submission_figures(submission: Submission) -> SubmissionFigures:
    """Figures of one submission, whatever its state; pass@k over the tasks with samples."""
    tasks = Task.objects.filter(version=submission.version_id).count()
    groups = _groups(TaskScore.objects.filter(submission=submission))
    return SubmissionFigures(
        state=submission.state,
        sample_count=submission.sample_count,
        figures=figures(groups.get(submission.pk, ()), tasks),
        sealed_share=_sealed_shares([submission.public_id]).get(submission.public_id),
    )


def _on_board(versions: Iterable[int]) -> QuerySet[Submission]:
    return (
        Submission.objects.filter(version__in=versions, visibility=Submission.Visibility.PUBLIC)
        .exclude(state=Submission.State.CANCELLED)
        .select_related("language_model")
        .order_by("-created_at", "-pk")
    )


def _rows(
    submissions: QuerySet[Submission],
    tasks: dict[int, int],
    score: int = 1,
    timeouts: TimeoutPolicy = "zero",
) -> list[Row]:
    """Rows in the order of ``submissions``; ``tasks``: number of tasks by version id."""
    groups = _groups(TaskScore.objects.filter(submission__in=submissions.order_by().values("pk")))
    return [
        _row(one, figures(groups.get(one.pk, ()), tasks[one.version_id], score, timeouts))
        for one in submissions
    ]


def _row(submission: Submission, result: Figures) -> Row:
    model = submission.language_model
    return Row(
        model=model.name,
        model_slug=model.slug,
        organisation=model.organisation,
        synthetic=model.synthetic,
        public_id=submission.public_id,
        state=submission.state,
        settings=submission.settings,
        created_at=submission.created_at,
        finished_at=submission.finished_at,
        sample_count=submission.sample_count,
        figures=result,
    )


def _groups(scores: QuerySet[TaskScore]) -> dict[int, list[Group]]:
    """Task scores by submission id, summed up in the database."""
    counted = scores.values("submission_id", "n", "c", "timeout").annotate(
        tasks=Count("pk"),
        fractions=Sum("fraction_sum"),
        failed=Sum("assertion_fail"),
        broken=Sum("syntax_error"),
        crashed=Sum("error"),
    )
    groups: dict[int, list[Group]] = defaultdict(list)
    for one in counted.order_by("submission_id", "n", "c", "timeout"):
        groups[one["submission_id"]].append(_group(one))
    return groups


def _group(one: Mapping[str, Any]) -> Group:
    return Group(
        n=one["n"],
        c=one["c"],
        timed_out=one["timeout"],
        tasks=one["tasks"],
        fraction_sum=one["fractions"],
        outcomes={
            Outcome.PASS: one["c"] * one["tasks"],
            Outcome.ASSERTION_FAIL: one["failed"],
            Outcome.ERROR: one["crashed"],
            Outcome.TIMEOUT: one["timeout"] * one["tasks"],
            Outcome.SYNTAX_ERROR: one["broken"],
        },
    )


def _sealed_shares(public_ids: Sequence[str]) -> dict[str, float]:
    """Share of the evaluated targets that were sealed, by submission."""
    sums = (
        Submission.objects.filter(public_id__in=public_ids)
        .values("public_id")
        .annotate(
            sealed=Sum("samples__current_attempt__sealed"),
            total=Sum("samples__current_attempt__total"),
        )
    )
    return {one["public_id"]: one["sealed"] / one["total"] for one in sums if one["total"]}


def _with_sealed(rows: list[Row]) -> list[Row]:
    shares = _sealed_shares([row.public_id for row in rows])
    return [replace(row, sealed_share=shares.get(row.public_id)) for row in rows]


def _representing(rows: Iterable[Row]) -> list[Row]:
    """One row per model, from rows that come newest first."""
    chosen: dict[str, Row] = {}
    for row in rows:
        held = chosen.get(row.model_slug)
        if held is None or (row.complete and not held.complete):
            chosen[row.model_slug] = row
    return list(chosen.values())


def _ranked(rows: list[Row], timeouts: TimeoutPolicy) -> list[Row]:
    reasons = [_reason(row, timeouts) for row in rows]
    pairs = list(zip(rows, reasons, strict=True))
    ranks = competition_ranks([None if reason else row.value for row, reason in pairs])
    return [
        replace(row, rank=rank, reason=reason)
        for (row, reason), rank in zip(pairs, ranks, strict=True)
    ]


def _reason(row: Row, timeouts: TimeoutPolicy) -> str:
    """Why this row takes no rank; empty if it does."""
    result = row.figures
    if row.state == Submission.State.GRADING:
        graded = row.sample_count - row.ungraded
        return f"provisional, {graded:,} of {row.sample_count:,} samples graded"
    if row.ungraded:
        lost = "sample" if row.ungraded == 1 else "samples"
        return f"{row.ungraded:,} {lost} lost to platform failures"
    if timeouts == "missing":
        return "timeouts left out"
    if not result.full_coverage:
        return f"{result.tasks - result.covered:,} of {result.tasks:,} tasks missing"
    return result.why_missing(result.score)


def _matches(row: Row, q: str) -> bool:
    wanted = q.strip().casefold()
    return wanted in row.model.casefold() or wanted in row.organisation.casefold()


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
