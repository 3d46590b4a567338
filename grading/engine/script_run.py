"""One run of a program that reads standard input: a process, its input, what it printed.

The process speaks a frame when it is up and one when its input is in place; what goes wrong until
then is the platform's failure. It speaks another when the program's text has been executed; what
that one says is for the reader of a failure. Whether the program ended well is told by the
kernel: it ended by itself, with status 0. Only what it printed until then counts; processes that
it left behind are killed.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from grading.engine import framing, runtime
from grading.engine.cells import Process, Rlimits
from grading.engine.limits import STARTUP_S, Limits
from grading.engine.outcome import PlatformError
from grading.engine.pipes import End, Frame, Pipes
from grading.engine.run import Captured, Ended, Overflow, Timeout, Violation
from grading.engine.sandbox import Sandbox
from grading.engine.usage import Usage
from grading.engine.watch import Watch

_NO_ID = b"\0" * 8
# How often to look whether a process that closed its pipes has ended.
_CLOSED_LOOK_S = 0.002


@dataclass(slots=True)
class ScriptRun:
    """What was seen of one run. ``ended`` None: the process ended by itself, with ``returncode``.

    ``failure`` is what the process said of an exception that the program let through, of the
    form that ``framing.reported`` gives. ``output`` is all of standard output.
    """

    ended: Ended | None = None
    returncode: int | None = None
    failure: dict[str, Any] | None = None
    denied: list[str] = field(default_factory=list)
    tricks: list[str] = field(default_factory=list)
    output: bytearray = field(default_factory=bytearray)
    stderr: Captured = field(default_factory=Captured)
    wall_s: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def stdout(self) -> Captured:
        captured = Captured()
        captured.add(bytes(self.output))
        return captured


def run(
    code: str,
    given: str,
    denied: tuple[str, ...],
    sandbox: Sandbox,
    limits: Limits,
    tick: Callable[[], None] | None = None,
    patient: bool = False,
) -> ScriptRun:
    """Run ``code`` with the text ``given`` on standard input.

    ``tick`` is called about once a second while waiting. Raises PlatformError when the process
    does not come up, or cannot take the input. ``patient``: the clock stands still while the
    process waits for a core.
    """
    with sandbox.cell(runtime.SCRIPT, limits.allow_processes, tick) as cell:
        session = _Session(cell.process, limits, tick)
        session.pipes.send(session.end, cell.greeting)
        session.await_frame(b"U")
        session.give(code, given, denied, cell.limit(sandbox.rlimits(limits)))
        session.await_frame(b"R")
        session.start_clock()
        if patient:
            session.watch.forgive(session.forgiven_s)
        started = time.monotonic()
        try:
            session.await_end()
        except Ended as ended:
            session.result.ended = ended
        session.result.wall_s = time.monotonic() - started - session.watch.granted_s
        session.close()
        return session.result


class _Session:
    def __init__(self, child: Process, limits: Limits, tick: Callable[[], None] | None) -> None:
        self.child = child
        self.limits = limits
        self.result = ScriptRun()
        self.reported = False
        self.start_wait_s = 0.0
        self.watch = Watch(time.monotonic() + STARTUP_S, tick, child.workdir)
        self.end = End(child.stdin_fd, child.stdout_fd)
        self.pipes = Pipes(self.end)
        self.pipes.attach(child.capture_fd, self.take(self.result.output.extend))
        self.pipes.attach(child.stderr_fd, self.take(self.result.stderr.add))

    def take(self, keep: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def reader(data: bytes) -> None:
            keep(data)
            if len(self.result.output) + self.result.stderr.size > self.limits.output_bytes:
                raise Overflow

        return reader

    def send(self, kind: bytes, payload: bytes) -> None:
        self.pipes.send(self.end, framing.pack(kind, _NO_ID, payload))

    def await_frame(self, kind: bytes) -> None:
        """One of the frames before the program runs; PlatformError for anything else."""
        try:
            while (frame := self.end.frame()) is None and not self.end.closed:
                self.pipes.wait(self.watch.wait_s())
        except Ended as ended:
            raise self.not_started(type(ended).__name__.lower()) from ended
        if frame is None or frame[0] != kind:
            raise self.not_started("ended")

    def start_clock(self) -> None:
        # Waiting for a core while starting is not the program's.
        self.start_wait_s = self.child.usage().wait_s or 0.0
        self.watch.deadline = time.monotonic() + self.limits.timeout_s
        self.send(b"G", b"")

    def not_started(self, why: str) -> PlatformError:
        return PlatformError(f"the cell did not start ({why}): {self.result.stderr.text()}")

    def give(self, code: str, given: str, denied: tuple[str, ...], rlimits: Rlimits) -> None:
        order = {
            "code": code,
            "limits": rlimits,
            "denied": denied,
            "allow_processes": self.limits.allow_processes,
        }
        self.send(b"L", json.dumps(order).encode())
        self.send(b"I", given.encode("utf-8", "surrogatepass"))

    def await_end(self) -> None:
        """Read until the process has ended by itself; raises an Ended."""
        while self.child.poll() is None:
            wait_s = self.watch.wait_s()
            self.pipes.wait(min(wait_s, _CLOSED_LOOK_S) if self.end.closed else wait_s)
            self.read_report()
        # Ends what it left behind, so that what is in the pipes now is all there will be.
        self.child.usage()
        self.pipes.read_available()
        self.read_report()
        if self.end.inbox:
            raise Violation("a part of a frame")

    def read_report(self) -> None:
        frame = self.end.frame()
        if frame is None:
            return
        told = None if self.reported else _told(frame)
        if told is None:
            raise Violation("a frame that is not the cell's")
        self.reported = True
        self.result.failure, self.result.denied, self.result.tricks = told
        self.note_usage()
        self.send(b"G", b"")

    def note_usage(self) -> None:
        usage = self.child.usage()
        if usage.wait_s is not None:
            waited = usage.wait_s - self.start_wait_s - self.watch.granted_s
            usage = replace(usage, wait_s=max(0.0, waited))
        self.result.usage = usage

    def forgiven_s(self) -> float:
        """Seconds that do not count against the limit; none once it had cores for that."""
        usage = self.child.usage()
        if usage.wait_s is None or usage.cpu_s >= self.limits.timeout_s:
            return 0.0
        return usage.wait_s - self.start_wait_s

    def close(self) -> None:
        """Note what the process used, how it ended, and what it printed before."""
        self.note_usage()
        self.result.returncode = self.child.poll()
        if isinstance(self.result.ended, Timeout):
            with contextlib.suppress(Overflow):
                self.pipes.read_available()


def _told(frame: Frame) -> tuple[dict[str, Any] | None, list[str], list[str]] | None:
    """(failure, denied, tricks) of the process's report, None where it is not of the right form."""
    kind, _, payload = frame
    try:
        told = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if kind != b"X" or not isinstance(told, dict):
        return None
    failure = told.get("failure")
    if not isinstance(failure, dict | None):
        return None
    return (
        None if failure is None else framing.reported(failure),
        framing.texts(told.get("denied")),
        framing.texts(told.get("tricks")),
    )
