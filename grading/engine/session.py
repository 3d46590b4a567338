"""One run: a cell and a judge, the frames between them, and the clocks.

The worker relays what the two say to each other and parses nothing that comes from the cell but
its answer to loading. One side speaks at a time; a cell that speaks out of turn breaks the
protocol. Every wait ends at an absolute deadline of the host.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from grading.engine import framing, runtime
from grading.engine.child import Child
from grading.engine.limits import (
    STARTUP_S,
    STREAM_HEAD_BYTES,
    STREAM_TAIL_BYTES,
    WORK_BYTES,
    WORK_ENTRIES,
    Limits,
)
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.usage import Usage
from grading.engine.workdir import exceeds

_NO_ID = b"\0" * 8
_POLL_S = 0.05
_DYING_S = 0.5
_DYING_POLL_S = 0.002
_QUOTA_S = 0.05
# Of the time, at most this share goes into counting files.
_QUOTA_SHARE = 0.1
_TICK_S = 1.0
_READ_BYTES = 65536
# Room for what a frame carries besides its value.
_FRAME_CAP = framing.MAX_FRAME + 65536


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


@dataclass(slots=True)
class Run:
    """What was seen of one run. ``ended`` None: every target was evaluated, or loading failed.

    ``loaded`` is the cell's answer to loading: ``failure``, ``names``, ``denied``. ``targets``
    are the judge's reports, each with ``duration_s`` added.
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


def run(
    order: Order, sandbox: Sandbox, limits: Limits, tick: Callable[[], None] | None = None
) -> Run:
    """Run one program. ``tick`` is called about once a second while waiting.

    Raises PlatformError when cell or judge do not come up, or the judge dies before the cell
    has given a value.
    """
    boot = ["-c", runtime.BOOT]
    start = partial(sandbox.start, boot, tick=tick)
    with start(allow_processes=limits.allow_processes) as cell, start() as judge:
        session = _Session(cell, judge, limits, tick)
        session.send_images(sandbox)
        session.await_start()
        started = time.monotonic()
        try:
            session.converse(order, sandbox.rlimits(limits))
        except Ended as ended:
            session.result.ended = ended
        session.result.wall_s = time.monotonic() - started
        session.close()
        return session.result


