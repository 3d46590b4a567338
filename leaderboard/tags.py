"""On which kinds of tasks a run falls behind: its pass rate by tag beside that of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from grading.models import BenchmarkVersion, Task
from leaderboard import snapshots
from leaderboard.cards import TaskLine
from leaderboard.multiple import holm
from leaderboard.precision import LEVEL
from leaderboard.ranking import LEAST_TASKS
from leaderboard.selection import tags_of
from leaderboard.statistics import Interval, paired

SHOWN = 8


@dataclass(frozen=True, slots=True)
class TagLine:
    """Pass rates 0..1 on the ``tasks`` with a tag; ``behind``: own minus field, with interval.

    ``clear``: whether the difference is told apart from none, by Holm over all tags.
    """

    tag: str
    tasks: int
    own: float
    field: float
    behind: float
    interval: Interval
    clear: bool


@dataclass(frozen=True, slots=True)
class Weakness:
    """``lines``: the furthest behind first. ``models``: the others ranked, which are the field.

    ``behind``: own minus field over all tasks, None without a field; ``left_out``: tags with
    fewer than `LEAST_TASKS` graded tasks.
    """

    lines: tuple[TagLine, ...] = ()
    models: int = 0
    behind: float | None = None
    left_out: int = 0


def weakness(version: BenchmarkVersion, slug: str, tasks: Sequence[TaskLine]) -> Weakness:
    """Of the model ``slug`` by ``tasks``, all of the version in order; five queries.

    The field's rate on a task is the mean over the other ranked models of the newest snapshot.
    Where all tasks have the same tags there is nothing to tell apart, and no line.
    """
    edition = snapshots.current(version)
    others = [
        edition.sheets[row.public_id]
        for row in edition.rows()
        if row.rank is not None and row.model_slug != slug
    ]
    if not others:
        return Weakness()
    field = [fmean(rates) for rates in zip(*(sheet.values(1) for sheet in others), strict=True)]
    tagged = _tagged(version)
    if len(field) != len(tasks) or not tagged:
        return Weakness(models=len(others))
    own = {place: task.c / task.n for place, task in enumerate(tasks) if task.n}
    return _compared(own, field, tagged, len(others))


def _tagged(version: BenchmarkVersion) -> dict[str, list[int]]:
    """Places of the tasks with each tag that some tasks have and others have not."""
    tasks = Task.objects.filter(version=version).order_by("position")
    found: dict[str, list[int]] = {}
    read = list(tasks.values_list("category", "metadata__tags"))
    for place, (category, more) in enumerate(read):
        for tag in tags_of(category, more):
            found.setdefault(tag, []).append(place)
    return {tag: places for tag, places in found.items() if len(places) < len(read)}


def _compared(
    own: Mapping[int, float],
    field: Sequence[float],
    tagged: Mapping[str, Sequence[int]],
    models: int,
) -> Weakness:
    graded = {tag: [one for one in places if one in own] for tag, places in tagged.items()}
    enough = {tag: places for tag, places in graded.items() if len(places) >= LEAST_TASKS}
    tests = {
        tag: paired([own[one] for one in places], [field[one] for one in places])
        for tag, places in enough.items()
    }
    adjusted = holm([test.p for test in tests.values()])
    lines = [
        TagLine(
            tag=tag,
            tasks=test.tasks,
            own=fmean(own[one] for one in enough[tag]),
            field=fmean(field[one] for one in enough[tag]),
            behind=test.difference,
            interval=test.interval,
            clear=p < LEVEL,
        )
        for (tag, test), p in zip(tests.items(), adjusted, strict=True)
    ]
    lines.sort(key=lambda line: (line.behind, line.tag))
    return Weakness(
        lines=tuple(lines[:SHOWN]),
        models=models,
        behind=fmean(own[one] - field[one] for one in own) if own else None,
        left_out=len(graded) - len(enough),
    )
