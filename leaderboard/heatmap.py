"""Every model on every task of a board: the numbers behind the heatmap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from grading.models import BenchmarkVersion, Task
from leaderboard import snapshots
from leaderboard.rows import Row
from leaderboard.sheets import Cell

CELLS = {"pass": "pass rate", "fraction": "mean fraction"}
ROWS = {"score": "pass@1", "name": "name"}
COLUMNS = {"easiest": "easiest first", "hardest": "hardest first", "number": "task number"}


@dataclass(frozen=True, slots=True)
class Column:
    """A task; ``mean`` over the models with a value, None where there is none."""

    task_id: str
    slug: str
    mean: float | None


@dataclass(frozen=True, slots=True)
class Heatmap:
    """``cells`` by row, then by column; ``values`` of them, 0..1, None where not graded."""

    snapshot: int | None
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]
    values: tuple[tuple[float | None, ...], ...]

    def lines(self) -> list[tuple[Column, list[float | None]]]:
        """By column: what the table of the page shows."""
        return [
            (column, [values[place] for values in self.values])
            for place, column in enumerate(self.columns)
        ]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; of each cell n, c and the mean fraction."""
        return {
            "snapshot": self.snapshot,
            "models": [
                {"model": row.model, "submission": row.public_id, "pass@1": row.value}
                for row in self.rows
            ],
            "tasks": [{"task_id": one.task_id, "slug": one.slug} for one in self.columns],
            "cells": [[_numbers(cell) for cell in cells] for cells in self.cells],
        }


def heatmap(
    version: BenchmarkVersion, cell: str = "pass", rows: str = "score", columns: str = "easiest"
) -> Heatmap:
    """Of the newest snapshot. ``cell``: a key of `CELLS`, ``rows`` of `ROWS` and so on."""
    edition = snapshots.current(version)
    sheets = {public_id: list(sheet) for public_id, sheet in edition.sheets.items()}
    shown = sorted(edition.rows(), key=_row_order(rows))
    tasks = Task.objects.filter(version=version).order_by("position")
    read = list(tasks.values_list("task_id", "slug"))
    values = [[_value(one, cell) for one in sheets[row.public_id]] for row in shown]
    means = [_mean([line[place] for line in values]) for place in range(len(read))]
    order = sorted(range(len(read)), key=_column_order(columns, means))
    return Heatmap(
        snapshot=edition.number,
        rows=tuple(shown),
        columns=tuple(Column(*read[place], means[place]) for place in order),
        cells=tuple(tuple(sheets[row.public_id][place] for place in order) for row in shown),
        values=tuple(tuple(line[place] for place in order) for line in values),
    )


def _value(cell: Cell, kind: str) -> float | None:
    if not cell.n:
        return None
    return cell.fraction if kind == "fraction" else cell.c / cell.n


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _row_order(rows: str) -> Callable[[Row], Any]:
    """Ranked rows first, the best on top; or by name."""
    if rows == "name":
        return lambda row: row.model.casefold()
    return lambda row: (row.rank is None, -(row.value or 0), row.model.casefold())


def _column_order(columns: str, means: Sequence[float | None]) -> Callable[[int], Any]:
    """Tasks that nobody has a value for come last."""
    if columns == "number":
        return lambda place: place
    sign = 1 if columns == "hardest" else -1

    def key(place: int) -> tuple[bool, float, int]:
        mean = means[place]
        return mean is None, sign * (mean or 0), place

    return key


def _numbers(cell: Cell) -> list[float | None]:
    fraction = cell.fraction
    return [cell.n, cell.c, None if fraction is None else round(fraction, 4)]


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """Of a query string; what is not on offer falls back to the first choice."""
    offered = {"cell": CELLS, "rows": ROWS, "columns": COLUMNS}
    return {
        name: given[name] if given.get(name) in choices else next(iter(choices))
        for name, choices in offered.items()
    }
