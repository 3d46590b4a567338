"""One run: a cell and a judge, and the frames between them.

The worker relays what the two say to each other and parses nothing that comes from the cell but
its answer to loading. One side speaks at a time; a cell that speaks out of turn breaks the
protocol. Every wait ends at an absolute deadline of the host.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grading.engine import framing, runtime
from grading.engine.cells import Cell
from grading.engine.judges import Judge
from grading.engine.limits import STARTUP_S, Limits
from grading.engine.outcome import PlatformError
from grading.engine.pipes import End, Frame, Pipes
from grading.engine.run import (
    Captured,
    CellDied,
    Ended,
    JudgeDied,
    Order,
    Overflow,
    Run,
    Timeout,
    Violation,
)
from grading.engine.sandbox import Sandbox
from grading.engine.usage import total_wait_s
from grading.engine.watch import Watch

_NO_ID = b"\0" * 8
_DYING_S = 0.5
_DYING_POLL_S = 0.002


def run(
    order: Order,
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None = None,
    patient: bool = False,
) -> Run:
    """Run one program. ``tick`` is called about once a second while waiting.

    ``patient``: the clock stands still while cell, judge or this process wait for a core.
    Raises PlatformError when cell or judge do not come up, or the judge dies before the cell
    has given a value.
    """
    with (
        sandbox.cell(runtime.CELL, limits.allow_processes, tick) as cell,
        sandbox.judge() as judge,
    ):
        session = _Session(cell, judge, limits, tick)
        session.greet()
        session.await_start()
        if patient:
            session.watch.forgive(session.forgiven_s)
        started = time.monotonic()
        try:
            session.converse(order, sandbox.rlimits(limits))
        except Ended as ended:
            session.result.ended = ended
        session.result.wall_s = time.monotonic() - started - session.watch.granted_s
        session.close()
        return session.result


class _Session:
    def __init__(
        self, cell: Cell, judge: Judge, limits: Limits, tick: Callable[[], None] | None
    ) -> None:
        self.starting = cell
        self.cell_process = process = cell.process
        self.judging = judge
        self.cell = End(process.stdin_fd, process.stdout_fd)
        self.judge = End(judge.writing, judge.reading)
        self.limits = limits
        self.result = Run()
        self.judge_printed = Captured()
        self.answered = False
        self.start_wait_s = 0.0
        self.others_start_wait_s = 0.0
        self.watch = Watch(time.monotonic() + STARTUP_S, tick, process.workdir)
        self.pipes = Pipes(self.cell, self.judge)
        self.pipes.attach(process.capture_fd, self.capture(self.result.stdout))
        self.pipes.attach(process.stderr_fd, self.capture(self.result.stderr))
        for printed in judge.printed:
            self.pipes.attach(printed, self.judge_printed.add)

    def capture(self, stream: Captured) -> Callable[[bytes], None]:
        """Adds to an output stream of the cell; raises Overflow over the cap for both."""

        def add(data: bytes) -> None:
            stream.add(data)
            if self.result.stdout.size + self.result.stderr.size > self.limits.output_bytes:
                raise Overflow

        return add

    # --- the conversation ---------------------------------------------------------------------

    def greet(self) -> None:
        """Their code, and what they are to give up before they get anything else."""
        self.pipes.send(self.cell, self.starting.greeting)
        self.pipes.send(self.judge, self.judging.greeting)

    def await_start(self) -> None:
        """Both are up, before either gets a byte that is not ours; PlatformError if not."""
        said_by = {"cell": self.result.stderr, "judge": self.judge_printed}
        for name, end in (("cell", self.cell), ("judge", self.judge)):
            try:
                kind = self.receive(end)[0]
            except Ended as ended:
                how = type(ended).__name__.lower()
                said = said_by[name].text()
                raise PlatformError(f"the {name} did not start ({how}): {said}") from ended
            if kind != b"U":
                raise PlatformError(f"the {name} said {kind!r} instead of starting")
        # Waiting for a core while starting is not the program's.
        self.start_wait_s = self.cell_process.usage().wait_s or 0.0
        self.others_start_wait_s = self.others_wait_s()
        self.watch.deadline = time.monotonic() + self.limits.timeout_s

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
        self.pipes.read_available()

    def load(self, order: Order, rlimits: list[tuple[int, int]]) -> bool:
        """Give the program to the cell; whether it loaded."""
        token = os.urandom(16).hex()
        request = {
            "code": order.code,
            "token": token,
            "limits": self.starting.limit(rlimits),
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
        self.pipes.read_available()
        return loaded["failure"] is None

    def relay(self) -> None:
        """Carry requests and replies until the judge has reported every target."""
        pending: list[bytes] = []
        reported = time.monotonic()
        while True:
            kind, _, payload = self.receive(self.judge)
            if kind == b"E":
                self.judging.idle = True
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
        self.pipes.read_available()
        if self.cell.inbox:
            raise Violation("a frame before it was asked for")

    # --- frames -------------------------------------------------------------------------------

    def send(self, end: End, kind: bytes, ident: bytes, payload: bytes) -> None:
        self.pipes.send(end, framing.pack(kind, ident, payload))

    def receive(self, end: End) -> Frame:
        """The next frame of ``end``; raises an Ended."""
        self.judging.idle = end is self.cell
        while True:
            frame = end.frame()
            if frame is not None:
                return frame
            if end.closed:
                self.give_up(end)
            elif not self.pipes.wait(self.watch.wait_s()) and self.has_ended(end):
                end.closed = True

    def has_ended(self, end: End) -> bool:
        """Asked in silence only: what ends closes its pipes, unless another holds them open."""
        process = self.cell_process if end is self.cell else self.judging.process
        return process.poll() is not None

    def give_up(self, end: End) -> None:
        """Raise what it means that ``end`` is closed, unless a last frame waits in its pipe."""
        self.pipes.read_available()
        if len(end.inbox) >= framing.HEADER:
            _, _, size = framing.unpack_header(bytes(end.inbox[: framing.HEADER]))
            if len(end.inbox) >= framing.HEADER + size:
                return
        if end is self.cell:
            raise CellDied
        if self.answered:
            raise JudgeDied
        raise PlatformError(f"the judge ended before it began: {self.judge_printed.text()}")

    # --- waiting for a core -------------------------------------------------------------------

    def others_wait_s(self) -> float:
        """What judge and host waited: the three take turns, so it adds to what the cell did."""
        waited = total_wait_s(os.getpid(), *self.judging.process.pids())
        return waited - self.others_start_wait_s

    def forgiven_s(self) -> float:
        """Seconds that do not count against the limit; none once the cell had cores for that."""
        usage = self.cell_process.usage()
        if usage.wait_s is None or usage.cpu_s >= self.limits.timeout_s:
            return 0.0
        return usage.wait_s - self.start_wait_s + self.others_wait_s()

    # --- the end ------------------------------------------------------------------------------

    def returncode(self) -> int | None:
        """How the cell ended; a dying process closes its pipes before it can be reaped."""
        deadline = time.monotonic() + _DYING_S
        code = self.cell_process.poll()
        while code is None and isinstance(self.result.ended, CellDied):
            if time.monotonic() > deadline:
                break
            time.sleep(_DYING_POLL_S)
            code = self.cell_process.poll()
        return code

    def close(self) -> None:
        """Note what the cell used; keep what it printed before it ended."""
        usage = self.cell_process.usage()
        if usage.wait_s is not None:
            waited = usage.wait_s - self.start_wait_s
            if isinstance(self.result.ended, Timeout):
                waited += self.others_wait_s() - self.watch.granted_s
            usage = replace(usage, wait_s=max(0.0, waited))
        self.result.usage = usage
        self.result.returncode = self.returncode()
        if self.result.ended is not None and not isinstance(self.result.ended, Overflow):
            try:
                self.pipes.read_available()
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
