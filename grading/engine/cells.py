"""Cells as runs need them: a sandbox for one run, or fresh interpreters in one kept for a batch.

In the kept one a trusted process forks itself for each run; the copy confines itself and becomes
an interpreter that was never used. Programs come one after another and cannot start processes, so
nobody but their parent is in reach, which their system call filter keeps from signals and whose
memory is closed. A program that left a file behind, or did not end, was the last one there.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from grading.engine import runtime
from grading.engine.child import Child
from grading.engine.copies import END_S, Copy, WarmProcess, pipes
from grading.engine.isolation import bwrap
from grading.engine.isolation.hardening import Hardening
from grading.engine.isolation.launch import Isolation, environment, launch
from grading.engine.isolation.view import View
from grading.engine.locking import Tick
from grading.engine.outcome import PlatformError
from grading.engine.turnstile import Turnstile
from grading.engine.usage import Usage, usage_of

_CAPTURE = {"EVALSITE_CAPTURE_FD": "3"}

Rlimits = Sequence[tuple[int, int]]


class Process(Protocol):
    """The process of a cell, with the host's ends of its pipes."""

    stdin_fd: int
    stdout_fd: int
    stderr_fd: int
    capture_fd: int
    workdir: str | None

    def poll(self) -> int | None:
        """None while it runs, else its exit status; negative is the signal that ended it."""

    def usage(self) -> Usage:
        """What it has used so far."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell of one run. ``greeting`` is what it is to be sent first.

    ``limit`` takes the resource limits and gives those that the cell has to set by itself.
    """

    process: Process
    greeting: bytes
    limit: Callable[[Rlimits], Rlimits]


class Cells:
    """The cells of one sandbox; inside :meth:`warm` they share one where that is as strong.

    ``python`` is the interpreter with its options, ``env`` what is added to its environment.
    """

    def __init__(
        self,
        isolation: Isolation,
        view: View,
        hardening: Hardening,
        python: Sequence[str],
        env: Mapping[str, str],
        turnstile: Turnstile,
    ) -> None:
        self._isolation = isolation
        self._view = view
        self._hardening = hardening
        self._python = python
        self._env = dict(env)
        self._turnstile = turnstile
        self._warm: WarmProcess | None = None

    @contextmanager
    def one(
        self, modules: tuple[str, ...], allow_processes: bool, tick: Tick | None
    ) -> Iterator[Cell]:
        """A cell for one run, which is sent ``modules``.

        Waits while another run of this host wants to be alone; ``tick`` is called about once a
        second meanwhile. Raises PlatformError.
        """
        leave = self._turnstile.enter(tick)
        try:
            if self._warm and self._warm.mine and not allow_processes:
                with self._copied(self._warm, modules) as cell:
                    yield cell
            else:
                with self._fresh(modules, allow_processes) as cell:
                    yield cell
        finally:
            leave()

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Keep one sandbox for the runs of the block; no change where that would be weaker.

        It takes a file system and process numbers of the sandbox's own, and a filter that keeps
        programs from starting processes.
        """
        outer = self._warm
        kept = outer is not None and outer.mine
        if kept or not (self._isolation.own_files and self._hardening.can_fork):
            yield
            return
        with closing(WarmProcess("cell's parent", self._start_warm)) as self._warm:
            try:
                yield
            finally:
                self._warm = outer

    # --- a sandbox of its own -----------------------------------------------------------------

    @contextmanager
    def _fresh(self, modules: tuple[str, ...], allow_processes: bool) -> Iterator[Cell]:
        with self._launch(allow_processes) as child:
            home = child.workdir or bwrap.HOME
            plan = self._hardening.plan(self._isolation, self._view, home, allow_processes)
            yield Cell(child, self._greeting(modules, plan), lambda limits: limits)

    def _launch(self, allow_processes: bool, socket_in: bool = False) -> Child:
        return launch(
            self._isolation,
            self._view,
            self._command(),
            self._env,
            capture=not socket_in,
            program=self._hardening.program(self._isolation, allow_processes),
            socket_in=socket_in,
        )

    def _command(self) -> list[str]:
        return [*self._python, "-c", runtime.BOOT]

    def _greeting(self, modules: tuple[str, ...], plan: dict[str, Any]) -> bytes:
        return runtime.greeting(modules, self._view.version, plan)

    # --- a fresh interpreter in the one kept ----------------------------------------------------

    @contextmanager
    def _copied(self, warm: WarmProcess, modules: tuple[str, ...]) -> Iterator[Cell]:
        process = None
        try:
            # Frames in, frames out, standard error, captured output.
            with pipes("rwww") as (theirs, ours):
                process = _Copied(warm.fork(theirs), ours)
                yield Cell(process, self._greeting(modules, {}), process.limit)
        finally:
            # With its pipes closed an honest cell ends, if it has not before.
            if process is None or not process.has_ended():
                warm.close()

    def _start_warm(self) -> tuple[Child, bytes]:
        isolation, view = self._isolation, self._view
        child = self._launch(allow_processes=True, socket_in=True)
        env = environment(view.python, bwrap.HOME, bwrap.TMPDIR, view.workdir or bwrap.HOME)
        plans = {
            **self._hardening.forking_plan(isolation, view, bwrap.HOME),
            "start": [self._command(), env | self._env | _CAPTURE],
        }
        return child, self._greeting(runtime.WARM_CELL, plans)


class _Copied:
    """A cell's process in the sandbox that is kept. It has no others below it."""

    workdir: str | None = None

    def __init__(self, copy: Copy, ours: Sequence[int]) -> None:
        self.stdin_fd, self.stdout_fd, self.stderr_fd, self.capture_fd = ours
        self._copy = copy
        self._usage = Usage()

    def poll(self) -> int | None:
        """Raises PlatformError where the sandbox is gone."""
        return self._copy.poll()

    def has_ended(self) -> bool:
        """Whether it does so in good time."""
        try:
            return self._copy.ending(END_S) is not None
        except PlatformError:
            return False

    def usage(self) -> Usage:
        ending = self._copy.ending(0)
        if ending is None:
            self._usage = usage_of(self._copy.pid)
            return self._usage
        peak = max(self._usage.peak_bytes, ending.peak_bytes)
        return Usage(ending.cpu_s, self._usage.wait_s, peak)

    def limit(self, limits: Rlimits) -> Rlimits:
        """Set them from outside, which spares the interpreter a module. Raises PlatformError."""
        pid = self._copy.pid
        try:
            for which, value in limits:
                hard = resource.prlimit(pid, which)[1]
                least = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.prlimit(pid, which, (least, least))
        except OSError as problem:
            raise PlatformError(f"cannot limit a cell: {problem}") from problem
        return ()
