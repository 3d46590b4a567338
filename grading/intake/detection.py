"""What kind of file an upload is, decided from its first bytes and records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from grading.engine import jsonl
from grading.engine.expand import Unreadable
from grading.engine.jsonl import Problem
from grading.intake import caps, documents, shapes
from grading.intake.container import Container
from grading.intake.documents import Outline
from grading.intake.fields import ID_FIELDS
from grading.intake.shapes import Layout, Record, Shape

# Records whose fields are looked at before a file is read.
SAMPLED_RECORDS = 200
START_BYTES = 2 * 1024**2

_STATE_KEYS = {"tasks", "sampling_config", "model_name"}
_LOG_KEYS = {"samples", "plan", "status"}


@dataclass(slots=True)
class Cursor:
    """Where the reading is: ``records`` seen, the ``line`` and the ``member`` of the last one."""

    records: int = 0
    line: int = 0
    member: str = ""


def shape_of(container: Container) -> Shape:
    """The layout of a file, from as much of its start as can be unpacked."""
    if container.holds_programs:
        return shapes.FILES
    start = _start(container)
    outline = documents.outline(start)
    if outline.opener == b"[" and not _lines_of_arrays(outline):
        return _array_shape(start)
    if outline.opener == b"{":
        return _object_shape(start, outline)
    return shapes.LINES


def records(container: Container, shape: Shape, cursor: Cursor) -> Iterator[Record | Problem]:
    """Every entry of the file; ``cursor`` moves along. Raises `Unreadable`."""
    cursor.records, cursor.line = 0, 0
    for member, chunks in container.texts():
        cursor.member, cursor.line = member, 0
        for item in _RECORDS[shape.layout](chunks, shape, member, cursor):
            cursor.records += 1
            yield item


def first_rows(container: Container, shape: Shape) -> list[Any]:
    """Flat records of the first entries, as far as they can be read."""
    rows: list[Any] = []
    try:
        for item in islice(records(container, shape, Cursor()), SAMPLED_RECORDS):
            if isinstance(item, Record):
                rows += islice(shape.flatten(item), SAMPLED_RECORDS)
    except Unreadable:
        pass  # as above
    return rows[:SAMPLED_RECORDS]


def _start(container: Container) -> bytes:
    start = bytearray()
    try:
        for chunk in next(container.texts())[1]:
            start += chunk
            if len(start) >= START_BYTES:
                break
    except Unreadable:
        pass  # the reading itself will meet it, and report it
    return bytes(start)


def _lines_of_arrays(outline: Outline) -> bool:
    """More JSON behind the first array: lines, which are then reported one by one."""
    return outline.rest is not None and bool(outline.rest.strip())


def _array_shape(start: bytes) -> Shape:
    first = _first_entry(start)
    if isinstance(first, dict):
        return shapes.LM_EVAL_ARRAY if _is_lm_eval(first) else shapes.ARRAY
    return shapes.POSITIONS if isinstance(first, list | str) else shapes.ARRAY


def _first_entry(start: bytes) -> Any:
    try:
        entry = next(documents.entries(iter([start]), (), caps.MAX_RECORD_BYTES), None)
    except Unreadable:
        return None
    return jsonl.value(1, entry.raw) if entry and entry.raw is not None else None


def _is_lm_eval(row: dict[str, Any]) -> bool:
    return "doc_id" in row and ("filtered_resps" in row or "resps" in row)


def _object_shape(start: bytes, outline: Outline) -> Shape:
    """A document with entries at a known place, an object by task, or JSON Lines."""
    first_line, newline, _ = start.lstrip().partition(b"\n")
    if outline.rest is None or not outline.rest.strip():
        keys = set(outline.keys)
        document = _known_document(keys)
        if document:
            return document
        is_whole = outline.rest is not None or first_line.strip() == b"{" or not newline
        if is_whole and keys and keys.isdisjoint(name for name, _ in ID_FIELDS):
            return shapes.BY_TASK
    row = jsonl.value(1, first_line)
    return shapes.LM_EVAL if isinstance(row, dict) and _is_lm_eval(row) else shapes.LINES


def _known_document(keys: set[str]) -> Shape | None:
    if "task_states" in keys or keys >= _STATE_KEYS:
        return shapes.LLAMA_EVAL
    if "eval" in keys and keys & _LOG_KEYS:
        return shapes.INSPECT
    return shapes.EVALPLUS if "eval" in keys else None


def _lines(
    chunks: Iterator[bytes], shape: Shape, member: str, cursor: Cursor
) -> Iterator[Record | Problem]:
    for number, line in jsonl.lines(chunks, caps.MAX_RECORD_BYTES):
        cursor.line = number
        if line is None:
            yield replace(jsonl.too_long(number, caps.MAX_RECORD_BYTES), member=member)
        elif line.strip():
            yield _record(number, number - 1, None, line, member)


def _entries(
    chunks: Iterator[bytes], shape: Shape, member: str, cursor: Cursor
) -> Iterator[Record | Problem]:
    for entry in documents.entries(chunks, shape.path, caps.MAX_RECORD_BYTES):
        cursor.line = entry.line
        if entry.raw is None:
            yield replace(jsonl.too_long(entry.line, caps.MAX_RECORD_BYTES), member=member)
        else:
            yield _record(entry.line, entry.position, entry.key, entry.raw, member)


def _program(
    chunks: Iterator[bytes], shape: Shape, member: str, cursor: Cursor
) -> Iterator[Record | Problem]:
    pieces, size = list[bytes](), 0
    for chunk in chunks:
        size += len(chunk)
        if size > caps.MAX_RECORD_BYTES:
            yield replace(jsonl.too_long(0, caps.MAX_RECORD_BYTES), member=member)
            return
        pieces.append(chunk)
    try:
        yield Record(0, 0, None, b"".join(pieces).decode("utf-8"), member)
    except UnicodeDecodeError as problem:
        detail = f"byte {problem.start + 1} of the file is not UTF-8; save it as UTF-8"
        yield Problem(0, "", "", "not UTF-8", detail, expected="UTF-8 text", member=member)


def _record(
    number: int, position: int, key: str | None, raw: bytes, member: str
) -> Record | Problem:
    value = jsonl.value(number, raw)
    if isinstance(value, Problem):
        return replace(value, member=member)
    return Record(number, position, key, value, member)


_RECORDS = {Layout.LINES: _lines, Layout.DOCUMENT: _entries, Layout.FILES: _program}
