"""Locks on files between processes; each vanishes with the death of its holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from grading.engine.outcome import PlatformError

Tick = Callable[[], None]

_LOOK_S = 0.01
_TICK_S = 1.0


def lock(path: str, kind: int, deadline: float, tick: Tick | None = None) -> int:
    """A descriptor holding the lock, shared or exclusive; closing it releases the lock.

    The file is made where it is missing. ``tick`` is called about once a second while waiting.
    Raises PlatformError past ``deadline``, of the monotonic clock.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    next_tick = time.monotonic() + _TICK_S
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(fd)
                raise PlatformError(f"waited too long for {path}") from None
        if tick is not None and time.monotonic() >= next_tick:
            next_tick = time.monotonic() + _TICK_S
            tick()
        time.sleep(_LOOK_S)


def try_lock(path: str, kind: int) -> int | None:
    """As :func:`lock`, of a file or directory that is there; None where it is not to be had."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
