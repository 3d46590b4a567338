"""The clocks of a run: every wait ends at an absolute deadline of the host."""

from __future__ import annotations

import time
from collections.abc import Callable

from grading.engine.limits import WORK_BYTES, WORK_ENTRIES
from grading.engine.run import Timeout, WorkFull
from grading.engine.workdir import exceeds

_LOOK_S = 0.05
_TICK_S = 1.0
# With the longest limit a run that wants to be alone still ends before others give up on it.
_FORGIVEN_S = 60.0
_LEAST_S = 0.01
_QUOTA_S = 0.05
# Of the time, at most this share goes into counting files.
_QUOTA_SHARE = 0.1


class Watch:
    """``deadline`` is a monotonic time, which the owner moves on.

    ``tick`` is called about once a second. ``workdir`` is a directory of the host's to keep an
    eye on, if any.
    """

    def __init__(self, deadline: float, tick: Callable[[], None] | None, workdir: str | None):
        self.deadline = deadline
        self._tick = tick
        self._workdir = workdir
        self._waited: Callable[[], float] | None = None
        self._granted = 0.0
        self._next_tick = time.monotonic() + _TICK_S
        self._next_count = time.monotonic() + _QUOTA_S

    def forgive(self, waited: Callable[[], float]) -> None:
        """Move the deadline by the seconds that ``waited`` gives, which only grow, up to a cap."""
        self._waited = waited

    @property
    def granted_s(self) -> float:
        """By how much the deadline was moved for waiting."""
        return self._granted

    def wait_s(self) -> float:
        """Seconds to wait before asking again, after doing what is due.

        Raises Timeout past the deadline, WorkFull.
        """
        now = time.monotonic()
        if self._tick and now >= self._next_tick:
            self._next_tick = now + _TICK_S
            self._tick()
        if now >= self.deadline:
            self._grant()
        if self._workdir and now >= self._next_count:
            self._count_files(self._workdir)
        return min(_LOOK_S, self.deadline - now)

    def _grant(self) -> None:
        waited = min(self._waited(), _FORGIVEN_S) if self._waited else 0.0
        if waited - self._granted < _LEAST_S:
            raise Timeout
        self.deadline += waited - self._granted
        self._granted = waited

    def _count_files(self, workdir: str) -> None:
        started = time.monotonic()
        if exceeds(workdir, WORK_BYTES, WORK_ENTRIES):
            raise WorkFull
        ended = time.monotonic()
        self._next_count = ended + max(_QUOTA_S, (ended - started) / _QUOTA_SHARE)
