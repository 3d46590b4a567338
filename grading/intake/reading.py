"""Reading a file from its first byte to its last: usable samples and problems, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from grading.engine.expand import Unreadable
from grading.engine.jsonl import Problem, plain
from grading.engine.task import Format
from grading.intake import caps, container, detection, shapes
from grading.intake.container import Container
from grading.intake.fields import (
    AS_DETECTED,
    Answer,
    BadRecord,
    Choices,
    answer_of,
    find_fields,
)
from grading.intake.places import Place, Places
from grading.intake.shapes import Record, Shape
from grading.intake.task_table import TaskTable


@dataclass(slots=True)
class Found:
    """One sample that can be graded, from the record at ``line``.

    ``passed`` is another grader's verdict, None without one.
    """

    line: int
    member: str
    place: Place
    text: str
    format: Format
    text_field: str
    passed: bool | None
    extra: dict[str, Any]


class Reading:
    """A file with what it was taken for. Iterations over the same bytes yield the same items.

    While and after an iteration, ``cursor`` tells how far it is, ``places`` what was found, and
    ``broken`` that the file could not be read to its end; the last item then says why.
    """

    def __init__(self, stream: BinaryIO, table: TaskTable, choices: Choices = AS_DETECTED) -> None:
        self.table = table
        self.choices = choices
        self.cursor = detection.Cursor()
        self.broken = False
        self.places = Places(len(table))
        self.container = Container(stream)
        self.shape: Shape = shapes.LINES
        self.fields = find_fields([], table, choices)
        self._fault: Unreadable | None = None
        try:
            self._detect(stream, choices)
        except Unreadable as problem:
            self._fault = problem

    def _detect(self, stream: BinaryIO, choices: Choices) -> None:
        self.container = container.opened(stream)
        self.shape = detection.shape_of(self.container)
        rows = detection.first_rows(self.container, self.shape)
        self.fields = find_fields(rows, self.table, choices)

    def __iter__(self) -> Iterator[Found | Problem]:
        self.places, self.broken = Places(len(self.table)), False
        try:
            if self._fault:
                raise self._fault
            for record in detection.records(self.container, self.shape, self.cursor):
                if isinstance(record, Problem):
                    yield replace(record, member=plain(record.member))
                else:
                    yield from self._of_record(record)
                self._refuse_too_many()
            if not self.cursor.records:
                self.cursor.line = 0
                raise Unreadable("empty file", "the file holds no record")
        except Unreadable as problem:
            self.broken = True
            cursor = self.cursor
            yield Problem(
                cursor.line, "", "", problem.rule, problem.detail, member=plain(cursor.member)
            )

    def _refuse_too_many(self) -> None:
        if self.cursor.records > caps.MAX_RECORDS:
            detail = f"more than {caps.MAX_RECORDS:,} records; split the file"
            raise Unreadable("file too large", detail)
        if len(self.places) > caps.MAX_SAMPLES:
            detail = f"more than {caps.MAX_SAMPLES:,} samples; split the file"
            raise Unreadable("file too large", detail)

    def _of_record(self, record: Record) -> Iterator[Found | Problem]:
        for row in self.shape.flatten(record):
            try:
                yield from self._of_answer(record, answer_of(row, self.fields, self.table))
            except BadRecord as bad:
                yield Problem(
                    record.line,
                    plain(bad.task_id),
                    plain(bad.field),
                    bad.rule,
                    bad.detail,
                    bad.found,
                    bad.expected,
                    plain(record.member),
                )

    def _of_answer(self, record: Record, answer: Answer) -> Iterator[Found | Problem]:
        start = self.places.count(answer.place) if answer.sample is None else answer.sample
        for offset, text in enumerate(answer.texts):
            index = start + offset
            self._take(answer, index)
            yield Found(
                record.line,
                record.member,
                Place(answer.place, index),
                text,
                answer.format,
                answer.text_field,
                answer.passed[offset],
                answer.extra,
            )

    def _take(self, answer: Answer, index: int) -> None:
        """Raises `BadRecord` where this sample of the task stands in an earlier record."""
        task_id = self.table.tasks[answer.place].task_id
        if index > caps.MAX_SAMPLE_INDEX:
            expected = f"at most {caps.MAX_SAMPLE_INDEX + 1:,} samples of a task"
            raise BadRecord("out of range", "sample", index, expected, task_id)
        if not self.places.add(answer.place, index):
            expected = "every sample of a task once"
            raise BadRecord("duplicate sample", "sample", index, expected, task_id)
