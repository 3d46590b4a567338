"""Read JSON Lines from untrusted bytes in bounded memory.

A line ends at LF and nowhere else. CRLF, a byte order mark, blank lines and a missing last line
end are accepted, gzip is recognised by its first bytes. Anything else is reported by line and
skipped; what makes the rest unreadable (a broken or exploding gzip, UTF-16) ends the reading.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NoReturn

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 64 * 1024
FOUND_CHARS = 80


@dataclass(frozen=True, slots=True)
class Caps:
    """``line_bytes`` per line; ``total_bytes`` after expansion.

    A gzip file that has expanded to more than ``ratio_from_bytes`` may not have grown more than
    ``ratio`` times: text compresses about 5 to 100 times, a bomb about 1,000 times.
    """

    line_bytes: int
    total_bytes: int
    ratio: int = 300
    ratio_from_bytes: int = 16 * 1024**2


UPLOAD_CAPS = Caps(line_bytes=1024**2, total_bytes=512 * 1024**2)
TASK_FILE_CAPS = Caps(line_bytes=16 * 1024**2, total_bytes=512 * 1024**2)
# One that is not read line by line is held as a whole.
ARRAY_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file: ``line`` counts from 1, 0 means the file as a whole."""

    line: int
    task_id: str
    field: str
    rule: str
    detail: str
    found: str = ""
    expected: str = ""


@dataclass(slots=True)
class ProblemLog:
    """The first ``keep`` problems and the number of all."""

    keep: int = 20
    kept: list[Problem] = field(default_factory=list)
    total: int = 0
    fatal: bool = False

    def add(self, problem: Problem, *, fatal: bool = False) -> None:
        self.total += 1
        self.fatal = self.fatal or fatal
        if len(self.kept) < self.keep:
            self.kept.append(problem)


class _Unreadable(Exception):
    """The rest of the file cannot be read."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


class _BadLine(ValueError):
    """A line is JSON, yet not one we accept."""


def read(stream: BinaryIO, caps: Caps, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for every line that holds JSON; problems go to ``log``.

    Strings may hold lone surrogates and NUL characters. Numbers that are not finite and objects
    with a key twice are problems.
    """
    number = 0
    try:
        for number, line in _lines(_expanded(stream, caps), caps):
            if line is None:
                detail = f"longer than {caps.line_bytes:,} bytes; the line was not read"
                log.add(Problem(number, "", "", "line too long", detail))
            elif line.strip():
                yield from _value(number, line, log)
    except _Unreadable as problem:
        log.add(Problem(number, "", "", problem.rule, problem.detail), fatal=True)


