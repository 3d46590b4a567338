"""One sample as JSON: all that its page shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet

from grading.models import Attempt, Sample, Submission
from grading.queries.samples import SampleView, case_row, sample_view

ATTEMPT_FIELDS = (
    *("number", "kind", "outcome", "passed", "total", "score", "sealed", "wall_s", "cpu_s"),
    *("peak_bytes", "starved", "tier", "hardening", "python", "grader_version", "denied"),
    *("worker", "created_at"),
)


def sample(
    row: Sample, open_: bool, visible: QuerySet[Submission], attempt: int | None
) -> dict[str, Any]:
    """``open_``: targets and what they returned may be shown; else they are left out."""
    view = sample_view(row, open_, visible, attempt)
    record: dict[str, Any] = {
        "task_id": view.task.task_id,
        "index": row.index,
        "state": row.state,
        "platform_failure": row.platform_failure,
        "format": view.format,
        "generation": view.generation,
        "attempt": _attempt(view, view.attempt) if view.attempt else None,
        "attempts": [asdict(one) for one in view.history],
    }
    return record | ({"case": case_row(row)} if open_ else {})


def _attempt(view: SampleView, attempt: Attempt) -> dict[str, Any]:
    facts = {name: getattr(attempt, name) for name in ATTEMPT_FIELDS}
    facts |= {
        "detail": view.detail,
        "failure": asdict(view.failure) if view.failure else None,
        "program": view.program,
        "extraction": {"rule": view.rule, "block": view.block, "blocks": view.blocks},
        "limits": view.limits,
        "repeats": asdict(view.repeats) if view.repeats else None,
    }
    if view.open:
        facts["targets"] = [asdict(target) for target in view.targets]
        facts["output"] = [asdict(stream) for stream in view.streams]
    return facts
