"""Entries of one large JSON document, one at a time: the document itself is never held.

A document is an array, or an object with the wanted entries at some path inside it. Only the
outline is read here; an entry's own text goes to the JSON parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grading.engine import jsonl
from grading.engine.expand import Unreadable
from grading.intake import caps

_SPACE = re.compile(rb"[ \t\r\n]*+")
# What changes no depth: whole strings, and all between them that is no bracket.
_FLAT = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_OPENERS, _CLOSERS = frozenset(b"[{"), frozenset(b"]}")
_QUOTE = ord('"')
_SCALAR = re.compile(rb"[^,\]}\s]*+")
_END = b""
_KEY_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Entry:
    """``line`` is where it begins; ``key`` None in an array. ``raw`` None: over the cap."""

    line: int
    position: int
    key: str | None
    raw: bytes | None


@dataclass(frozen=True, slots=True)
class Outline:
    """What the start of a text shows of its first value.

    ``keys`` are the first keys of an object; ``rest`` is what follows the value, None where the
    value goes on behind the start.
    """

    opener: bytes
    keys: tuple[str, ...]
    rest: bytes | None


def entries(chunks: Iterator[bytes], path: tuple[str, ...], cap: int) -> Iterator[Entry]:
    """The entries of the container at ``path``. Raises `Unreadable` where the outline is broken."""
    scanner = _Scanner(chunks)
    yield from _descend(scanner, path, cap)
    if scanner.peek() != _END:
        raise _broken(scanner, "text after the end of the JSON document")


def outline(start: bytes) -> Outline:
    """The outline of a text of which the first bytes are known."""
    scanner = _Scanner(iter([start]))
    opener = scanner.peek()
    keys: list[str] = []
    try:
        if opener == b"{":
            for key in _keys(scanner):
                keys.append(key)
                scanner.value(0)
        else:
            scanner.value(0)
    except Unreadable:
        return Outline(opener, tuple(keys), None)
    return Outline(opener, tuple(keys), scanner.left())


def _descend(scanner: _Scanner, path: tuple[str, ...], cap: int) -> Iterator[Entry]:
    if not path:
        yield from _entries_here(scanner, cap)
        return
    for key in _keys(scanner):
        if key == path[0]:
            yield from _descend(scanner, path[1:], cap)
        else:
            scanner.value(0)


def _entries_here(scanner: _Scanner, cap: int) -> Iterator[Entry]:
    opener = scanner.peek()
    if opener == b"{":
        for position, key in enumerate(_keys(scanner)):
            scanner.peek()
            yield Entry(scanner.line, position, key, scanner.value(cap))
        return
    if opener != b"[":
        raise _broken(scanner, "expected an array or an object")
    scanner.take()
    position = 0
    while scanner.peek() != b"]":
        if position:
            _expect(scanner, b",")
            scanner.peek()
        yield Entry(scanner.line, position, None, scanner.value(cap))
        position += 1
    scanner.take()


def _keys(scanner: _Scanner) -> Iterator[str]:
    """The keys of the object that begins here; the caller consumes each value."""
    _expect(scanner, b"{")
    first = True
    while scanner.peek() != b"}":
        if not first:
            _expect(scanner, b",")
        first = False
        if scanner.peek() != b'"':
            raise _broken(scanner, "expected a key")
        raw = scanner.value(_KEY_BYTES)
        key = None if raw is None else jsonl.value(scanner.line, raw)
        if not isinstance(key, str):
            raise _broken(scanner, "a key that cannot be read")
        _expect(scanner, b":")
        yield key
    scanner.take()


def _expect(scanner: _Scanner, byte: bytes) -> None:
    found = scanner.peek()
    if found != byte:
        if found == _END:
            raise Unreadable("bad JSON", f"the file ends in the middle, line {scanner.line:,}")
        raise _broken(scanner, f"expected {byte.decode()} and found {jsonl.shown(found)}")
    scanner.take()


def _broken(scanner: _Scanner, what: str) -> Unreadable:
    return Unreadable("bad JSON", f"{what}, line {scanner.line:,}")


class _Scanner:
    """A cursor over chunks; nothing before it is kept. ``line`` counts from 1."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.line = 1
        self._chunks = chunks
        self._data = b""
        self._place = 0
        self._nesting = _Nesting()

    def left(self) -> bytes:
        return self._data[self._place :]

    def peek(self) -> bytes:
        """The next byte that is no space, or `_END`."""
        while self._available():
            match = _SPACE.match(self._data, self._place)
            self._move(match.end() if match else self._place)
            if self._place < len(self._data):
                return self._data[self._place : self._place + 1]
        return _END

    def take(self) -> None:
        self._place += 1

    def value(self, cap: int) -> bytes | None:
        """The text of the value that begins here, None where it is longer than ``cap``."""
        first = self.peek()
        if first == _END:
            raise Unreadable("bad JSON", f"the file ends in the middle, line {self.line:,}")
        kept = _Kept(cap)
        if first in b'"[{':
            self._nested(kept)
        else:
            self._scalar(kept)
        return kept.text()

    def _available(self) -> bool:
        """Whether there is a byte at the cursor, once another chunk has been fetched for it."""
        while self._place >= len(self._data):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._data, self._place = chunk, 0
        return True

    def _move(self, place: int) -> None:
        self.line += self._data.count(b"\n", self._place, place)
        self._place = place

    def _scalar(self, kept: _Kept) -> None:
        while self._available():
            match = _SCALAR.match(self._data, self._place)
            end = match.end() if match else self._place
            kept.add(self._data, self._place, end)
            self._move(end)
            if end < len(self._data):
                break
        if not kept.size:
            raise _broken(self, "expected a value")

    def _nested(self, kept: _Kept) -> None:
        while self._available():
            end = self._nesting.scan(self._data, self._place)
            kept.add(self._data, self._place, end)
            self._move(end)
            if self._nesting.closed:
                return
        raise Unreadable("bad JSON", f"the file ends in the middle, line {self.line:,}")


