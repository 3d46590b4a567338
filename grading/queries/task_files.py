"""How models did on one task, as CSV, JSON or Markdown; nothing of the task's own text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grading.engine.outcome import Outcome
from grading.files import Writers, csv_text, json_text, markdown, md_figure, md_text
from grading.models import BenchmarkVersion, Task
from grading.queries.tasks import ModelLine

COLUMNS = ("model", "submission", "n", "c", "fraction", *(outcome.value for outcome in Outcome))


def writers(version: BenchmarkVersion, task: Task, models: Sequence[ModelLine]) -> Writers:
    """A row per submission, best mean fraction first."""
    title = f"{version.benchmark.title}, version {version.number}: {task.task_id}"
    facts = {
        "benchmark": version.benchmark.slug,
        "version": version.number,
        "task_id": task.task_id,
        "status": task.status,
    }
    rows = [_values(line) for line in models]
    return {
        "csv": lambda: csv_text(COLUMNS, rows),
        "json": lambda: json_text(
            facts | {"rows": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}
        ),
        "md": lambda: markdown(
            title, (["Model", "Passing", "Fraction", "Submission"], map(_md_cells, models))
        ),
    }


def _values(line: ModelLine) -> list[Any]:
    outcomes = [line.counts.get(outcome.value, 0) for outcome in Outcome]
    return [line.model, line.submission, line.n, line.c, line.fraction, *outcomes]


def _md_cells(line: ModelLine) -> list[str]:
    return [md_text(line.model), f"{line.c}/{line.n}", md_figure(line.fraction), line.submission]
