"""Read JSON Lines from untrusted bytes in bounded memory.

A line ends at LF and nowhere else. CRLF, a byte order mark, blank lines and a missing last line
end are accepted, gzip is recognised by its first bytes. Anything else is reported by line and
skipped; what makes the rest unreadable (a broken or exploding gzip, UTF-16) ends the reading.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NoReturn

from grading.engine.expand import Caps, Unreadable, expanded

FOUND_CHARS = 80
TASK_FILE_CAPS = Caps(line_bytes=16 * 1024**2, total_bytes=512 * 1024**2)
# One that is not read line by line is held as a whole.
ARRAY_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file: ``line`` counts from 1, 0 means the file as a whole.

    ``member`` names the file inside an archive.
    """

    line: int
    task_id: str
    field: str
    rule: str
    detail: str
    found: str = ""
    expected: str = ""
    member: str = ""


@dataclass(slots=True)
class ProblemLog:
    """The first ``keep`` problems, the number of all, and the number by rule."""

    keep: int = 20
    kept: list[Problem] = field(default_factory=list)
    total: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)
    fatal: bool = False

    def add(self, problem: Problem, *, fatal: bool = False) -> None:
        self.total += 1
        self.by_rule[problem.rule] += 1
        self.fatal = self.fatal or fatal
        if len(self.kept) < self.keep:
            self.kept.append(problem)


class _BadLine(ValueError):
    """A line is JSON, yet not one we accept."""


def read(stream: BinaryIO, caps: Caps, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for every line that holds JSON; problems go to ``log``.

    Strings may hold lone surrogates and NUL characters. Numbers that are not finite and objects
    with a key twice are problems.
    """
    number = 0
    try:
        for number, line in lines(expanded(stream, caps), caps.line_bytes):
            if line is None:
                log.add(too_long(number, caps.line_bytes))
            elif line.strip():
                row = value(number, line)
                if isinstance(row, Problem):
                    log.add(row)
                else:
                    yield number, row
    except Unreadable as problem:
        log.add(Problem(number, "", "", problem.rule, problem.detail), fatal=True)


def read_rows(stream: BinaryIO, caps: Caps, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    """`read`, also of a file that is one JSON array: its items, numbered from 1, are the lines."""
    try:
        chunks = expanded(stream, caps)
        first = next((chunk for chunk in chunks if chunk.strip()), b"").lstrip()
        if not first.startswith(b"["):
            yield from read(stream, caps, log)
            return
        document = b"".join(expanded(stream, replace(caps, total_bytes=ARRAY_BYTES)))
    except Unreadable as problem:
        log.add(Problem(0, "", "", problem.rule, problem.detail), fatal=True)
        return
    items = value(0, document)
    if isinstance(items, Problem):
        log.add(items, fatal=True)
    else:
        yield from enumerate(items, 1)


def shown(value: object) -> str:
    """A short ASCII form of any value, for a report."""
    text = ascii(value)
    return text if len(text) <= FOUND_CHARS else text[: FOUND_CHARS - 3] + "..."


def plain(text: str) -> str:
    """A name from the file, fit to be shown: short, without characters that do not print."""
    kept = "".join(char if char.isprintable() else "?" for char in text[:FOUND_CHARS])
    return kept if len(text) <= FOUND_CHARS else kept + "..."


def too_long(number: int, line_bytes: int) -> Problem:
    detail = f"longer than {line_bytes:,} bytes; it was not read"
    return Problem(number, "", "", "line too long", detail)


def value(number: int, line: bytes) -> Any:
    """The value that a line holds, or the `Problem` with it."""
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as problem:
        detail = f"byte {problem.start + 1} of the line is not UTF-8; save the file as UTF-8"
        found = shown(line[problem.start : problem.start + 4])
        return Problem(number, "", "", "not UTF-8", detail, found, "UTF-8 text")
    except RecursionError:
        return Problem(number, "", "", "bad JSON", "nested too deeply")
    except _BadLine as problem:
        return Problem(number, "", "", "bad JSON", str(problem))
    except ValueError as problem:
        start = line[:FOUND_CHARS].decode("utf-8", "replace")
        detail = f"{_words(problem)}; every line has to be one JSON object"
        return Problem(number, "", "", "bad JSON", detail, shown(start))


def _words(problem: ValueError) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg} at character {problem.pos + 1}"
    return str(problem)


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


# One for all lines: to make one takes as long as to read a short line.
_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant,
    parse_float=_finite,
    object_pairs_hook=_without_duplicates,
)


def lines(chunks: Iterable[bytes], line_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) without its LF; None in place of a line over the cap."""
    number, parts, size = 1, list[bytes](), 0
    for chunk in chunks:
        pieces = chunk.split(b"\n")
        for piece in pieces[:-1]:
            yield number, _joined(parts, size, piece, line_bytes)
            number, parts, size = number + 1, [], 0
        size += len(pieces[-1])
        if size <= line_bytes:
            parts.append(pieces[-1])
        else:
            parts.clear()
    if size:
        yield number, _joined(parts, size, b"", line_bytes)


def _joined(parts: list[bytes], size: int, last: bytes, line_bytes: int) -> bytes | None:
    return None if size + len(last) > line_bytes else b"".join([*parts, last])
