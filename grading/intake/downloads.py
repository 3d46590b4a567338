"""All problems of a file as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from grading.engine.jsonl import Problem

HEAD = ("line", "file", "task_id", "field", "rule", "found", "expected", "detail")
# A spreadsheet takes a cell that begins like this for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def errors_csv(problems: Iterable[Problem]) -> Iterator[str]:
    """CSV, a line at a time; ``line`` is empty where the whole file is meant."""
    yield _line(HEAD)
    for problem in problems:
        cells = (
            problem.member,
            problem.task_id,
            problem.field,
            problem.rule,
            problem.found,
            problem.expected,
            problem.detail,
        )
        yield _line((str(problem.line or ""), *map(_harmless, cells)))


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
