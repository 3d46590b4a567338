"""The scanner for large JSON documents: what it cuts out is what the parser would find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.expand import Unreadable
from grading.intake.documents import entries, outline
from tests.intake.uploads import document, report

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='"\\[]{},:\n é\ud800', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
CAP = 10_000


def chunked(data: bytes, size: int) -> Iterator[bytes]:
    return iter([data[start : start + size] for start in range(0, len(data), size)])


def found(data: bytes, path: tuple[str, ...] = (), size: int = 7) -> list[Any]:
    return [
        (entry.key, json.loads(entry.raw or b"null"))
        for entry in entries(chunked(data, size), path, CAP)
    ]


@given(st.lists(VALUES, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_entries_of_an_array(values: list[Any], size: int, indent: int | None) -> None:
    assert found(document(values, indent), (), size) == [(None, value) for value in values]


@given(st.dictionaries(st.text(), VALUES, max_size=5), VALUES, st.integers(1, 9))
def test_entries_of_an_object_deep_inside(values: dict[str, Any], other: Any, size: int) -> None:
    whole = {"before": other, "outer": {"x": other, "inner": values}, "after": other}
    assert found(document(whole), ("outer", "inner"), size) == list(values.items())


def test_lines_and_positions() -> None:
    found_ = list(entries(iter([b'[\n1,\n\n{"a":\n2},\n"x"]\n']), (), CAP))
    assert [(entry.position, entry.line) for entry in found_] == [(0, 2), (1, 4), (2, 6)]


def test_an_entry_over_the_cap_is_left_out_and_the_rest_read() -> None:
    data = document(["a" * 50, "b", {"c": ["d" * 50]}, 12345678])
    found_ = list(entries(chunked(data, 9), (), 6))
    assert [entry.raw for entry in found_] == [None, b'"b"', None, None]


BROKEN = [
    *(b"[1,2", b"[1 2]", b"[1]x", b"[1,]", b"[,1]", b"[[1]", b'["x', b'["\\'),
    *(b'{"a":1,}', b'{"a" 1}', b"{1:2}", b'{"a":', b"{", b"", b"7", b'{"a":1}{'),
]


@pytest.mark.parametrize("data", BROKEN, ids=repr)
def test_a_broken_outline_ends_the_reading(data: bytes) -> None:
    with pytest.raises(Unreadable):
        list(entries(iter([data]), (), CAP))


def test_depth_costs_nothing() -> None:
    deep = b"[" + b"[" * 300_000 + b"]" * 300_000 + b"]"
    assert [entry.raw for entry in entries(chunked(deep, 65_536), (), 10)] == [None]


@pytest.mark.parametrize(
    ("start", "opener", "keys", "rest"),
    [
        (b'  {"a": 1, "b": [', b"{", ("a", "b"), None),
        (b'{"a": 1}\n{"b": 2}', b"{", ("a",), b'\n{"b": 2}'),
        (b"[[1]] ", b"[", (), b" "),
        (b'{"task_id": "T", \n{"x"', b"{", ("task_id",), None),
        (b"", b"", (), None),
    ],
)
def test_the_outline_of_a_start(
    start: bytes, opener: bytes, keys: tuple[str, ...], rest: bytes | None
) -> None:
    seen = outline(start)
    assert (seen.opener, seen.keys, seen.rest) == (opener, keys, rest)


def test_a_document_that_is_cut_cannot_be_used() -> None:
    whole = document([{"task_id": "Tide/0", "completion": "x"}] * 3)
    found_ = report(whole[:-20])
    assert (found_.samples, found_.usable) == (2, False)
    assert "ends in the middle" in found_.problems[0].detail


def test_a_bad_entry_of_a_document_is_reported_and_the_rest_read() -> None:
    data = b'[{"task_id": "Tide/0", "completion": "x"},\n{"a": NaN},\n{"a": 1, "a": 2}, "x"]'
    found_ = report(data)
    assert (found_.samples, found_.usable) == (1, True)
    assert [(p.line, p.rule) for p in found_.problems] == [
        (2, "bad JSON"),
        (3, "bad JSON"),
        (3, "wrong type"),
    ]
