"""One line of an upload: which task, which sample, what text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grading.engine.jsonl import Problem, plain, shown
from grading.engine.task import Format

MAX_SAMPLE_INDEX = 99_999
MAX_ID_CHARS = 200
TEXT_FIELDS = (Format.GENERATION.value, Format.COMPLETION.value)


@dataclass(frozen=True, slots=True)
class UploadLine:
    """``sample`` is None where the line leaves it to the order in the file.

    ``extra`` are the fields that are kept and not used.
    """

    task_id: str
    text: str
    format: Format
    sample: int | None
    extra: dict[str, Any]


class BadUploadLine(Exception):
    """The line cannot be used; ``problem`` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def parse_line(number: int, row: object) -> UploadLine:
    """Read one JSON value of an upload file. Raises `BadUploadLine`."""
    if not isinstance(row, dict):
        raise _bad(number, "", "", "wrong type", row, 'a JSON object: {"task_id": ...}')
    task_id = _task_id(number, row)
    name = _text_field(number, task_id, row)
    if not isinstance(row[name], str):
        raise _bad(number, task_id, name, "wrong type", row[name], "a string")
    return UploadLine(
        task_id=task_id,
        text=row[name],
        format=Format(name),
        sample=_sample(number, task_id, row),
        extra={key: row[key] for key in row if key not in ("task_id", "sample", name)},
    )


def _task_id(number: int, row: dict[str, Any]) -> str:
    if "task_id" not in row:
        raise _bad(number, "", "task_id", "missing field", sorted(row), "a field task_id")
    task_id = row["task_id"]
    if not isinstance(task_id, str):
        raise _bad(number, "", "task_id", "wrong type", task_id, 'a string, such as "HumanEval/0"')
    if not task_id or len(task_id) > MAX_ID_CHARS:
        expected = f"1 to {MAX_ID_CHARS} characters"
        raise _bad(number, "", "task_id", "unknown task", task_id, expected)
    return task_id


def _text_field(number: int, task_id: str, row: dict[str, Any]) -> str:
    names = [name for name in TEXT_FIELDS if name in row]
    if not names:
        expected = "a field generation or completion"
        raise _bad(number, task_id, "generation", "missing field", sorted(row), expected)
    if len(names) > 1:
        expected = "one of generation and completion"
        raise _bad(number, task_id, "completion", "two texts", names, expected)
    return names[0]


def _sample(number: int, task_id: str, row: dict[str, Any]) -> int | None:
    if "sample" not in row:
        return None
    sample = row["sample"]
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise _bad(number, task_id, "sample", "wrong type", sample, "a whole number from 0")
    if not 0 <= sample <= MAX_SAMPLE_INDEX:
        raise _bad(number, task_id, "sample", "out of range", sample, f"0 to {MAX_SAMPLE_INDEX}")
    return sample


def _bad(
    number: int, task_id: str, field: str, rule: str, found: object, expected: str
) -> BadUploadLine:
    detail = f"expected {expected}, found {shown(found)}"
    return BadUploadLine(
        Problem(number, plain(task_id), field, rule, detail, shown(found), expected)
    )
