"""A warm process: it is confined, has loaded what a run needs and forks a copy for each run.

It reads nothing but its host's orders. On descriptor 0, a socket, come one frame with the plans,
then for each run the byte ``F`` with descriptors for the copy. The copy says ``B`` before it does
anything, so that the host learns its process id from the kernel; of its end the warm process says
``E`` and what :func:`ending` packs. Where a copy left something behind, it ends itself after that.

Runs inside the sandbox; written for Python 3.8.
"""

from __future__ import annotations

import _socket
import gc
import posix
import resource  # noqa: F401  # what wait4 and every copy would have to load

from grading.engine import confine, framing, inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DESCRIPTOR_BYTES = 4


def serve(become: Callable[[list[int], dict[str, Any]], None], count: int) -> None:
    """Fork copies until the host closes the socket.

    A copy, which has carried out its plan by then, calls ``become`` with its ``count`` descriptors
    and the plans, and does not come back.
    """
    plans = framing.loads(framing.read_frame(0)[2])
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, inside.private(0))
    inside.move(posix.open("/dev/null", posix.O_RDONLY), 0)
    kernel = confine.Kernel()
    copy = kernel.prepare(plans["copy"])
    kernel.apply(plans["own"])
    gc.collect()
    # What is there now need never be looked at again, so copies share its memory.
    gc.freeze()
    before = list(map(stamp, plans["written"]))
    while True:
        descriptors = received(control, count)
        if posix.fork() == 0:
            control.send(b"B")
            control.close()
            kernel.apply(copy)
            become(descriptors, plans)
        for descriptor in descriptors:
            posix.close(descriptor)
        _, status, spent = posix.wait4(-1, 0)
        clean = list(map(stamp, plans["written"])) == before
        control.send(ending(status, spent, clean))
        if not clean:
            posix._exit(0)


def stamp(directory: str) -> tuple[int, list[str]]:
    """What differs once anything was made in a directory or changed about it."""
    try:
        return posix.stat(directory).st_ctime_ns, posix.listdir(directory)
    except OSError:
        return 0, []


def ending(status: int, spent: Any, clean: bool) -> bytes:
    """``E``, wait status, microseconds of CPU time, peak in KiB, whether nothing was left."""
    microseconds = int((spent.ru_utime + spent.ru_stime) * 1_000_000)
    parts = ((status, 4), (microseconds, 8), (spent.ru_maxrss, 8), (clean, 1))
    return b"E" + b"".join(int(number).to_bytes(size, "big") for number, size in parts)


def received(control: Any, count: int) -> list[int]:
    """The descriptors of the next run; ends this process where there is none to come."""
    room = _socket.CMSG_SPACE(count * _DESCRIPTOR_BYTES)
    order, passed, _, _ = control.recvmsg(1, room, _socket.MSG_CMSG_CLOEXEC)
    if order != b"F" or not passed:
        posix._exit(0)
    return list(memoryview(passed[0][2]).cast("i"))