class _End:
    """One process's side of the frame pipe."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.closed = False

    def frame(self) -> tuple[bytes, bytes, bytes] | None:
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


class _Session:
    def __init__(
        self, cell: Child, judge: Child, limits: Limits, tick: Callable[[], None] | None
    ) -> None:
        self.cell = _End(cell)
        self.judge = _End(judge)
        self.limits = limits
        self.tick = tick
        self.result = Run()
        self.judge_errors = Captured()
        self.answered = False
        self.start_wait_s = 0.0
        self.next_tick = time.monotonic() + _TICK_S
        self.next_count = time.monotonic() + _QUOTA_S
        self.deadline = time.monotonic() + STARTUP_S
        self.readers: dict[int, Callable[[bytes], None]] = {
            cell.stdout_fd: self.cell.inbox.extend,
            cell.stderr_fd: self.result.stderr.add,
            cell.capture_fd: self.result.stdout.add,
            judge.stdout_fd: self.judge.inbox.extend,
            judge.stderr_fd: self.judge_errors.add,
            judge.capture_fd: lambda data: None,
        }
        self.poller = select.poll()
        for descriptor in self.readers:
            self.poller.register(descriptor, select.POLLIN)

    # --- the conversation ---------------------------------------------------------------------

    def send_images(self, sandbox: Sandbox) -> None:
        """Their code, and what they are to give up before they get anything else."""
        for end, names, processes in (
            (self.cell, runtime.CELL, self.limits.allow_processes),
            (self.judge, runtime.JUDGE, False),
        ):
            end.outbox += runtime.image(names, sandbox.python_version)
            plan = sandbox.plan(end.child, allow_processes=processes)
            self.send(end, b"P", _NO_ID, json.dumps(plan).encode())

    def await_start(self) -> None:
        """Both are up, before either gets a byte that is not ours; PlatformError if not."""
        for name, end in (("cell", self.cell), ("judge", self.judge)):
            try:
                kind = self.receive(end)[0]
            except Ended as ended:
                said = (self.result.stderr.tail or self.result.stderr.head).decode(errors="replace")
                raise PlatformError(
                    f"the {name} did not start ({type(ended).__name__.lower()}): {said[-500:]}"
                ) from ended
            if kind != b"U":
                raise PlatformError(f"the {name} said {kind!r} instead of starting")
        # Waiting for a core while starting is not the program's.
        self.start_wait_s = self.cell.child.usage().wait_s or 0.0
        self.deadline = time.monotonic() + self.limits.timeout_s

    def converse(self, order: Order, rlimits: list[tuple[int, int]]) -> None:
        if not self.load(order, rlimits):
            return
        task = {
            "targets": order.targets,
            "setup": order.setup,
            "helpers": order.helpers,
            "entry_points": order.entry_points,
            "names": self.result.loaded["names"] if self.result.loaded else [],
            "in_place": order.in_place,
            "limits": rlimits,
        }
        self.send(self.judge, b"T", _NO_ID, json.dumps(task).encode())
        self.relay()
        # What the program printed last may still be in the pipes; it counts.
        self.read_available()

    def load(self, order: Order, rlimits: list[tuple[int, int]]) -> bool:
        """Give the program to the cell; whether it loaded."""
        token = os.urandom(16).hex()
        request = {
            "code": order.code,
            "token": token,
            "limits": rlimits,
            "denied": order.denied,
            "allow_processes": self.limits.allow_processes,
        }
        self.send(self.cell, b"L", _NO_ID, json.dumps(request).encode())
        kind, _, payload = self.receive(self.cell)
        loaded = _loaded(payload) if kind == b"D" else None
        if loaded is None or loaded["token"] != token:
            raise Violation("the answer to loading is not the cell's")
        self.result.loaded = loaded
        self.result.denied = loaded["denied"]
        self.result.tricks.update(loaded["tricks"])
        self.read_available()
        return loaded["failure"] is None

    def relay(self) -> None:
        """Carry requests and replies until the judge has reported every target."""
        pending: list[bytes] = []
        reported = time.monotonic()
        while True:
            kind, _, payload = self.receive(self.judge)
            if kind == b"E":
                return
            if kind == b"T":
                now = time.monotonic()
                report = json.loads(payload)
                self.result.denied = report.pop("denied") or self.result.denied
                self.result.tricks.update(map(str, report.pop("tricks")))
                self.result.targets.append(report | {"duration_s": now - reported})
                reported = now
                continue
            self.require_silence()
            if kind == b"Q":
                pending.append(os.urandom(8))
            self.send(self.cell, kind, pending[-1], payload)
            kind, ident, payload = self.receive(self.cell)
            if ident != pending[-1] or kind not in (b"R", b"C"):
                raise Violation("a frame out of turn")
            if kind == b"R":
                pending.pop()
            self.answered = True
            self.send(self.judge, kind, _NO_ID, payload)

    def require_silence(self) -> None:
        """Nothing may wait from the cell before it is asked."""
        self.read_available()
        if self.cell.inbox:
            raise Violation("a frame before it was asked for")

    # --- moving bytes -------------------------------------------------------------------------

    def send(self, end: _End, kind: bytes, ident: bytes, payload: bytes) -> None:
        end.outbox += framing.pack(kind, ident, payload)

    def receive(self, end: _End) -> tuple[bytes, bytes, bytes]:
        """The next frame of ``end``; raises an Ended."""
        while True:
            frame = end.frame()
            if frame is not None:
                return frame
            self.check_alive(end)
            self.move(self.wait_s())

    def check_alive(self, end: _End) -> None:
        """Raise when no frame of ``end`` can come any more."""
        if not end.closed and end.child.poll() is None:
            return
        self.read_available()
        if len(end.inbox) >= framing.HEADER:
            _, _, size = framing.unpack_header(bytes(end.inbox[: framing.HEADER]))
            if len(end.inbox) >= framing.HEADER + size:
                return
        if end is self.cell:
            raise CellDied
        self.blame_judge()

    def blame_judge(self) -> None:
        if self.answered:
            raise JudgeDied
        text = (self.judge_errors.tail or self.judge_errors.head).decode(errors="replace")
        raise PlatformError(f"the judge ended before it began: {text[-500:]}")

    def wait_s(self) -> float:
        """Seconds until something is due; raises Timeout past the deadline."""
        now = time.monotonic()
        if self.tick and now >= self.next_tick:
            self.next_tick = now + _TICK_S
            self.tick()
        if now >= self.deadline:
            raise Timeout
        if self.cell.child.workdir and now >= self.next_count:
            self.count_files(self.cell.child.workdir)
        return min(_POLL_S, self.deadline - now)

    def count_files(self, workdir: str) -> None:
        started = time.monotonic()
        if exceeds(workdir, WORK_BYTES, WORK_ENTRIES):
            raise WorkFull
        ended = time.monotonic()
        self.next_count = ended + max(_QUOTA_S, (ended - started) / _QUOTA_SHARE)

    def move(self, wait_s: float) -> None:
        """Wait for any pipe, then read what is there and write what goes."""
        writers = {end.child.stdin_fd: end for end in (self.cell, self.judge) if end.outbox}
        for descriptor in writers:
            self.poller.register(descriptor, select.POLLOUT)
        try:
            for descriptor, _ in self.poller.poll(max(1, int(wait_s * 1000))):
                if descriptor in writers:
                    self.write(writers[descriptor])
                else:
                    self.read(descriptor)
        finally:
            for descriptor in writers:
                self.poller.unregister(descriptor)

    def write(self, end: _End) -> None:
        try:
            sent = os.write(end.child.stdin_fd, end.outbox[:_READ_BYTES])
            del end.outbox[:sent]
        except BlockingIOError:
            return
        except BrokenPipeError:
            end.outbox.clear()
            end.closed = True

    def read(self, descriptor: int) -> bool:
        """Read once; whether there may be more."""
        if descriptor not in self.readers:
            return False
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.readers[descriptor](data)
            if self.result.stdout.size + self.result.stderr.size > self.limits.output_bytes:
                raise Overflow
            return True
        self.poller.unregister(descriptor)
        del self.readers[descriptor]
        for end in (self.cell, self.judge):
            if end.child.stdout_fd == descriptor:
                end.closed = True
        return False

    def read_available(self) -> None:
        """Take what is in the pipes now, a bounded amount."""
        for descriptor in list(self.readers):
            rounds = 0
            while rounds < 64 and self.read(descriptor):
                rounds += 1

    def returncode(self) -> int | None:
        """How the cell ended; a dying process closes its pipes before it can be reaped."""
        deadline = time.monotonic() + _DYING_S
        code = self.cell.child.poll()
        while code is None and isinstance(self.result.ended, CellDied):
            if time.monotonic() > deadline:
                break
            time.sleep(_DYING_POLL_S)
            code = self.cell.child.poll()
        return code

    def close(self) -> None:
        """Note what the cell used; keep what it printed before it ended."""
        usage = self.cell.child.usage()
        if usage.wait_s is not None:
            usage = replace(usage, wait_s=max(0.0, usage.wait_s - self.start_wait_s))
        self.result.usage = usage
        self.result.returncode = self.returncode()
        if self.result.ended is not None and not isinstance(self.result.ended, Overflow):
            try:
                self.read_available()
            except Overflow as overflow:
                if not isinstance(self.result.ended, Timeout):
                    self.result.ended = overflow


def _loaded(payload: bytes) -> dict[str, Any] | None:
    """The cell's answer to loading, or None where it is not of the right form."""
    try:
        loaded = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("token"), str):
        return None
    failure, names = loaded.get("failure"), loaded.get("names")
    if not isinstance(failure, dict | None):
        return None
    if not isinstance(names, list) or not all(_texts(pair) and len(pair) == 2 for pair in names):
        return None
    return {
        "token": loaded["token"],
        "failure": None if failure is None else framing.reported(failure),
        "names": names,
        "denied": framing.texts(loaded.get("denied")),
        "tricks": framing.texts(loaded.get("tricks")),
    }


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
