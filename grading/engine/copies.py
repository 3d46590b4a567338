"""The host's side of :mod:`grading.engine.warm`: a process in a sandbox, and its copies.

Starting a sandbox costs as much as all the rest of a run, so one serves the runs of a batch, one
after another. It is kept only while everything goes as it should: a copy that did not end by
itself or left something behind takes the process along, and the next run starts another.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from grading.engine.child import Child
from grading.engine.limits import STARTUP_S
from grading.engine.outcome import PlatformError

# A copy that was told to end is gone by then, or something is wrong.
END_S = 0.2
_PIPE_BYTES = 256 * 1024
_ENDING = struct.Struct(">cIQQ?")
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Ending:
    """``returncode`` negative is the signal; ``clean``: the sandbox is as it was before."""

    returncode: int
    cpu_s: float
    peak_bytes: int
    clean: bool


class WarmProcess:
    """One such process, started when a copy is wanted.

    ``start`` gives the process, whose standard input is a socket, and what it is sent first.
    ``faultless``: a copy that did not exit with 0 takes it along, too. For the process that made
    it only: two would mix their orders.
    """

    def __init__(
        self, name: str, start: Callable[[], tuple[Child, bytes]], faultless: bool = False
    ) -> None:
        self._name = name
        self._faultless = faultless
        self._start = start
        self._owner = os.getpid()
        self._process: Child | None = None
        self._control: socket.socket | None = None
        self._copy: Copy | None = None

    @property
    def mine(self) -> bool:
        return os.getpid() == self._owner

    @property
    def child(self) -> Child:
        """The process itself; there has to have been a copy."""
        assert self._process
        return self._process

    def fork(self, theirs: Sequence[int]) -> Copy:
        """A copy that gets the descriptors ``theirs``, closed here. Raises PlatformError."""
        try:
            if self._is_ready():
                # One that was killed meanwhile is found out by this only.
                with suppress(PlatformError):
                    return self._ask(theirs)
            self.close()
            self._launch()
            return self._ask(theirs)
        finally:
            _close(theirs)

    def _ask(self, theirs: Sequence[int]) -> Copy:
        assert self._control
        self._control.settimeout(STARTUP_S)
        try:
            socket.send_fds(self._control, [b"F"], list(theirs))
            self._copy = Copy(self._name, self._control)
        except OSError as problem:
            raise PlatformError(f"the {self._name} takes no orders: {problem}") from problem
        return self._copy

    def close(self) -> None:
        """End the process, if there is one, and all of its copies."""
        if not self.mine:
            return
        if self._control:
            self._control.close()
        if self._process:
            self._process.kill()
        self._control = self._process = self._copy = None

    def _is_ready(self) -> bool:
        """Whether there is one whose last copy has ended and left nothing."""
        # Without a copy it never answered: what it says next would be about an older order.
        if not self._process or not self._copy or self._process.poll() is not None:
            return False
        try:
            ending = self._copy.ending(END_S)
        except PlatformError:
            return False
        if ending is None or not ending.clean:
            return False
        return not (self._faultless and ending.returncode)

    def _launch(self) -> None:
        self._process, greeting = self._start()
        try:
            control = os.dup(self._process.stdin_fd)
            self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, control)
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._control.settimeout(STARTUP_S)
            self._control.sendall(greeting)
        except OSError as problem:
            raise PlatformError(f"the {self._name} did not take its code: {problem}") from problem


class Copy:
    """One copy, as far as its socket tells; ``pid`` is its process id on the host.

    Raises OSError if there is none, PlatformError where the warm process has ended.
    """

    def __init__(self, name: str, control: socket.socket) -> None:
        self._name = name
        self._control = control
        self._ending: Ending | None = None
        said, credentials, _, _ = control.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        if said != b"B" or not credentials:
            raise PlatformError(f"the {name} has ended")
        self.pid: int = _CREDENTIALS.unpack(credentials[0][2])[0]

    def pids(self) -> list[int]:
        return [self.pid]

    def poll(self) -> int | None:
        """None while it runs, else its exit status; negative is the signal that ended it."""
        ending = self.ending(0)
        return None if ending is None else ending.returncode

    def ending(self, seconds: float) -> Ending | None:
        """How it ended, None if it has not within ``seconds``."""
        if self._ending is None:
            try:
                self._control.settimeout(seconds)
                self._ending = self._read(self._control.recv(_ENDING.size))
            except (BlockingIOError, TimeoutError):
                return None
            except OSError as problem:
                raise PlatformError(f"the {self._name} has ended: {problem}") from problem
        return self._ending

    def _read(self, data: bytes) -> Ending:
        if len(data) != _ENDING.size:
            raise PlatformError(f"the {self._name} has ended")
        _, status, microseconds, peak, clean = _ENDING.unpack(data)
        code = os.waitstatus_to_exitcode(status)
        return Ending(code, microseconds / 1e6, peak * 1024, clean)


@contextmanager
def pipes(directions: str) -> Iterator[tuple[list[int], list[int]]]:
    """(a copy's ends, the host's ends) of pipes; ``r`` in ``directions``: the copy reads.

    The host's are non-blocking and closed with the block, the copy's by :meth:`WarmProcess.fork`.
    Raises PlatformError.
    """
    theirs: list[int] = []
    ours: list[int] = []
    try:
        for direction in directions:
            reading, writing = os.pipe()
            theirs.append(reading if direction == "r" else writing)
            ours.append(writing if direction == "r" else reading)
            os.set_blocking(ours[-1], False)
            if direction == "r":
                _widen(writing)
    except OSError as problem:
        _close(theirs + ours)
        raise PlatformError(f"no pipes for a run: {problem}") from problem
    try:
        yield theirs, ours
    finally:
        _close(ours)


def _widen(pipe: int) -> None:
    """Make room for all the code at once, where the user's share of pipe memory allows that."""
    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
