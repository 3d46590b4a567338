"""What stands around an upload's text: gzip, zstd, or a zip archive, recognised by content.

Nothing is written to disk and no member name is ever used as a path. Every fault of the packing
raises `Unreadable`; work and memory are bounded by `grading.intake.caps`.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import zstandard

from grading.engine.expand import (
    GZIP_MAGIC,
    READ_BYTES,
    Caps,
    Meter,
    Unreadable,
    blocks,
    gunzipped,
    text_of,
)
from grading.intake import caps

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A block of 128 KiB may stand in four bytes.
ZSTD_STEP_BYTES = 256
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
DATA_SUFFIXES = (".jsonl", ".json", ".ndjson")
PACKED_SUFFIXES = (".gz", ".zst")
PROGRAM_SUFFIX = ".py"

_END_OF_LIST = b"PK\x05\x06"
_END_OF_LIST_BYTES = 22
_LARGE_ARCHIVE = b"PK\x06\x07"
_LARGE_ARCHIVE_BYTES = 20
_COMMENT_BYTES = 65_535
_ENCRYPTED = 0x1
# What zipfile and zlib raise for archives that are not as they should be.
_BROKEN_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError),
    *(NotImplementedError, RuntimeError, IndexError, KeyError, struct.error),
)
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, slots=True)
class Container:
    """``packing`` is empty, ``gzip``, ``zstd`` or ``zip``. ``members`` are read in this order;
    a file that is no archive has one, without a name. ``ignored`` members hold no data.
    """

    stream: BinaryIO
    packing: str = ""
    members: tuple[str, ...] = ("",)
    ignored: int = 0
    archive: zipfile.ZipFile | None = field(default=None, repr=False)

    @property
    def holds_programs(self) -> bool:
        """One program in each member, instead of JSON."""
        return self.members[0].endswith(PROGRAM_SUFFIX)

    def texts(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Each member's name and unpacked text. Raises `Unreadable`, then and while reading."""
        if self.archive is None:
            yield "", text_of(_unpacked(blocks(_rewound(self.stream))), caps.TEXT_CAPS)
            return
        left = caps.TEXT_CAPS.total_bytes
        meter = Meter(caps.TEXT_CAPS, "zip bomb")
        for name in self.members:
            counted = _Counted(_unpacked(_member(self.archive, name, meter)))
            yield name, text_of(counted, _with_total(left))
            left -= counted.bytes


class _Counted:
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.bytes = 0
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.bytes += len(chunk)
            yield chunk


def opened(stream: BinaryIO) -> Container:
    """The container in a seekable stream. Raises `Unreadable`."""
    start = _rewound(stream).read(4)
    if start.startswith(GZIP_MAGIC):
        return Container(stream, "gzip")
    if start == ZSTD_MAGIC:
        return Container(stream, "zstd")
    return _archive(stream) if start in ZIP_MAGICS else Container(stream)


def _rewound(stream: BinaryIO) -> BinaryIO:
    stream.seek(0)
    return stream


def _with_total(total_bytes: int) -> Caps:
    return Caps(caps.TEXT_CAPS.line_bytes, total_bytes)