class _Nesting:
    """How deep inside a value the scan is; goes on from chunk to chunk.

    Every bracket is a step, and their number in a document is limited.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False  # an odd number of backslashes ends what was scanned

    @property
    def closed(self) -> bool:
        return self._depth == 0 and not self._in_string

    def scan(self, data: bytes, place: int) -> int:
        """Where the value ends in ``data``, or its length where it goes on."""
        while place < len(data):
            place = self._string(data, place) if self._in_string else self._outside(data, place)
            if self.closed:
                break
        return place

    def _outside(self, data: bytes, place: int) -> int:
        if self._depth:
            flat = _FLAT.match(data, place)
            place = flat.end() if flat else place
        if place == len(data):
            return place
        byte = data[place]
        self._in_string = byte == _QUOTE  # of a string that goes on in the next chunk
        self._depth += (byte in _OPENERS) - (byte in _CLOSERS)
        self._steps += 1
        if self._steps > caps.MAX_BRACKETS:
            raise Unreadable("file too large", f"more than {caps.MAX_BRACKETS:,} brackets")
        return place + 1

    def _string(self, data: bytes, place: int) -> int:
        quote = data.find(b'"', place)
        end = len(data) if quote < 0 else quote
        part = data[place:end]
        backslashes = len(part) - len(part.rstrip(b"\\"))
        if backslashes == len(part):
            backslashes += self._escaped
        escaped = backslashes % 2 == 1
        self._in_string, self._escaped = quote < 0 or escaped, quote < 0 and escaped
        return end + 1 if quote >= 0 else end


class _Kept:
    """Pieces of a value as long as they fit under the cap."""

    def __init__(self, cap: int) -> None:
        self.size = 0
        self._cap = cap
        self._pieces: list[bytes] = []

    def add(self, data: bytes, start: int, end: int) -> None:
        self.size += end - start
        if self.size <= self._cap:
            self._pieces.append(data[start:end])
        else:
            self._pieces.clear()

    def text(self) -> bytes | None:
        return None if self.size > self._cap else b"".join(self._pieces)
