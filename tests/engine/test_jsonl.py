"""Reading JSON Lines from bytes nobody vouches for."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.expand import Caps
from grading.engine.jsonl import Problem, ProblemLog, read

SMALL = Caps(line_bytes=1_000, total_bytes=100_000, ratio=300, ratio_from_bytes=50_000)


def run(data: bytes, caps: Caps = SMALL) -> tuple[list[tuple[int, Any]], ProblemLog]:
    log = ProblemLog()
    return list(read(io.BytesIO(data), caps, log)), log


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": 1}\n{"a": 2}\n',
        b'{"a": 1}\n{"a": 2}',
        b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}\r\n',
        gzip.compress(b'{"a": 1}\n') + b"\0" * 9 + gzip.compress(b'{"a": 2}\n') + b"\0\0",
    ],
    ids=["plain", "no last line end", "BOM and CRLF", "gzip of two members, padded"],
)
def test_accepted(data: bytes) -> None:
    assert run(data) == ([(1, {"a": 1}), (2, {"a": 2})], ProblemLog())


def test_blank_lines_count_and_are_skipped() -> None:
    rows, log = run(b"\n  \r\n1\n\n")
    assert (rows, log.total) == ([(3, 1)], 0)


def test_only_lf_ends_a_line() -> None:
    text = "a\u2028b\u0085c\x0b"
    assert run(json.dumps(text, ensure_ascii=False).replace("\x0b", "\\u000b").encode())[0] == [
        (1, text.replace("\x0b", "\u000b"))
    ]


def test_lone_surrogates_and_nul_are_accepted_as_escapes() -> None:
    assert run(rb'"\ud83d\u0000"')[0] == [(1, "\ud83d\x00")]


@pytest.mark.parametrize(
    ("line", "rule", "says"),
    [
        (b'{"a": 1', "bad JSON", "one JSON object"),
        (b'{"a": NaN}', "bad JSON", "NaN"),
        (b"[-Infinity]", "bad JSON", "-Infinity"),
        (b"1e999", "bad JSON", "too large"),
        (b'{"a": 1, "a": 2}', "bad JSON", "'a' stands twice"),
        (b'{"b": {"x": 1, "x": 1}}', "bad JSON", "'x' stands twice"),
        (b"[" * 900, "bad JSON", ""),
        (b'"a\xff"', "not UTF-8", "byte 3"),
        (b'"\xed\xa0\x80"', "not UTF-8", "byte 2"),
        (b'"a\0"', "bad JSON", "control character"),
        (b"7" * 999, "ok", ""),
        (b'"' + b"x" * 1_000 + b'"', "line too long", "1,000 bytes"),
    ],
)
def test_a_bad_line_is_reported_and_the_rest_read(line: bytes, rule: str, says: str) -> None:
    rows, log = run(b"1\n" + line + b"\n3\n")
    assert [row for row in rows if row[0] != 2] == [(1, 1), (3, 3)]
    if rule != "ok":
        assert (log.total, log.fatal) == (1, False)
        assert (log.kept[0].line, log.kept[0].rule) == (2, rule)
        assert says in log.kept[0].detail


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        ("1\n".encode("utf-16"), "not UTF-8"),
        (b"1\n" * 60_000, "file too large"),
        (gzip.compress(b"1\n" * 40_000), "gzip bomb"),
        (gzip.compress(bytes(range(250)) * 20)[:-30], "broken gzip"),
        (gzip.compress(b"1\n") + b"rubbish", "broken gzip"),
        (b"\x1f\x8bnot gzip at all", "broken gzip"),
    ],
    # A packed file holds the time of its making: no name for a test.
    ids=["utf-16", "long", "bomb", "cut", "rubbish behind", "no gzip"],
)
def test_what_makes_a_file_unreadable(data: bytes, rule: str) -> None:
    caps = Caps(line_bytes=1_000, total_bytes=100_000, ratio=100, ratio_from_bytes=50_000)
    _, log = run(data, caps)
    assert log.fatal
    assert rule in [problem.rule for problem in log.kept]


def test_first_problems_are_kept_and_all_counted() -> None:
    _, log = run(b"{\n" * 100)
    assert (len(log.kept), log.total) == (20, 100)
    assert [problem.line for problem in log.kept] == list(range(1, 21))


def test_a_huge_line_is_never_held() -> None:
    packed = zlib.compressobj(wbits=31)
    data = b"".join(packed.compress(b"x" * 10**6) for _ in range(64)) + packed.flush()
    caps = Caps(line_bytes=1024**2, total_bytes=512 * 1024**2, ratio=10**6)
    tracemalloc.start()
    rows, log = run(data, caps)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (rows, log.kept[0].rule) == ([], "line too long")
    assert peak < 4 * 1024**2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)  # fmt: skip


@given(st.lists(JSON, max_size=5), st.booleans())
def test_round_trip(values: list[Any], packed: bool) -> None:
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    caps = Caps(line_bytes=10**6, total_bytes=10**7)
    rows, log = run(gzip.compress(data) if packed else data, caps)
    assert rows == list(enumerate(values, 1))
    assert log.total == 0


@given(st.binary(max_size=300), st.sampled_from([b"", b"\x1f\x8b\x08\x00", b"\xef\xbb\xbf"]))
def test_never_raises(data: bytes, start: bytes) -> None:
    _, log = run(start + data)
    assert all(isinstance(problem, Problem) and problem.detail for problem in log.kept)
