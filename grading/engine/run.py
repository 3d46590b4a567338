"""What is asked of one run, and what was seen of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grading.engine.limits import STREAM_HEAD_BYTES, STREAM_TAIL_BYTES
from grading.engine.usage import Usage


class Ended(Exception):
    """The run is over; the class says how."""


class Timeout(Ended):
    pass


class Overflow(Ended):
    pass


class WorkFull(Ended):
    """The work directory, where it is one of the host's, holds more than it may."""


class CellDied(Ended):
    pass


class Violation(Ended):
    pass


class JudgeDied(Ended):
    pass


@dataclass(slots=True)
class Captured:
    """Head, tail and true size in bytes of one output stream."""

    head: bytes = b""
    tail: bytes = b""
    size: int = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = STREAM_HEAD_BYTES - len(self.head)
        self.head += data[: max(room, 0)]
        if room < len(data):
            self.tail = (self.tail + data[max(room, 0) :])[-STREAM_TAIL_BYTES:]

    def text(self) -> str:
        """The end of what was written, for the reader of a failure."""
        return (self.tail or self.head).decode(errors="replace")[-500:]


@dataclass(slots=True)
class Run:
    """What was seen of one run. ``ended`` None: every target was evaluated, or loading failed.

    ``loaded`` is the cell's answer to loading: ``failure``, ``names``, ``denied``. ``targets``
    are the judge's reports, each with ``duration_s`` added. ``wall_s`` is by the run's own clock,
    which stands still where it was patient.
    """

    ended: Ended | None = None
    loaded: dict[str, Any] | None = None
    targets: list[dict[str, Any]] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    tricks: set[str] = field(default_factory=set)
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    wall_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    returncode: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What a run is about: ``code`` for the cell, the rest for the judge but the denylist."""

    code: str
    targets: tuple[str, ...]
    setup: str
    helpers: str
    entry_points: tuple[str, ...]
    in_place: bool
    denied: tuple[str, ...]
