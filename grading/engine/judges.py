"""Judges as runs need them: a fresh process for one run, or copies that a warm one forks.

A warm judge has loaded its code before the run begins, which is half of what it costs to start a
sandbox (:mod:`grading.engine.copies`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from grading.engine import runtime
from grading.engine.child import Child
from grading.engine.copies import Copy, WarmProcess, pipes
from grading.engine.isolation import bwrap
from grading.engine.isolation.hardening import Hardening
from grading.engine.isolation.launch import Isolation, launch
from grading.engine.isolation.view import View


@dataclass(slots=True)
class Judge:
    """The judge of one run: the host's descriptors of its frames and of what it prints.

    ``greeting`` is what it is to be sent first. ``idle`` is for the run to set where it leaves
    the judge waiting or done, not at work.
    """

    writing: int
    reading: int
    printed: tuple[int, ...]
    process: Child | Copy
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
        self._warm: WarmProcess | None = None

    @contextmanager
    def one(self) -> Iterator[Judge]:
        """A judge for one run. Raises PlatformError."""
        if self._warm and self._warm.mine:
            with _copied(self._warm) as judge:
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
        with closing(WarmProcess("judge", self._start_warm, faultless=True)) as self._warm:
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


@contextmanager
def _copied(warm: WarmProcess) -> Iterator[Judge]:
    judge = None
    try:
        # Frames in, frames out, what it prints.
        with pipes("rww") as (theirs, ours):
            copy = warm.fork(theirs)
            writing, reading, printed = ours
            said = (printed, warm.child.stderr_fd)
            judge = Judge(writing, reading, said, copy)
            yield judge
    finally:
        # Whoever is still at work is not used again, nor what went wrong.
        if judge is None or not judge.idle:
            warm.close()
