"""Rows of other task formats as task records.

A converter turns one row into the row of a task record, which then has to keep the rules of
`records.check_record`, but for the one about the prompt's end: other formats keep every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from grading.engine.jsonl import Problem, ProblemLog, plain, shown
from grading.engine.records import GRADED_CATEGORY, TaskRecord, check_record, record_of

Row = dict[str, Any]
WORDS: dict[type, str] = {str: "a string", int: "a whole number", list: "a list"}


class BadRow(Exception):
    """The row cannot be converted; ``task_id``, ``field``, ``rule`` and ``detail`` say why."""

    def __init__(self, task_id: str, field: str, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.task_id = task_id
        self.field = field
        self.rule = rule
        self.detail = detail


@dataclass(frozen=True, slots=True)
class DroppedTarget:
    task_id: str
    target: str


@dataclass(frozen=True, slots=True)
class Converted:
    """Records, the constant targets left out of them, and rows that could not be converted."""

    records: list[TaskRecord] = field(default_factory=list)
    dropped: list[DroppedTarget] = field(default_factory=list)
    problems: ProblemLog = field(default_factory=ProblemLog)


def convert(
    numbered: Iterable[tuple[int, object]],
    to_row: Callable[[Row], tuple[Row, list[str]]],
    problems: ProblemLog | None = None,
) -> Converted:
    """Convert (line, row) pairs; ``to_row`` gives a record's row and the targets it dropped.

    What is wrong with a row, or with what came of it, is a problem of its line; a task id that
    stands twice as well.
    """
    result = Converted(problems=ProblemLog() if problems is None else problems)
    seen: set[str] = set()
    for line, row in numbered:
        try:
            if not isinstance(row, dict):
                raise BadRow("", "", "wrong type", f"not a JSON object: {shown(row)}")
            converted, dropped = to_row(row)
        except BadRow as bad:
            place = plain(bad.task_id), bad.field
            result.problems.add(Problem(line, *place, bad.rule, bad.detail))
            continue
        faults = list(check_record(line, converted, strict=False))
        task_id = converted["task_id"]
        if task_id in seen:
            detail = "the id stands in an earlier row"
            faults.append(Problem(line, plain(task_id), "task_id", "duplicate id", detail))
        seen.add(task_id)
        for fault in faults:
            result.problems.add(fault)
        if not faults:
            result.records.append(record_of(converted))
            result.dropped.extend(DroppedTarget(task_id, target) for target in dropped)
    return result


def record_row(task_id: str, prompt: str, targets: list[Any], **metadata: Any) -> Row:
    """A record's row; empty metadata is left out."""
    return {
        "task_id": task_id,
        "category": GRADED_CATEGORY,
        "prompt": prompt,
        "targets": targets,
        "metric_name": GRADED_CATEGORY,
        "post_process": "extract_code_block",
        "metadata": {name: value for name, value in metadata.items() if value},
    }


def require(row: Row, task_id: str, /, **kinds: type) -> None:
    """The fields are there and of these types; raises `BadRow`."""
    for name, kind in kinds.items():
        if name not in row:
            raise BadRow(task_id, name, "missing field", f"the field {name} is required")
        if not isinstance(row[name], kind) or isinstance(row[name], bool):
            detail = f"expected {WORDS[kind]}, found {shown(row[name])}"
            raise BadRow(task_id, name, "wrong type", detail)