def _unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, unpacked where they begin like gzip or zstd."""
    first = next(chunks, b"")
    whole = _chained(first, chunks)
    if first.startswith(GZIP_MAGIC):
        return gunzipped(whole, caps.TEXT_CAPS)
    return _zstd(whole) if first.startswith(ZSTD_MAGIC) else whole


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _zstd(packed: Iterator[bytes]) -> Iterator[bytes]:
    """All frames of a zstd file, in steps so small that a bomb is met early."""
    decoder = zstandard.ZstdDecompressor(max_window_size=caps.MAX_ZSTD_WINDOW_BYTES)
    meter = Meter(caps.TEXT_CAPS, "zstd bomb")
    frame, complete = decoder.decompressobj(), False
    for step in _steps(packed):
        data = step
        while data:
            if complete:
                frame = decoder.decompressobj()
            try:
                chunk = frame.decompress(data)
            except (zstandard.ZstdError, MemoryError) as problem:
                raise Unreadable("broken zstd", f"{problem}{_advice(problem)}") from None
            meter.count(len(data) - len(frame.unused_data), len(chunk))
            if chunk:
                yield chunk
            complete, data = frame.eof, frame.unused_data
    if not complete:
        raise Unreadable("broken zstd", "the file ends in the middle; upload it again")


def _advice(problem: Exception) -> str:
    large = "memory" in str(problem) or isinstance(problem, MemoryError)
    return "; pack it with level 20 or below" if large else ""


def _steps(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), ZSTD_STEP_BYTES):
            yield chunk[start : start + ZSTD_STEP_BYTES]


def _archive(stream: BinaryIO) -> Container:
    _refuse_long_list(stream)
    try:
        archive = zipfile.ZipFile(stream)
    except _BROKEN_ARCHIVE as problem:
        raise Unreadable("broken zip", str(problem)) from None
    infos = [info for info in archive.infolist() if not _is_clutter(info)]
    if len(infos) > caps.MAX_MEMBERS:
        detail = f"{len(infos):,} files in the archive; at most {caps.MAX_MEMBERS:,}"
        raise Unreadable("file too large", detail)
    for info in infos:
        _refuse_unfit(info)
    names = _chosen(sorted((info.filename for info in infos), key=_natural))
    if not names:
        detail = "no .jsonl, .json or .py file in the archive"
        raise Unreadable("nothing to read", detail)
    return Container(stream, "zip", tuple(names), len(infos) - len(names), archive)


def _refuse_long_list(stream: BinaryIO) -> None:
    """The list of members at the archive's end is small enough to be read into memory."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _END_OF_LIST_BYTES - _COMMENT_BYTES - _LARGE_ARCHIVE_BYTES))
    tail = stream.read()
    end = tail.rfind(_END_OF_LIST)
    if end < 0 or len(tail) < end + _END_OF_LIST_BYTES:
        raise Unreadable("broken zip", "the archive has no list of its files; upload it again")
    list_bytes = int.from_bytes(tail[end + 12 : end + 16], "little")
    is_large = tail[max(0, end - _LARGE_ARCHIVE_BYTES) : end].startswith(_LARGE_ARCHIVE)
    if is_large or list_bytes > caps.MAX_MEMBER_LIST_BYTES:
        detail = f"too many files in the archive; at most {caps.MAX_MEMBERS:,}"
        raise Unreadable("file too large", detail)


def _is_clutter(info: zipfile.ZipInfo) -> bool:
    """Directories, and what macOS adds."""
    *folders, name = info.filename.split("/")
    return not name or "__MACOSX" in folders or name.startswith(".")


def _refuse_unfit(info: zipfile.ZipInfo) -> None:
    name = info.filename
    if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or ":" in name[:2]:
        raise Unreadable("unsafe name", f"{ascii(name)[:80]} leads out of the archive")
    if info.flag_bits & _ENCRYPTED:
        raise Unreadable("encrypted", f"{ascii(name)[:80]} needs a password")
    if info.compress_type not in _PLAIN_METHODS:
        detail = f"{ascii(name)[:80]} is packed in an unusual way; use deflate"
        raise Unreadable("unknown packing", detail)


def _chosen(names: list[str]) -> list[str]:
    """The members with JSON, else those with programs."""
    data = [name for name in names if _without_packing(name).endswith(DATA_SUFFIXES)]
    return data or [name for name in names if name.lower().endswith(PROGRAM_SUFFIX)]


def _without_packing(name: str) -> str:
    name = name.lower()
    for suffix in PACKED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key by which 2.py comes before 10.py."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _member(archive: zipfile.ZipFile, name: str, meter: Meter) -> Iterator[bytes]:
    packed = archive.getinfo(name).compress_size
    try:
        with archive.open(name) as member:
            while chunk := member.read(READ_BYTES):
                meter.count(packed, len(chunk))
                packed = 0
                yield chunk
    except _BROKEN_ARCHIVE as problem:
        raise Unreadable("broken zip", f"{ascii(name)[:80]}: {problem}") from None
