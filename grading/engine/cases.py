"""Grading files of cases without Django: one JSON object a line in, one out.

In: ``{id, generation, targets, metadata}``; other fields are ignored. Metadata: ``timeout_s``,
``prompt``, ``format`` (``completion``), ``entry_point`` (name or list), ``setup``, ``in_place``,
``allow_processes``, ``kind`` (``stdio``: targets are objects with the strings ``input`` and
``output``), ``repeat`` (run so often, the last counts); other keys are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grading.engine.grade import grade
from grading.engine.limits import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Exchange, Format, Generation, Kind, Task

EXCHANGE_KEYS = ("input", "output")


class BadCase(Exception):
    """A line that is no case; the message names line, field and what would be right."""


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    task: Task
    generation: Generation
    repeat: int = 1


def read_cases(lines: Iterable[str]) -> list[Case]:
    """The cases of a file; raises BadCase for the first line that is none."""
    return [read_case(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def read_case(number: int, line: str) -> Case:
    try:
        row = json.loads(line)
    except ValueError as problem:
        raise BadCase(f"line {number}: not JSON: {problem}") from None
    fields = _Fields(number, row, "")
    metadata = _Fields(number, fields.take("metadata", dict, {}), "metadata.")
    timeout_s = metadata.take("timeout_s", (int, float), DEFAULT_TIMEOUT_S)
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise BadCase(f"line {number}, metadata.timeout_s: {timeout_s} is not in (0, 30]")
    format_ = metadata.take("format", str, Format.GENERATION.value)
    if format_ not in set(Format):
        raise BadCase(f"line {number}, metadata.format: use generation or completion")
    kind = metadata.take("kind", str, Kind.ASSERTION.value)
    if kind not in set(Kind):
        raise BadCase(f"line {number}, metadata.kind: use assertion or stdio")
    targets = fields.exchanges("targets") if kind == Kind.STDIO else fields.texts("targets")
    task = Task(
        task_id=fields.take("id", str),
        targets=tuple(targets),
        kind=Kind(kind),
        prompt=metadata.take("prompt", str, ""),
        setup=metadata.take("setup", str, ""),
        entry_points=tuple(metadata.texts("entry_point", [])),
        timeout_s=float(timeout_s),
        allow_processes=metadata.take("allow_processes", bool, False),
        in_place=metadata.take("in_place", bool, False),
    )
    generation = Generation(fields.take("generation", str), Format(format_))
    return Case(task.task_id, task, generation, max(1, metadata.take("repeat", int, 1)))


class _Fields:
    """Typed access to the fields of one object of one line."""

    def __init__(self, number: int, row: Any, prefix: str) -> None:
        if not isinstance(row, dict):
            raise BadCase(f"line {number}: {prefix or 'the line'} must be an object")
        self.number, self.row, self.prefix = number, row, prefix

    def take(self, name: str, kind: Any, default: Any = None) -> Any:
        value = self.row.get(name, default)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadCase(self.wrong(name, value, _kind_name(kind)))
        return value

    def texts(self, name: str, default: Any = None) -> list[str]:
        value = self.row.get(name, default)
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadCase(self.wrong(name, value, "a string or a list of strings"))
        return value

    def exchanges(self, name: str) -> list[Exchange]:
        value = self.row.get(name)
        right = "a list of objects with the strings input and output"
        if not isinstance(value, list):
            raise BadCase(self.wrong(name, value, right))
        for item in value:
            texts = [item.get(key) for key in EXCHANGE_KEYS] if isinstance(item, dict) else [None]
            if not all(isinstance(text, str) for text in texts):
                raise BadCase(self.wrong(name, item, right))
        return [Exchange(*(item[key] for key in EXCHANGE_KEYS)) for item in value]

    def wrong(self, name: str, value: Any, right: str) -> str:
        return (
            f"line {self.number}, {self.prefix}{name}: "
            f"found {type(value).__name__}, expected {right}"
        )


def _kind_name(kind: Any) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(cls.__name__ for cls in kinds)


def grade_case(case: Case, sandbox: Sandbox) -> dict[str, Any]:
    """The output row of a case; ``exit_code`` is the outcome, null where the platform failed."""
    try:
        for _ in range(case.repeat):
            verdict = grade(case.task, case.generation, sandbox)
    except PlatformError as problem:
        return {"id": case.id, "exit_code": None, "platform_error": str(problem)}
    return {
        "id": case.id,
        "exit_code": verdict.outcome.value,
        "score": round(verdict.score, 3),
        "passed": verdict.passed,
        "total": verdict.total,
        "per_assertion": [target.true for target in verdict.targets],
        "labels": [target.label.value for target in verdict.targets],
        "detail": verdict.detail,
        "denied": verdict.denied,
        "tier": verdict.tier,
        "duration_s": round(verdict.wall_s, 4),
    }
