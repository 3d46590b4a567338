"""Reading a child's output while it runs, with one cap and one deadline."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from enum import StrEnum

from grading.engine.child import Child
from grading.engine.limits import OUTPUT_BYTES

_READ_BYTES = 65536
_LOOK_S = 0.05
_EXIT_LOOK_S = 0.001


class Ended(StrEnum):
    EXIT = "exit"
    TIMEOUT = "timeout"
    OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class Drained:
    """How a child ended and what it wrote; ``returncode`` None unless it exited by itself."""

    ended: Ended
    returncode: int | None
    stdout: bytes
    stderr: bytes


def drain(child: Child, timeout_s: float, cap: int = OUTPUT_BYTES) -> Drained:
    """Close the child's stdin and read both streams until it exits.

    Stops at ``timeout_s`` seconds from now or as soon as both streams together pass ``cap``
    bytes. The child is not killed here. A daemon holding a stream open delays nothing.
    """
    child.close_stdin()
    deadline = time.monotonic() + timeout_s
    output = {child.stdout_fd: bytearray(), child.stderr_fd: bytearray()}
    opened = set(output)
    ended = Ended.EXIT
    while (code := child.poll()) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            ended = Ended.TIMEOUT
            break
        _wait(opened, min(left, _LOOK_S if opened else _EXIT_LOOK_S))
        _read_all(opened, output, cap)
        if sum(map(len, output.values())) > cap:
            ended = Ended.OVERFLOW
            break
    if ended is Ended.EXIT:
        _read_all(opened, output, cap)
        if sum(map(len, output.values())) > cap:
            ended = Ended.OVERFLOW
    return Drained(ended, code, bytes(output[child.stdout_fd]), bytes(output[child.stderr_fd]))


def _wait(fds: set[int], seconds: float) -> None:
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    poller.poll(seconds * 1000)


def _read_all(opened: set[int], output: dict[int, bytearray], cap: int) -> None:
    """Read what is there; a stream at its end leaves ``opened``."""
    for fd in sorted(opened):
        while sum(map(len, output.values())) <= cap:
            try:
                data = os.read(fd, _READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                opened.discard(fd)
                break
            output[fd] += data
