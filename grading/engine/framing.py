"""Frames, and the JSON in them, as they travel between cell, host and judge.

A frame is a kind (1 byte), an id (8 bytes), the length of its payload (4 bytes, big endian) and
the payload, ASCII JSON.

This file runs inside the cell and the judge too, so it is written for Python 3.8 and imports
nothing but what the interpreter has loaded anyway.
"""

from __future__ import annotations

import posix
from _json import encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FRAME = 1024 * 1024
MAX_TOTAL = 8 * 1024 * 1024

HEADER = 13

TEXT_LENGTH = 500
MAX_TEXTS = 50
MAX_LINE = 10**9


class WireError(Exception):
    """A frame or value breaks the rules."""


class TooLarge(WireError):
    """A value is deeper or larger than the caps."""


def pack(kind: bytes, ident: bytes, payload: bytes) -> bytes:
    """One frame; ``kind`` is 1 byte, ``ident`` 8."""
    return kind + ident + len(payload).to_bytes(4, "big") + payload


def unpack_header(header: bytes) -> tuple[bytes, bytes, int]:
    """(kind, id, payload length) of the first HEADER bytes of a frame."""
    return header[:1], header[1:9], int.from_bytes(header[9:13], "big")


def read_exactly(descriptor: int, size: int) -> bytes:
    """``size`` bytes, or EOFError when the other side has closed."""
    parts = []
    while size:
        part = posix.read(descriptor, size if size < 65536 else 65536)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame(descriptor: int) -> tuple[bytes, bytes, bytes]:
    """The next frame of a blocking descriptor as (kind, id, payload)."""
    kind, ident, size = unpack_header(read_exactly(descriptor, HEADER))
    return kind, ident, read_exactly(descriptor, size)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(descriptor, view) :]


# --- JSON without importing json, whose decoder loads the regular expression engine ------------


class _Settings:
    """What the C scanner wants to know; numbers other than int and float do not exist here."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> None:
        raise WireError("constant " + name)


_scan: Any = make_scanner(_Settings)  # type: ignore[arg-type]


def _refuse(value: Any) -> Any:
    raise WireError("not JSON: " + type(value).__name__)


_encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)


def dumps(value: Any) -> bytes:
    return "".join(_encode(value, 0)).encode("ascii")


def loads(data: bytes) -> Any:
    """The JSON value in ``data``; WireError for anything else."""
    try:
        text = data.decode("ascii")
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError):
        raise WireError("not JSON") from None
    if end != len(text):
        raise WireError("text after JSON")
    return value


# --- what the cell says of itself, on its way to the host ---------------------------------------


def reported(failure: dict[str, Any]) -> dict[str, Any]:
    """A failure as the cell described it, small and of the right form whatever it sent.

    What the judge read may be too deep, or hold too long a number, for the host to read.
    """
    keys = ("phase", "exception", "message", "denied")
    told: dict[str, Any] = {key: "".join(texts([failure.get(key)])) for key in keys}
    frames = failure.get("frames")
    told["frames"] = [
        [frame[0], frame[1][:TEXT_LENGTH]]
        for frame in (frames[-MAX_TEXTS:] if type(frames) is list else [])
        if type(frame) is list and [type(part) for part in frame] == [int, str]
        if 0 <= frame[0] < MAX_LINE
    ]
    return told


def texts(value: Any) -> list[str]:
    """The strings of a list, cut; nothing of anything else."""
    found = value[:MAX_TEXTS] if type(value) is list else []
    return [item[:TEXT_LENGTH] for item in found if type(item) is str]
