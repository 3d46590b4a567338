"""A host-wide turnstile: many cells at once, or one run alone.

Two lock files, since a lock shared by many would starve whoever wants it alone: passing the
gate comes first, and who wants to be alone keeps the gate shut while the others finish.
Locks vanish with their holder's death, and no started process inherits them.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from grading.engine.locking import Tick, lock

# Longer than any run may take, so that a stuck holder delays others but does not stop them.
WAIT_S = 120.0


class Turnstile:
    """``directory`` holds the lock files and has to exist."""

    def __init__(self, directory: str, wait_s: float = WAIT_S) -> None:
        self._gate = os.path.join(directory, "gate.lock")
        self._main = os.path.join(directory, "cells.lock")
        self._wait_s = wait_s
        self._alone = False
        self._inside: set[int] = set()

    def enter(self, tick: Tick | None = None) -> Callable[[], None]:
        """Wait until nobody is alone, then count as running; call the result to leave.

        Inside :meth:`solo` of the same object there is nothing to wait for, and who counts as
        running passes the gate again: whoever wants to be alone waits for them, so waiting for
        that one would never end. ``tick`` is called about once a second while waiting. Raises
        PlatformError after ``wait_s`` seconds.
        """
        if self._alone:
            return _nothing
        deadline = time.monotonic() + self._wait_s
        gate = None if self._inside else lock(self._gate, fcntl.LOCK_SH, deadline, tick)
        try:
            main = lock(self._main, fcntl.LOCK_SH, deadline, tick)
        finally:
            if gate is not None:
                os.close(gate)
        self._inside.add(main)
        return lambda: self._leave(main)

    def _leave(self, main: int) -> None:
        self._inside.discard(main)
        os.close(main)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold :meth:`enter` for the length of a block."""
        leave = self.enter()
        try:
            yield
        finally:
            leave()

    @contextmanager
    def solo(self, tick: Tick | None = None) -> Iterator[None]:
        """Keep all other starts of this host out and wait until the current ones have ended.

        The caller must not have a running child itself. ``tick`` is called about once a second
        while waiting. Raises PlatformError after ``wait_s`` seconds.
        """
        deadline = time.monotonic() + self._wait_s
        gate = lock(self._gate, fcntl.LOCK_EX, deadline, tick)
        try:
            main = lock(self._main, fcntl.LOCK_EX, deadline, tick)
            self._alone = True
            try:
                yield
            finally:
                self._alone = False
                os.close(main)
        finally:
            os.close(gate)


def _nothing() -> None:
    """Leave a turnstile that was not entered."""
