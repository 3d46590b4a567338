"""Child processes of one instance: started in order, watched, respawned, stopped in reverse.

All children belong to one thread of the supervisor, because the kernel ties "die with your
parent" to the thread that forked. Each child has a session of its own, so Ctrl-C reaches the
supervisor alone and the stop stays ordered. No Django here.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from evalsite import spawn

DEATHS_ALLOWED = 4
DEATH_WINDOW_S = 60.0
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
TICK_S = 0.1
LINE_BYTES = 8192

Log = Callable[[str, str], None]


class StartFailed(Exception):
    """The instance did not come up; the text says which part and why."""


@dataclass(frozen=True, slots=True)
class Program:
    """One child: how to start it, when it counts as ready, how it is stopped.

    ``ready`` is asked until it says yes, for at most ``ready_s`` seconds. ``grace_s`` is the
    time between SIGTERM and SIGKILL. ``vital``: the instance gives up when it keeps dying.
    ``started`` is told the process id of every start. ``parent_signal`` is what the child gets
    when the supervisor itself is killed.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    ready: Callable[[], bool] | None = None
    ready_s: float = 30.0
    started: Callable[[int], None] | None = None
    grace_s: float = 5.0
    vital: bool = False
    parent_signal: int = signal.SIGKILL


class _Child:
    """A program's current process, its unfinished log line and its recent deaths."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.partial = b""
        self.deaths: deque[float] = deque()
        self.due = 0.0

    def start(self) -> None:
        process = subprocess.Popen(
            spawn.wrapped(self.program.argv, self.program.parent_signal),
            bufsize=0,
            env={**os.environ, **self.program.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        # A child that died at once has closed its end; the next look finds that.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(self.program.stdin)
        process.stdin.close()
        os.set_blocking(process.stdout.fileno(), False)
        self.process = process
        if self.program.started is not None:
            self.program.started(process.pid)

    @property
    def output(self) -> IO[bytes]:
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout

    def lines(self) -> tuple[list[str], bool]:
        """Complete log lines written since the last call, and whether more may come."""
        data: bytes | None = b""
        while data := self.output.read(65536):
            self.partial += data
        *whole, self.partial = self.partial.split(b"\n")
        if len(self.partial) > LINE_BYTES or data == b"":
            whole, self.partial = [*whole, self.partial], b""
        shown = [line[:LINE_BYTES].decode("utf-8", "replace").rstrip() for line in whole]
        return [line for line in shown if line], data is None

    def died(self, now: float) -> int:
        """Note a death; returns how many there were within the window."""
        self.deaths.append(now)
        while self.deaths[0] < now - DEATH_WINDOW_S:
            self.deaths.popleft()
        count = len(self.deaths)
        self.due = now + min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** (count - 1))
        return count


class Supervisor:
    """Runs ``stages`` of programs: a stage starts when all programs of the one before are ready.

    ``log(name, line)`` gets every line the children write, and the supervisor's own under the
    name ``evalsite``.
    """

    def __init__(self, stages: Sequence[Sequence[Program]], log: Log) -> None:
        self._stages = [[_Child(program) for program in stage] for stage in stages]
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._running: list[_Child] = []
        self._stopping = threading.Event()
        self._up = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self.failure = ""

    def start(self) -> None:
        """Start everything and wait until it is ready.

        Raises `StartFailed` when a vital program keeps dying or does not get ready in time;
        everything is stopped then.
        """
        self._thread.start()
        while not self._up.wait(TICK_S) and not self._ended.is_set():
            pass
        if self.failure:
            self._thread.join()
            raise StartFailed(self.failure)

    def check(self) -> None:
        """Raises `StartFailed` when the instance has given up."""
        if self._ended.is_set():
            raise StartFailed(self.failure)

    def serve(self) -> None:
        """Wait for ever, or until the instance gives up: raises `StartFailed` then."""
        self._ended.wait()
        self.check()

    def stop(self) -> None:
        """Stop everything in reverse order and wait for it. Safe to call twice."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def pids(self) -> dict[str, int]:
        """Process ids of the running programs by name."""
        return {
            child.program.name: child.process.pid
            for child in list(self._running)
            if child.process is not None
        }

    def _run(self) -> None:
        try:
            for stage in self._stages:
                self._start_stage(stage)
            self._up.set()
            while not self._stopping.is_set():
                self._look()
        except StartFailed as problem:
            self.failure = str(problem)
            self._log("evalsite", self.failure)
        finally:
            for stage in reversed(self._stages):
                self._stop_stage(stage)
            self._ended.set()

    def _start_stage(self, stage: Sequence[_Child]) -> None:
        for child in stage:
            if self._stopping.is_set():
                return
            self._start(child)
            self._running.append(child)
        for child in stage:
            self._await_ready(child.program)

    def _start(self, child: _Child) -> None:
        child.start()
        assert child.process is not None and child.process.stdout is not None
        self._selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def _await_ready(self, program: Program) -> None:
        deadline = time.monotonic() + program.ready_s
        while program.ready is not None and not self._stopping.is_set():
            if program.ready():
                return
            if time.monotonic() > deadline:
                raise StartFailed(f"{program.name} was not ready after {program.ready_s:g} s")
            self._look()

    def _look(self) -> None:
        """Forward log lines, then respawn what has died; takes at most one tick."""
        for key, _ in self._selector.select(TICK_S):
            self._forward(key.data)
        now = time.monotonic()
        for child in self._running:
            if child.process is not None and child.process.poll() is not None:
                self._bury(child, now)
            elif child.process is None and now >= child.due:
                self._start(child)

    def _forward(self, child: _Child) -> None:
        lines, more = child.lines()
        for line in lines:
            self._log(child.program.name, line)
        if not more and child.output in self._selector.get_map():
            self._selector.unregister(child.output)

    def _bury(self, child: _Child, now: float) -> None:
        code = self._close(child)
        deaths = child.died(now)
        name = child.program.name
        if child.program.vital and deaths > DEATHS_ALLOWED:
            raise StartFailed(f"{name} died {deaths} times within a minute; giving up")
        self._log("evalsite", f"{name} {_ending(code)}; starting it again")

    def _close(self, child: _Child) -> int:
        """Read what is left of an ended process; returns its exit code."""
        assert child.process is not None
        self._forward(child)
        if child.output in self._selector.get_map():
            self._selector.unregister(child.output)
        child.output.close()
        code = child.process.wait()
        child.process = None
        return code

    def _stop_stage(self, stage: Sequence[_Child]) -> None:
        alive = [child for child in stage if child.process is not None]
        for child in alive:
            _send(child, signal.SIGTERM)
        deadline = {child: time.monotonic() + child.program.grace_s for child in alive}
        while alive:
            for key, _ in self._selector.select(TICK_S / 2):
                self._forward(key.data)
            for child in [*alive]:
                if child.process is not None and child.process.poll() is not None:
                    self._close(child)
                    alive.remove(child)
                elif time.monotonic() > deadline[child]:
                    _send(child, signal.SIGKILL)


def _send(child: _Child, signal_number: int) -> None:
    if child.process is not None:
        child.process.send_signal(signal_number)


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"exited with code {code}"
