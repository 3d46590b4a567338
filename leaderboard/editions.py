"""What stands on a version's board: one run of every model, with its figures and its scores.

An edition is computed from the records, or read from a snapshot that was; both give the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.utils import timezone

from grading.engine.passk import TimeoutPolicy
from grading.models import BenchmarkVersion, Submission, TaskScore
from leaderboard.figures import Figures, figures
from leaderboard.packing import facts_of
from leaderboard.ranking import Standings, standings
from leaderboard.rows import (
    Row,
    public_submissions,
    ranked,
    renamed,
    representing,
    rows_of,
    task_counts,
    with_integrity,
)
from leaderboard.sheets import Sheet, read_sheets

# Raised when the same records would give other figures.
STATISTICS = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A row by pass@1, its figures with timeouts left out, and the digest of its sheet."""

    row: Row
    without_timeouts: Figures
    digest: str

    def shown(self, score: int, timeouts: TimeoutPolicy) -> Row:
        chosen = self.without_timeouts if timeouts == "missing" else self.row.figures
        return replace(self.row, figures=replace(chosen, score=score))


@dataclass(frozen=True)
class Edition:
    """``number``: of the snapshot; None for one that is computed while it is read.

    ``policies``: what besides the scores decides them. ``withdrawn``: rows of the snapshot whose
    submissions are no longer public, left out of ``entries``.
    """

    tasks: int
    policies: Mapping[str, Any]
    entries: tuple[Entry, ...]
    read_tests: Callable[[int], Standings]
    read_sheets: Callable[[], Mapping[str, Sheet]]
    number: int | None = None
    taken_at: datetime = field(default_factory=timezone.now)
    withdrawn: int = 0

    @cached_property
    def sheets(self) -> Mapping[str, Sheet]:
        """By public id."""
        return self.read_sheets()

    def rows(self, score: int = 1, timeouts: TimeoutPolicy = "zero") -> list[Row]:
        """Ranked by pass@``score``."""
        return ranked([entry.shown(score, timeouts) for entry in self.entries], timeouts)

    def tests(self, score: int, timeouts: TimeoutPolicy = "zero") -> Standings:
        return self.read_tests(score) if timeouts == "zero" else Standings()

    def digest(self) -> str:
        """Of everything that it was made from."""
        parts = [[facts_of(entry.row), entry.digest] for entry in self.entries]
        text = json.dumps([self.tasks, self.policies, parts], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def computed(version: BenchmarkVersion, last: Edition | None = None) -> Edition:
    """From the records of the version's finished public submissions.

    A run that samples are being added to stands as it does in ``last``, the edition before.
    """
    kept = _kept(version, last) if last else {}
    standing = Q(state=Submission.State.DONE) | Q(public_id__in=kept)
    runs = public_submissions().filter(standing, version=version)
    tasks = task_counts([version.pk]).get(version.pk, 0)
    scores = TaskScore.objects.filter(submission__in=runs.order_by().values("pk"))
    found = rows_of(runs, scores, {version.pk: tasks})
    rows = [kept[row.public_id].row if row.public_id in kept else row for row in found]
    chosen = representing(rows)
    fresh = with_integrity([row for row in chosen if row.public_id not in kept])
    sheets = read_sheets(version.pk, [row.public_id for row in fresh])
    made = {row.public_id: _entry(row, sheets[row.public_id], tasks) for row in fresh}
    if last and kept:
        sheets |= {public_id: last.sheets[public_id] for public_id in kept}
    entries = tuple(made.get(row.public_id) or kept[row.public_id] for row in chosen)
    rows = ranked([entry.row for entry in entries])
    return Edition(
        tasks=tasks,
        policies=policies_of(version),
        entries=entries,
        read_tests=lambda score: tested(ranked(_by(rows, score)), sheets, score),
        read_sheets=lambda: sheets,
    )


def _kept(version: BenchmarkVersion, last: Edition) -> dict[str, Entry]:
    """By public id, entries of ``last`` whose runs are graded on since; with today's names."""
    again = public_submissions().filter(version=version, additions__reopened=True).distinct()
    held = {entry.row.public_id: entry for entry in last.entries}
    return {
        one.public_id: replace(held[one.public_id], row=renamed(held[one.public_id].row, one))
        for one in again.filter(state=Submission.State.GRADING)
        if one.public_id in held
    }


def _entry(row: Row, sheet: Sheet, tasks: int) -> Entry:
    return Entry(row, figures(sheet.groups(), tasks, timeouts="missing"), sheet.digest())


def _by(rows: list[Row], score: int) -> list[Row]:
    return [replace(row, figures=replace(row.figures, score=score)) for row in rows]


def tested(
    rows: list[Row], sheets: Mapping[str, Sheet], score: int, places: frozenset[int] | None = None
) -> Standings:
    """Every pair of the ranked rows; ``places``: on these tasks only."""
    return standings(
        {
            row.public_id: sheets[row.public_id].values(score, places)
            for row in rows
            if row.rank is not None
        }
    )


def policies_of(version: BenchmarkVersion) -> dict[str, Any]:
    benchmark = version.benchmark
    return {
        "extraction": benchmark.blocks,
        "prefix": benchmark.preamble,
        "denied imports": benchmark.denylist,
        "statistics": STATISTICS,
    }


def provisional(
    version: BenchmarkVersion, shown: Edition, score: int, timeouts: TimeoutPolicy
) -> list[Row]:
    """Rows of models that are being graded for the first time."""
    held = {entry.row.model_slug for entry in shown.entries}
    live = [
        one
        for one in public_submissions().filter(version=version, state=Submission.State.GRADING)
        if one.language_model.slug not in held
    ]
    scores = TaskScore.objects.filter(submission__in=[one.pk for one in live])
    tasks = {version.pk: shown.tasks}
    return with_integrity(representing(rows_of(live, scores, tasks, score, timeouts)))
