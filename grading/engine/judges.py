"""Judges as runs need them: a fresh process for one run, or copies that a warm one forks.

A warm judge has loaded its code before the run begins, which is half of what it costs to start a
sandbox. It is kept only while everything goes as it should: a copy that did not end by itself,
ended badly or left a file behind takes the warm judge along, and the next run starts another.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from grading.engine import runtime
from grading.engine.child import Child
from grading.engine.isolation import bwrap
from grading.engine.isolation.hardening import Hardening
from grading.engine.isolation.launch import Isolation, launch
from grading.engine.isolation.view import View
from grading.engine.limits import STARTUP_S
from grading.engine.outcome import PlatformError

# A copy that was told to end is gone by the time the next run begins, or something is wrong.
_END_S = 0.2


@dataclass(slots=True)
class Judge:
    """The judge of one run: the host's descriptors of its frames and of what it prints.

    ``greeting`` is what it is to be sent first. ``idle`` is for the run to set where it leaves
    the judge waiting or done, not at work.
    """

    writing: int
    reading: int
    printed: tuple[int, ...]
    process: Child
    greeting: bytes = b""
    idle: bool = False


class Judges:
    """The judges of one sandbox; inside :meth:`warm` they are copies of one process.

    ``python`` is the interpreter with its options, ``env`` what is added to its environment.
    They do not count for the turnstile: a run's cell does, and is started first.
    """

    def __init__(
        self,
        isolation: Isolation,
        view: View,
        hardening: Hardening,
        python: Sequence[str],
        env: Mapping[str, str],
    ) -> None:
        self._isolation = isolation
        self._view = view
        self._hardening = hardening
        self._python = python
        self._env = env
        self._warm: _WarmJudge | None = None

    @contextmanager
    def one(self) -> Iterator[Judge]:
        """A judge for one run. Raises PlatformError."""
        if self._warm and self._warm.mine:
            with self._warm.copy() as judge:
                yield judge
            return
        with self._start(forks=False) as child:
            printed = (child.capture_fd, child.stderr_fd)
            greeting = self._greeting(child, forks=False)
            yield Judge(child.stdin_fd, child.stdout_fd, printed, child, greeting)

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Keep a warm judge, from the first run on and no longer than the block.

        Nothing changes inside another such block, or where nothing would keep a copy from
        starting processes.
        """
        outer = self._warm
        if (outer and outer.mine) or not self._hardening.can_fork:
            yield
            return
        with closing(_WarmJudge(self._start_warm)) as self._warm:
            try:
                yield
            finally:
                self._warm = outer

    def _start_warm(self) -> tuple[Child, bytes]:
        child = self._start(forks=True)
        return child, self._greeting(child, forks=True)

    def _start(self, forks: bool) -> Child:
        return launch(
            self._isolation,
            self._view,
            [*self._python, "-c", runtime.BOOT],
            self._env,
            capture=not forks,
            program=self._hardening.program(self._isolation, allow_processes=forks),
            socket_in=forks,
        )

    def _greeting(self, child: Child, forks: bool) -> bytes:
        isolation, view, home = self._isolation, self._view, child.workdir or bwrap.HOME
        if forks:
            plan = self._hardening.forking_plan(isolation, view, home)
            return runtime.greeting(runtime.WARM_JUDGE, view.version, plan)
        plan = self._hardening.plan(isolation, view, home, allow_processes=False)
        return runtime.greeting(runtime.JUDGE, view.version, plan)


class _WarmJudge:
    """A process of :mod:`grading.engine.warm`, started when a run needs one.

    ``start`` gives the process, whose standard input is a socket, and what it is sent first.
    For the process that made it only: two would mix their orders.
    """

    def __init__(self, start: Callable[[], tuple[Child, bytes]]) -> None:
        self._start = start
        self._owner = os.getpid()
        self._process: Child | None = None
        self._control: socket.socket | None = None
        self._used = False

    @property
    def mine(self) -> bool:
        return os.getpid() == self._owner

    @contextmanager
    def copy(self) -> Iterator[Judge]:
        """A judge for one run. Raises PlatformError."""
        judge = None
        try:
            if not self._is_ready():
                self.close()
                self._launch()
            with _pipes() as (theirs, ours):
                judge = self._fork(theirs, ours)
                yield judge
        finally:
            # Whoever is still at work is not used again, nor what went wrong.
            if judge is None or not judge.idle:
                self.close()

    def close(self) -> None:
        """End the process, if there is one, and all of its copies."""
        if not self.mine:
            return
        if self._control:
            self._control.close()
        if self._process:
            self._process.kill()
        self._control = self._process = None
        self._used = False

    def _is_ready(self) -> bool:
        """Whether there is one that has said of its last copy that it ended well."""
        if not self._control or not self._process or self._process.poll() is not None:
            return False
        if not self._used:
            return True
        self._control.settimeout(_END_S)
        try:
            return self._control.recv(1) == b"E"
        except OSError:
            return False

    def _launch(self) -> None:
        self._process, greeting = self._start()
        try:
            control = os.dup(self._process.stdin_fd)
            self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, control)
            self._control.settimeout(STARTUP_S)
            self._control.sendall(greeting)
        except OSError as problem:
            raise PlatformError(f"the judge did not take its code: {problem}") from problem

    def _fork(self, theirs: list[int], ours: list[int]) -> Judge:
        assert self._control and self._process
        self._used = True
        self._control.settimeout(STARTUP_S)
        try:
            socket.send_fds(self._control, [b"F"], theirs)
        except OSError as problem:
            raise PlatformError(f"the judge takes no orders: {problem}") from problem
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        writing, reading, printed = ours
        return Judge(writing, reading, (printed, self._process.stderr_fd), self._process)


@contextmanager
def _pipes() -> Iterator[tuple[list[int], list[int]]]:
    """Frames to a copy, frames from it, what it prints: its ends, and ours while it runs."""
    try:
        (source, writing), (reading, sink), (printed, printing) = (os.pipe() for _ in range(3))
    except OSError as problem:
        raise PlatformError(f"no pipes for a judge: {problem}") from problem
    ours = [writing, reading, printed]
    try:
        for descriptor in ours:
            os.set_blocking(descriptor, False)
        yield [source, sink, printing], ours
    finally:
        for descriptor in ours:
            os.close(descriptor)
