"""When the canaries last went well: in memory that a worker shares with its horses."""

from __future__ import annotations

import mmap
import struct
import time

CANARY_S = 10.0
# (key, monotonic time) by the key's remainder: of two that meet, the later one is remembered.
_ENTRY = struct.Struct("qd")
_PLACES = 64
_checked = mmap.mmap(-1, _PLACES * _ENTRY.size)


def are_due(key: int) -> bool:
    """Whether nobody of this worker saw them go well within ``CANARY_S`` seconds."""
    known, at = _ENTRY.unpack_from(_checked, _place(key))
    return known != key or not at or time.monotonic() - at > CANARY_S


def went_well(key: int) -> None:
    _ENTRY.pack_into(_checked, _place(key), key, time.monotonic())


def _place(key: int) -> int:
    return key % _PLACES * _ENTRY.size
