"""Which benchmark a file answers, where its uploader did not say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

from grading.engine.expand import Unreadable
from grading.intake import container, detection
from grading.intake.fields import AS_DETECTED, find_fields
from grading.intake.task_table import Match, TaskTable
from grading.models import BenchmarkVersion


def guess(stream: BinaryIO, versions: Iterable[BenchmarkVersion]) -> BenchmarkVersion | None:
    """The version whose tasks the first records name most often; None where they name none.

    Places in a benchmark say nothing about which it is, and a number is less than an id.
    """
    try:
        opened = container.opened(stream)
    except Unreadable:
        return None
    rows = detection.first_rows(opened, detection.shape_of(opened))
    scored = [(_named(rows, TaskTable.of(version)), version) for version in versions]
    named = [(score, version) for score, version in scored if score > (0, False)]
    return max(named, key=lambda one: one[0])[1] if named else None


def _named(rows: list[Any], table: TaskTable) -> tuple[int, bool]:
    """How many records name a task of ``table``, and whether by its id."""
    fields = find_fields(rows, table, AS_DETECTED)
    if fields.match is Match.POSITION:
        return 0, False
    values = (row.get(fields.id_field) for row in rows if isinstance(row, dict))
    found = sum(table.find(value, fields.match) is not None for value in values)
    return found, found > 0 and fields.match is Match.ID
