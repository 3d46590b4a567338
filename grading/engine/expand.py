"""Bytes of an untrusted file as text, unpacked in bounded memory and time.

gzip is recognised by its first bytes. What makes the rest unreadable (broken or exploding
packing, UTF-16, too much text) raises `Unreadable`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Caps:
    """``line_bytes`` per line; ``total_bytes`` after expansion.

    A packed file that has expanded to more than ``ratio_from_bytes`` may not have grown more than
    ``ratio`` times: text compresses about 5 to 100 times, a bomb about 1,000 times.
    """

    line_bytes: int
    total_bytes: int
    ratio: int = 300
    ratio_from_bytes: int = 16 * 1024**2


class Unreadable(Exception):
    """The rest of the file cannot be read; ``rule`` names the kind of fault."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


class Meter:
    """What one packed file has grown to so far."""

    def __init__(self, caps: Caps, bomb: str) -> None:
        self._caps = caps
        self._bomb = bomb
        self._packed = 0
        self._unpacked = 0

    def count(self, packed: int, unpacked: int) -> None:
        """Add bytes read and bytes gained; raises `Unreadable` with the rule ``bomb``."""
        self._packed += packed
        self._unpacked += unpacked
        allowed = max(self._caps.ratio_from_bytes, self._caps.ratio * self._packed)
        if self._unpacked > allowed:
            detail = (
                f"{self._packed:,} bytes unpack to more than {self._unpacked:,}, "
                f"over {self._caps.ratio} times"
            )
            raise Unreadable(self._bomb, detail)


def expanded(stream: BinaryIO, caps: Caps) -> Iterator[bytes]:
    """The text's bytes from the start of ``stream``, unpacked, without byte order mark."""
    stream.seek(0)
    first = stream.read(READ_BYTES)
    packed = first.startswith(GZIP_MAGIC)
    pieces = blocks(stream, first)
    return text_of(gunzipped(pieces, caps) if packed else pieces, caps)


def blocks(stream: BinaryIO, first: bytes = b"") -> Iterator[bytes]:
    """``first`` and the rest of ``stream``."""
    block = first or stream.read(READ_BYTES)
    while block:
        yield block
        block = stream.read(READ_BYTES)


def text_of(chunks: Iterable[bytes], caps: Caps) -> Iterator[bytes]:
    """The chunks without byte order mark, up to ``caps.total_bytes``."""
    total, start = 0, True
    for chunk in chunks:
        if start and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Unreadable("not UTF-8", "the file is UTF-16; save it as UTF-8")
        total += len(chunk)
        if total > caps.total_bytes:
            raise Unreadable("file too large", f"more than {caps.total_bytes:,} bytes of text")
        yield chunk.removeprefix(b"\xef\xbb\xbf") if start else chunk
        start = False


def gunzipped(packed: Iterator[bytes], caps: Caps) -> Iterator[bytes]:
    """All members of a gzip file, at most `READ_BYTES` at a time."""
    member = zlib.decompressobj(wbits=31)
    meter = Meter(caps, "gzip bomb")
    data = next(packed, b"")
    while True:
        try:
            chunk = member.decompress(data, READ_BYTES)
        except zlib.error as problem:
            raise Unreadable("broken gzip", str(problem)) from None
        meter.count(len(data) - len(member.unconsumed_tail) - len(member.unused_data), len(chunk))
        if chunk:
            yield chunk
        data = member.unconsumed_tail or member.unused_data or next(packed, b"")
        if member.eof:
            data = _after_padding(data, packed)
            if not data:
                return
            member = zlib.decompressobj(wbits=31)
        elif not data and not chunk:
            raise Unreadable("broken gzip", "the file ends in the middle; upload it again")


def _after_padding(data: bytes, packed: Iterator[bytes]) -> bytes:
    """Where the next member starts: members may be padded with NUL bytes."""
    data = data.lstrip(b"\0")
    while not data and (block := next(packed, b"")):
        data = block.lstrip(b"\0")
    return data
