"""Packings: what is opened, what is refused, and how little a bomb costs."""

from __future__ import annotations

import gzip
import io
import json
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import zstandard

from grading.engine.expand import Unreadable
from grading.intake import caps, container
from tests.intake.uploads import lines, program, report, table, zipped, zstd

ROW = lines([{"task_id": "Tide/0", "completion": "x"}])
BOMB_MEMORY_BYTES = 60 * 1024**2
BOMB_S = 20


def rules(data: bytes) -> dict[str, int]:
    found = report(data)
    assert not found.readable
    assert not found.usable
    return found.problem_rules


def read(data: bytes) -> list[tuple[str, bytes]]:
    opened = container.opened(io.BytesIO(data))
    return [(name, b"".join(chunks)) for name, chunks in opened.texts()]


def zip_bomb() -> bytes:
    packed = io.BytesIO()
    archive = zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("a.jsonl", "w") as member:
        for _ in range(100):
            member.write(b" " * 1_000_000)
    return packed.getvalue()


def oddly_packed(method: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("a.jsonl", ROW)
    return packed.getvalue()


BOMBS = {
    "gzip bomb": lambda: gzip.compress(b" " * 10_000_000, 9) * 10,
    "zstd bomb": lambda: zstd(b" " * 40_000_000) * 10,
    "zip bomb": zip_bomb,
}


@contextmanager
def bounded() -> Iterator[None]:
    tracemalloc.start()
    begun = time.monotonic()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < BOMB_MEMORY_BYTES
    assert time.monotonic() - begun < BOMB_S


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_refused_in_bounded_time_and_memory(kind: str) -> None:
    data = BOMBS[kind]()
    with bounded():
        assert rules(data) == {kind: 1}


def test_a_bomb_inside_an_archive_is_refused() -> None:
    inner = BOMBS["gzip bomb"]()
    with bounded():
        assert rules(zipped({"a.jsonl.gz": inner})) == {"gzip bomb": 1}


def test_text_over_the_cap_is_refused_in_every_packing(monkeypatch: pytest.MonkeyPatch) -> None:
    small = container.Caps(line_bytes=4096, total_bytes=100_000)
    monkeypatch.setattr(caps, "TEXT_CAPS", small)
    text = ROW * 5_000
    half = ROW * 1_500
    for data in (text, gzip.compress(text), zstd(text), zipped({"a.jsonl": half, "b.jsonl": half})):
        assert rules(data) == {"file too large": 1}
    assert report(zipped({"a.jsonl": half}), table(1)).readable


def test_frames_and_members_one_after_the_other_are_one_text() -> None:
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    assert read(zstd(b"one ") + skippable + zstd(b"two")) == [("", b"one two")]
    assert read(gzip.compress(b"one ") + gzip.compress(b"two")) == [("", b"one two")]


def wide_zstd() -> bytes:
    return zstandard.ZstdCompressor(level=22).compress(bytes(range(256)) * 800_000)


def encrypted_zip() -> bytes:
    data = bytearray(zipped({"a.jsonl": ROW}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


def corrupt_zip() -> bytes:
    data = bytearray(zipped({"a.jsonl": ROW * 100}))
    data[45] ^= 0xFF
    return bytes(data)


BROKEN: list[tuple[str, Any, str]] = [
    ("gzip cut", gzip.compress(ROW * 50)[:-12], "broken gzip"),
    ("gzip of junk", b"\x1f\x8b" + b"junk" * 100, "broken gzip"),
    ("zstd cut", zstd(ROW * 50)[:-3], "broken zstd"),
    ("zstd of junk", container.ZSTD_MAGIC + b"junk" * 100, "broken zstd"),
    ("junk behind zstd", zstd(ROW) + b"junk", "broken zstd"),
    ("zstd with a huge window", wide_zstd(), "broken zstd"),
    ("zip of junk", b"PK\x03\x04 a zip file", "broken zip"),
    ("zip cut", zipped({"a.jsonl": ROW})[:-30], "broken zip"),
    ("zip with a broken member", corrupt_zip(), "broken zip"),
    ("encrypted zip", encrypted_zip(), "encrypted"),
    ("name that leads out", zipped({"../a.jsonl": ROW}), "unsafe name"),
    ("name that leads out further in", zipped({"a/../../b.py": "x"}), "unsafe name"),
    ("absolute name", zipped({"/etc/a.jsonl": ROW}), "unsafe name"),
    ("Windows name", zipped({"C:\\a.jsonl": ROW}), "unsafe name"),
    ("zip without data", zipped({"a.txt": "x", "__MACOSX/a.jsonl": ROW}), "nothing to read"),
    ("empty zip", zipped({}), "nothing to read"),
    ("zip packed with bzip2", oddly_packed(zipfile.ZIP_BZIP2), "unknown packing"),
    ("zip packed with lzma", oddly_packed(zipfile.ZIP_LZMA), "unknown packing"),
]


@pytest.mark.parametrize(
    ("data", "rule"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_packing_is_reported(data: bytes, rule: str) -> None:
    found = report(data)
    assert not found.readable
    assert list(found.problem_rules) == [rule]


def test_records_before_the_break_are_counted_and_not_usable() -> None:
    found = report(gzip.compress(ROW * 5_000 + b'{"task')[:-30])
    assert found.records > 0
    assert not found.usable


def test_too_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({f"Tide_0/{number}.py": "x" for number in range(5)})
    monkeypatch.setattr(caps, "MAX_MEMBERS", 5)
    assert report(data).samples == 5
    monkeypatch.setattr(caps, "MAX_MEMBERS", 4)
    assert rules(data) == {"file too large": 1}
    monkeypatch.setattr(caps, "MAX_MEMBER_LIST_BYTES", 100)
    assert rules(data) == {"file too large": 1}


def test_an_archive_that_may_hide_its_list_is_not_opened() -> None:
    data = zipped({"a.jsonl": ROW})
    end = data.rindex(b"PK\x05\x06")
    locator = struct.pack("<IIQI", 0x07064B50, 0, 0, 1)
    with pytest.raises(Unreadable, match="too many files"):
        container.opened(io.BytesIO(data[:end] + locator + data[end:]))


def test_a_program_file_over_the_cap_or_not_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_RECORD_BYTES", 1_000)
    members = {
        "Tide_0/0.py": program(0),
        "Tide_1/0.py": "#" * 2_000,
        "Tide_2/0.py": b"\xff\xfe"[::-1] + b"\xff",
    }
    found = report(zipped(members))
    assert (found.samples, found.problem_count) == (1, 2)
    assert found.problem_rules == {"line too long": 1, "not UTF-8": 1}
    assert {problem.member for problem in found.problems} == {"Tide_1/0.py", "Tide_2/0.py"}


def test_a_problem_names_the_member_and_its_line() -> None:
    data = zipped({"a.jsonl": ROW + ROW, "b.jsonl": ROW + b"{\n"})
    problem = report(data).problems[0]
    assert (problem.member, problem.line, problem.rule) == ("b.jsonl", 2, "bad JSON")


def test_hostile_member_names_are_made_fit_to_show() -> None:
    data = zipped({"a\x1b[31m\u202e.jsonl": b"{\n"})
    assert report(data).problems[0].member.isprintable()


def test_a_byte_order_mark_in_each_member_is_dropped() -> None:
    marked = b"\xef\xbb\xbf" + json.dumps({"task_id": "Tide/0", "completion": "x"}).encode()
    assert report(zipped({"a.jsonl": marked, "b.jsonl": marked})).samples == 2
