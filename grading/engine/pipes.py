"""The host's ends of a run's pipes: frames to and from two processes, and what they print."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from grading.engine import framing
from grading.engine.run import Violation

_READ_BYTES = 65536
# Rounds in a row, so that a flood does not keep the host from its clocks.
_READS = 64
# Room for what a frame carries besides its value.
_FRAME_CAP = framing.MAX_FRAME + 65536

Frame = tuple[bytes, bytes, bytes]


class End:
    """One process's side of the frame pipes, as non-blocking descriptors.

    ``closed``: nothing more comes from there, or nothing more is taken there.
    """

    def __init__(self, writing: int, reading: int) -> None:
        self.writing = writing
        self.reading = reading
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.closed = False

    def frame(self) -> Frame | None:
        """The next complete frame received, if any; Violation for one over the cap."""
        if len(self.inbox) < framing.HEADER:
            return None
        kind, ident, size = framing.unpack_header(bytes(self.inbox[: framing.HEADER]))
        if size > _FRAME_CAP:
            raise Violation("frame too large")
        end = framing.HEADER + size
        if len(self.inbox) < end:
            return None
        payload = bytes(self.inbox[framing.HEADER : end])
        del self.inbox[:end]
        return kind, ident, payload


class Pipes:
    """Reads and writes all pipes of a run; what a reader raises comes through."""

    def __init__(self, *ends: End) -> None:
        self._ends = {end.reading: end for end in ends}
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._poller = select.poll()
        for end in ends:
            self.attach(end.reading, end.inbox.extend)

    def attach(self, descriptor: int, reader: Callable[[bytes], None]) -> None:
        """Give everything that comes from ``descriptor`` to ``reader``."""
        self._readers[descriptor] = reader
        self._poller.register(descriptor, select.POLLIN)

    def send(self, end: End, data: bytes) -> None:
        """Write as much as goes at once; the rest follows while waiting."""
        end.outbox += data
        self._write(end)

    def wait(self, seconds: float) -> bool:
        """Wait for any pipe, then read what is there and write what goes; whether any was ready."""
        writers = {end.writing: end for end in self._ends.values() if end.outbox}
        for descriptor in writers:
            self._poller.register(descriptor, select.POLLOUT)
        try:
            events = self._poller.poll(max(1, int(seconds * 1000)))
            for descriptor, _ in events:
                if descriptor in writers:
                    self._write(writers[descriptor])
                else:
                    self._read(descriptor)
        finally:
            for descriptor in writers:
                self._poller.unregister(descriptor)
        return bool(events)

    def read_available(self) -> None:
        """Take what is in the pipes now, a bounded amount."""
        for _ in range(_READS):
            events = self._poller.poll(0)
            if not events:
                return
            for descriptor, _ in events:
                self._read(descriptor)

    def _write(self, end: End) -> None:
        try:
            while end.outbox:
                sent = os.write(end.writing, end.outbox)
                del end.outbox[:sent]
        except BlockingIOError:
            return
        except BrokenPipeError:
            end.outbox.clear()
            end.closed = True

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._readers[descriptor](data)
            return
        self._poller.unregister(descriptor)
        del self._readers[descriptor]
        if descriptor in self._ends:
            self._ends[descriptor].closed = True
