"""What the board of a version shows, and the figures of one submission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypedDict, Unpack

from grading.engine.passk import TimeoutPolicy
from grading.models import BenchmarkVersion, Submission, TaskScore
from leaderboard import conditions, snapshots
from leaderboard.editions import Edition, provisional, tested
from leaderboard.figures import KS, Figures, figures
from leaderboard.ranking import Standings
from leaderboard.rows import Integrity, Row, groups, integrity_of, ranked, task_counts
from leaderboard.selection import Selection, select
from leaderboard.since import Earlier, earlier
from leaderboard.standings import standing
from leaderboard.words import Finding, finding

SORTS = (
    "score",
    "name",
    *(f"pass{k}" for k in KS),
    "fraction",
    "solved",
    "n",
    "coverage",
    "change",
    "created",
)


class Choices(TypedDict, total=False):
    """What a reader may choose on a board; see `board`."""

    score: int
    sort: str
    q: str
    timeouts: TimeoutPolicy
    where: Mapping[str, str]
    tag: str
    without: Sequence[str]
    snapshot: int | None
    since: int | None


@dataclass(frozen=True, slots=True)
class Board:
    """One benchmark version's models: ``ranked`` and, below the line, ``unranked``.

    ``models`` counts them, ``standings`` holds the ranked ones' tests and ``finding`` speaks of
    them as before the filters ``q`` and ``where``; ``ks`` are the k with a value in any row.
    ``integrity`` is that of all models together, ``usual`` the value most of them have of each of
    their `conditions` and ``offered`` the values to filter by. ``tasks`` counts those selected
    of the version's ``all_tasks``. ``since``: the snapshot that changes are counted from.
    """

    benchmark: str
    slug: str
    version: int
    tasks: int
    all_tasks: int
    score: int
    sort: str
    q: str
    timeouts: TimeoutPolicy
    where: Mapping[str, str]
    selection: Selection
    snapshot: int | None
    since: int | None
    taken_at: datetime
    withdrawn: int
    ks: tuple[int, ...]
    models: int
    standings: Standings
    finding: Finding
    integrity: Integrity
    usual: Mapping[str, str]
    offered: Mapping[str, Sequence[str]]
    ranked: tuple[Row, ...]
    unranked: tuple[Row, ...]

    @property
    def mixed(self) -> list[str]:
        """The `conditions` of which no value is that of most runs."""
        return [name for name in self.offered if name not in self.usual]


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

    Read from the newest snapshot, or from number ``snapshot``. ``sort``: one of `SORTS` (default
    ``score``), with a leading ``-`` turned round. ``q`` filters by model or organisation and
    ``where`` by `conditions`; both leave the ranks as they are. ``tag`` and ``without`` select the
    tasks that count, and everything is computed for those. ``timeouts="missing"`` leaves timeouts
    out of every figure and ranks nobody. Changes are counted from snapshot ``since``, by default
    the one before; on some of the tasks there are none. Raises ValueError for a score or sort that
    does not exist, `Snapshot.DoesNotExist` for a snapshot that was never taken.
    """
    score, sort = choices.get("score", 1), choices.get("sort", "score")
    timeouts, number = choices.get("timeouts", "zero"), choices.get("snapshot")
    if score not in KS or sort.removeprefix("-") not in SORTS:
        raise ValueError(f"score={score}, sort={sort!r}: one of {KS} and of {SORTS} is needed")
    edition = snapshots.current(version, number)
    selection = select(version, choices.get("tag", ""), choices.get("without", ()))
    rows, tests = _tested_rows(edition, selection, score, timeouts)
    then = Earlier()
    if selection.places is None:
        then = earlier(version, edition.number, choices.get("since"), score, timeouts)
        rows = then.beside(rows)
    if number is None and selection.places is None:
        rows += _live(version, edition, score, timeouts)
    q, where = choices.get("q", ""), choices.get("where", {})
    ks = tuple(k for k in KS if any(row.figures.pass_at[k] is not None for row in rows))
    sort = _column(sort, score, ks, then.snapshot)
    kept = [row for row in rows if _matches(row, q) and conditions.matches(row, where)]
    shown = _sorted(kept, sort)
    return Board(
        benchmark=version.benchmark.title,
        slug=version.benchmark.slug,
        version=version.number,
        tasks=edition.tasks if selection.places is None else len(selection.places),
        all_tasks=edition.tasks,
        score=score,
        sort=sort,
        q=q,
        timeouts=timeouts,
        where=where,
        selection=selection,
        snapshot=edition.number,
        since=then.snapshot,
        taken_at=edition.taken_at,
        withdrawn=edition.withdrawn,
        ks=ks,
        models=len(rows),
        standings=tests,
        finding=finding(rows, f"pass@{score}", tests),
        integrity=sum((row.integrity for row in rows), Integrity()),
        usual=conditions.usual([row for row in rows if row.rank is not None] or rows),
        offered=conditions.offered(rows),
        ranked=tuple(row for row in shown if row.rank is not None),
        unranked=tuple(row for row in shown if row.rank is None),
    )


def _tested_rows(
    edition: Edition, selection: Selection, score: int, timeouts: TimeoutPolicy
) -> tuple[list[Row], Standings]:
    places = selection.places
    if places is None:
        rows, tests = edition.rows(score, timeouts), edition.tests(score, timeouts)
    else:
        rows = ranked(_on(edition, places, score, timeouts), timeouts)
        tests = tested(rows, edition.sheets, score, places)
    return standing(rows, tests), tests


def _on(edition: Edition, places: frozenset[int], score: int, timeouts: TimeoutPolicy) -> list[Row]:
    """Rows on some tasks only; samples the platform failed to grade stay counted."""
    rows = []
    for entry in edition.entries:
        row, sheet = entry.row, edition.sheets[entry.row.public_id]
        held = figures(sheet.groups(places), len(places), score, timeouts)
        samples = sum(held.outcomes.values()) + row.ungraded
        rows.append(replace(row, figures=held, sample_count=samples))
    return rows


def _live(
    version: BenchmarkVersion, edition: Edition, score: int, timeouts: TimeoutPolicy
) -> list[Row]:
    rows = provisional(version, edition, score, timeouts)
    return ranked(rows, timeouts)


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


def _matches(row: Row, q: str) -> bool:
    wanted = q.strip().casefold()
    return wanted in row.model.casefold() or wanted in row.organisation.casefold()


def _column(sort: str, score: int, ks: tuple[int, ...], since: int | None) -> str:
    """``sort`` by a column the board has: the chosen score's is ``score``."""
    key = sort.removeprefix("-")
    hidden = {f"pass{k}" for k in KS if k == score or k not in ks}
    if key not in hidden and (key != "change" or since):
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
        "change": row.change,
        "created": row.created_at,
    }[key]