def read_rows(stream: BinaryIO, caps: Caps, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    """`read`, also of a file that is one JSON array: its items, numbered from 1, are the lines."""
    try:
        chunks = _expanded(stream, caps)
        first = next((chunk for chunk in chunks if chunk.strip()), b"").lstrip()
        if not first.startswith(b"["):
            yield from read(stream, caps, log)
            return
        document = b"".join(_expanded(stream, replace(caps, total_bytes=ARRAY_BYTES)))
    except _Unreadable as problem:
        log.add(Problem(0, "", "", problem.rule, problem.detail), fatal=True)
        return
    for _, items in _value(0, document, log):
        yield from enumerate(items, 1)
    log.fatal = log.total > 0


def shown(value: object) -> str:
    """A short ASCII form of any value, for a report."""
    text = ascii(value)
    return text if len(text) <= FOUND_CHARS else text[: FOUND_CHARS - 3] + "..."


def plain(text: str) -> str:
    """A name from the file, fit to be shown: short, without characters that do not print."""
    kept = "".join(char if char.isprintable() else "?" for char in text[:FOUND_CHARS])
    return kept if len(text) <= FOUND_CHARS else kept + "..."


def _value(number: int, line: bytes, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    try:
        yield number, _decoded(line)
    except UnicodeDecodeError as problem:
        detail = f"byte {problem.start + 1} of the line is not UTF-8; save the file as UTF-8"
        found = shown(line[problem.start : problem.start + 4])
        log.add(Problem(number, "", "", "not UTF-8", detail, found, "UTF-8 text"))
    except RecursionError:
        log.add(Problem(number, "", "", "bad JSON", "nested too deeply"))
    except _BadLine as problem:
        log.add(Problem(number, "", "", "bad JSON", str(problem)))
    except ValueError as problem:
        detail = f"{problem}; every line has to be one JSON object"
        log.add(Problem(number, "", "", "bad JSON", detail, shown(line[:FOUND_CHARS])))


def _decoded(line: bytes) -> Any:
    return json.loads(
        line.decode("utf-8"),
        parse_constant=_refuse_constant,
        parse_float=_finite,
        object_pairs_hook=_without_duplicates,
    )


def _refuse_constant(name: str) -> NoReturn:
    raise _BadLine(f"{name} is not JSON; use null or a string")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _BadLine(f"{text[:20]} is too large for a number")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _BadLine(f"the key {shown(twice)} stands twice in one object")
    return result


def _lines(chunks: Iterator[bytes], caps: Caps) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) without its LF; None in place of a line over the cap."""
    number, parts, size = 1, list[bytes](), 0
    for chunk in chunks:
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            yield number, _joined(parts, size, piece, caps)
            number, parts, size = number + 1, [], 0
        size += len(pieces[-1])
        if size <= caps.line_bytes:
            parts.append(pieces[-1])
        else:
            parts.clear()
    if size:
        yield number, _joined(parts, size, b"", caps)


def _joined(parts: list[bytes], size: int, last: bytes, caps: Caps) -> bytes | None:
    return None if size + len(last) > caps.line_bytes else b"".join([*parts, last])


def _expanded(stream: BinaryIO, caps: Caps) -> Iterator[bytes]:
    """The text's bytes from the start of ``stream``, unpacked, without byte order mark."""
    stream.seek(0)
    first = stream.read(READ_BYTES)
    packed = first.startswith(GZIP_MAGIC)
    chunks = _unpacked(stream, first, caps) if packed else _chunks(stream, first)
    total, start = 0, True
    for chunk in chunks:
        if start and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise _Unreadable("not UTF-8", "the file is UTF-16; save it as UTF-8")
        total += len(chunk)
        if total > caps.total_bytes:
            raise _Unreadable("file too large", f"more than {caps.total_bytes:,} bytes of text")
        yield chunk.removeprefix(b"\xef\xbb\xbf") if start else chunk
        start = False


def _chunks(stream: BinaryIO, first: bytes) -> Iterator[bytes]:
    while first:
        yield first
        first = stream.read(READ_BYTES)


def _unpacked(stream: BinaryIO, first: bytes, caps: Caps) -> Iterator[bytes]:
    """All members of a gzip file, at most `READ_BYTES` at a time."""
    member = zlib.decompressobj(wbits=31)
    packed = unpacked = 0
    data = first
    while True:
        try:
            chunk = member.decompress(data, READ_BYTES)
        except zlib.error as problem:
            raise _Unreadable("broken gzip", str(problem)) from None
        packed += len(data) - len(member.unconsumed_tail) - len(member.unused_data)
        unpacked += len(chunk)
        if unpacked > max(caps.ratio_from_bytes, caps.ratio * packed):
            detail = f"{packed:,} bytes unpack to more than {unpacked:,}, {caps.ratio} times"
            raise _Unreadable("gzip bomb", detail)
        if chunk:
            yield chunk
        data = member.unconsumed_tail or member.unused_data or stream.read(READ_BYTES)
        if member.eof:
            data = data.lstrip(b"\0")  # members may be padded
            if not data:
                data = stream.read(READ_BYTES).lstrip(b"\0")
            if not data:
                return
            member = zlib.decompressobj(wbits=31)
        elif not data and not chunk:
            raise _Unreadable("broken gzip", "the file ends in the middle; upload it again")
