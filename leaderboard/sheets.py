"""What submissions scored on every task of their version, column by column."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import fsum

from grading.engine.outcome import Outcome
from grading.engine.passk import pass_at_k
from grading.models import Task, TaskScore
from leaderboard.figures import Group

CellTuple = tuple[int, int, int, int, int, int, float]
COLUMNS = ("n", "c", "timeout", "assertion_fail", "error", "syntax_error", "fraction_sum")
FRACTION_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """One submission on one task; the names are those of `grading.models.TaskScore`."""

    n: int
    c: int
    timeout: int
    assertion_fail: int
    error: int
    syntax_error: int
    fraction_sum: float

    @property
    def fraction(self) -> float | None:
        return self.fraction_sum / self.n if self.n else None

    @property
    def outcomes(self) -> dict[Outcome, int]:
        return {
            Outcome.PASS: self.c,
            Outcome.ASSERTION_FAIL: self.assertion_fail,
            Outcome.ERROR: self.error,
            Outcome.TIMEOUT: self.timeout,
            Outcome.SYNTAX_ERROR: self.syntax_error,
        }


EMPTY: CellTuple = (0, 0, 0, 0, 0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Per task, in the order of the version's tasks, a tuple of `COLUMNS`."""

    cells: tuple[CellTuple, ...]

    def __iter__(self) -> Iterator[Cell]:
        return (Cell(*cell) for cell in self.cells)

    def groups(self, places: Collection[int] | None = None) -> list[Group]:
        """Tasks alike in n, c and timeouts put together; ``places``: of these tasks only."""
        alike: dict[tuple[int, int, int], list[CellTuple]] = defaultdict(list)
        for place, cell in enumerate(self.cells):
            if places is None or place in places:
                alike[cell[:3]].append(cell)
        return [_group(key, cells) for key, cells in alike.items()]

    def values(self, k: int, places: Collection[int] | None = None) -> list[float]:
        """pass@k of each task that has k samples."""
        counts = [
            cell[:2] for place, cell in enumerate(self.cells) if places is None or place in places
        ]
        known = {one: pass_at_k(*one, k) for one in set(counts)}
        values = [known[one] for one in counts]
        return [value for value in values if value is not None]

    def as_columns(self) -> dict[str, list[float]]:
        """JSON-ready; `from_columns` takes it back."""
        columns = zip(*self.cells, strict=True) if self.cells else ([] for _ in COLUMNS)
        return {name: list(column) for name, column in zip(COLUMNS, columns, strict=True)}

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.as_columns()).encode()).hexdigest()


def from_columns(columns: dict[str, list[float]]) -> Sheet:
    return Sheet(tuple(zip(*(columns[name] for name in COLUMNS), strict=True)))


def _group(key: tuple[int, int, int], cells: list[CellTuple]) -> Group:
    n, c, timed_out = key
    failed, crashed, broken, fractions = list(zip(*cells, strict=True))[3:]
    return Group(
        n=n,
        c=c,
        timed_out=timed_out,
        tasks=len(cells),
        fraction_sum=fsum(fractions),
        outcomes={
            Outcome.PASS: c * len(cells),
            Outcome.ASSERTION_FAIL: sum(failed),
            Outcome.ERROR: sum(crashed),
            Outcome.TIMEOUT: timed_out * len(cells),
            Outcome.SYNTAX_ERROR: sum(broken),
        },
    )


def read_sheets(version_id: int, public_ids: Iterable[str]) -> dict[str, Sheet]:
    """Sheets of submissions of one version by public id, in two queries."""
    tasks = Task.objects.filter(version=version_id).order_by("position")
    places = {pk: place for place, pk in enumerate(tasks.values_list("pk", flat=True))}
    cells = {public_id: [EMPTY] * len(places) for public_id in public_ids}
    scores = TaskScore.objects.filter(submission__public_id__in=cells).order_by()
    read = scores.values_list("submission__public_id", "task_id", *COLUMNS)
    for public_id, task, *numbers, fractions in read.iterator(chunk_size=20_000):
        cells[public_id][places[task]] = (*numbers, round(fractions, FRACTION_DIGITS))
    return {public_id: Sheet(tuple(found)) for public_id, found in cells.items()}
