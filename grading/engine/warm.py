"""The warm judge: it has loaded all that a judge needs and forks a copy of itself for each run.

It reads nothing but its host's orders; a copy gives up what it still may do before it reads a
task. On descriptor 0, a socket, come one frame with the plans, then for each run the byte ``F``
with three descriptors: frames in, frames out, what is printed. ``E`` answers that the copy ended
as it should and left nothing behind; whatever else happens ends the warm judge.

Runs inside the sandbox; written for Python 3.8.
"""

from __future__ import annotations

import _socket
import gc
import posix
import resource  # noqa: F401  # what every copy would have to load

from grading.engine import confine, framing, inside, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DESCRIPTORS = 3
_DESCRIPTOR_BYTES = 4


def main() -> None:
    plans = framing.loads(framing.read_frame(0)[2])
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, inside.private(0))
    inside.move(posix.open("/dev/null", posix.O_RDONLY), 0)
    kernel = confine.Kernel()
    kernel.apply(plans["own"])
    inside.prepare_interpreter()
    gc.collect()
    # What is there now need never be looked at again, so copies share its memory.
    gc.freeze()
    while True:
        descriptors = received(control)
        if posix.fork() == 0:
            control.close()
            kernel.apply(plans["copy"])
            become_judge(*descriptors)
        for descriptor in descriptors:
            posix.close(descriptor)
        _, status = posix.wait()
        if status or any(map(posix.listdir, plans["written"])):
            posix._exit(0)
        control.send(b"E")


def received(control: Any) -> list[int]:
    """The descriptors of the next run; ends this process where there is none to come."""
    room = _socket.CMSG_SPACE(_DESCRIPTORS * _DESCRIPTOR_BYTES)
    order, passed, _, _ = control.recvmsg(1, room, _socket.MSG_CMSG_CLOEXEC)
    if order != b"F" or not passed:
        posix._exit(0)
    numbers = memoryview(passed[0][2]).cast("i")
    return list(numbers)


def become_judge(source: int, sink: int, printed: int) -> None:
    frames = inside.private(source), inside.private(sink)
    posix.dup2(printed, 1)
    posix.dup2(printed, 2)
    for descriptor in (source, sink, printed):
        posix.close(descriptor)
    judge.serve(*frames)
