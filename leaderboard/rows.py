"""Submissions as rows of a table, read in a fixed number of queries.

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
from grading.models import Submission, Task, TaskScore
from leaderboard.figures import Figures, Group, figures
from leaderboard.ranking import Standing, competition_ranks


@dataclass(frozen=True, slots=True)
class Integrity:
    """Counts of targets: ``sealed`` ones, evaluated outside the cell, of ``targets``.

    ``tiers`` and ``hardening`` are those in force in any of the attempts, sorted.
    """

    sealed: int = 0
    targets: int = 0
    tiers: tuple[str, ...] = ()
    hardening: tuple[str, ...] = ()

    @property
    def sealed_share(self) -> float | None:
        return self.sealed / self.targets if self.targets else None

    def __add__(self, other: Integrity) -> Integrity:
        return Integrity(
            self.sealed + other.sealed,
            self.targets + other.targets,
            tuple(sorted({*self.tiers, *other.tiers})),
            tuple(sorted({*self.hardening, *other.hardening})),
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One submission in a table. ``reason`` says why there is no rank; empty where there is.

    ``ungraded``: uploaded samples without an outcome (still queued, or platform failures once
    ``state`` is done). ``integrity``: how far its verdicts can be trusted. ``extraction`` and
    ``prefix``: the benchmark's rules for which block is the program and what stands in front of it.
    ``standing``: against the other ranked rows. ``before``: its score in an earlier snapshot.
    """

    benchmark: str
    benchmark_slug: str
    version: int
    model: str
    model_slug: str
    organisation: str
    synthetic: bool
    public_id: str
    state: str
    private: bool
    settings: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None
    sample_count: int
    figures: Figures
    extraction: str = ""
    prefix: str = ""
    integrity: Integrity = Integrity()
    rank: int | None = None
    standing: Standing | None = None
    reason: str = ""
    before: float | None = None

    @property
    def value(self) -> float | None:
        """The chosen score."""
        return self.figures.pass_at[self.figures.score]

    @property
    def change(self) -> float | None:
        """Of the score since then."""
        return None if self.value is None or self.before is None else self.value - self.before

    @property
    def sealed_share(self) -> float | None:
        return self.integrity.sealed_share

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


def public_submissions() -> QuerySet[Submission]:
    """Newest first, with language model and benchmark; cancelled ones are nobody's result."""
    return (
        Submission.objects.filter(visibility=Submission.Visibility.PUBLIC)
        .exclude(state=Submission.State.CANCELLED)
        .select_related("language_model", "version__benchmark")
        .order_by("-created_at", "-pk")
    )


def task_counts(versions: Iterable[int]) -> dict[int, int]:
    """Number of tasks by version id."""
    counted = Task.objects.filter(version__in=versions).values("version_id")
    return dict(counted.annotate(n=Count("pk")).order_by().values_list("version_id", "n"))


def rows_of(
    submissions: Iterable[Submission],
    scores: QuerySet[TaskScore],
    tasks: Mapping[int, int],
    score: int = 1,
    timeouts: TimeoutPolicy = "zero",
) -> list[Row]:
    """A row per submission, in their order; ``scores``: at least theirs; `task_counts`."""
    found = groups(scores)
    return [
        row_of(one, figures(found.get(one.pk, ()), tasks.get(one.version_id, 0), score, timeouts))
        for one in submissions
    ]


def row_of(submission: Submission, result: Figures) -> Row:
    model = submission.language_model
    benchmark = submission.version.benchmark
    return Row(
        benchmark=benchmark.title,
        benchmark_slug=benchmark.slug,
        version=submission.version.number,
        model=model.name,
        model_slug=model.slug,
        organisation=model.organisation,
        synthetic=model.synthetic,
        public_id=submission.public_id,
        state=submission.state,
        private=submission.visibility == Submission.Visibility.PRIVATE,
        settings=submission.settings,
        created_at=submission.created_at,
        finished_at=submission.finished_at,
        sample_count=submission.sample_count,
        figures=result,
        extraction=benchmark.blocks,
        prefix=benchmark.preamble,
    )


def renamed(row: Row, submission: Submission) -> Row:
    """The row of a run as it was, under what its language model is called now."""
    model = submission.language_model
    return replace(
        row,
        model=model.name,
        model_slug=model.slug,
        organisation=model.organisation,
        synthetic=model.synthetic,
        settings=submission.settings,
    )


def groups(scores: QuerySet[TaskScore]) -> dict[int, list[Group]]:
    """Task scores by submission id, summed up in the database."""
    counted = scores.values("submission_id", "n", "c", "timeout").annotate(
        tasks=Count("pk"),
        fractions=Sum("fraction_sum"),
        failed=Sum("assertion_fail"),
        broken=Sum("syntax_error"),
        crashed=Sum("error"),
    )
    found: dict[int, list[Group]] = defaultdict(list)
    for one in counted.order_by("submission_id", "n", "c", "timeout"):
        found[one["submission_id"]].append(_group(one))
    return found


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


def integrity_of(public_ids: Sequence[str]) -> dict[str, Integrity]:
    """By submission; those without an attempt are left out."""
    current = "samples__current_attempt__"
    parts = (
        Submission.objects.filter(public_id__in=public_ids, samples__current_attempt__isnull=False)
        .values_list("public_id", f"{current}tier", f"{current}hardening")
        .annotate(sealed=Sum(f"{current}sealed"), targets=Sum(f"{current}total"))
    )
    found: dict[str, Integrity] = {}
    for public_id, tier, hardening, sealed, targets in parts:
        part = Integrity(sealed, targets, (tier,), tuple(hardening))
        found[public_id] = found.get(public_id, Integrity()) + part
    return found


def with_integrity(rows: list[Row]) -> list[Row]:
    found = integrity_of([row.public_id for row in rows])
    return [replace(row, integrity=found.get(row.public_id, Integrity())) for row in rows]


def representing(rows: Iterable[Row]) -> list[Row]:
    """One row per model, from rows that come newest first."""
    chosen: dict[str, Row] = {}
    for row in rows:
        held = chosen.get(row.model_slug)
        if held is None or (row.complete and not held.complete):
            chosen[row.model_slug] = row
    return list(chosen.values())


def ranked(rows: list[Row], timeouts: TimeoutPolicy = "zero") -> list[Row]:
    """The same rows with their ranks by the chosen score, or the reason for none."""
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
