"""What cell and judge both do when they start. Written for Python 3.8."""

from __future__ import annotations

import posix
import sys

from grading.engine import framing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Above what a program opens first, below the limit on open files.
PRIVATE_DESCRIPTORS = 40


def set_limits(limits: Iterable[Sequence[int]]) -> None:
    """[resource number, value] pairs; a lower hard limit of the host stays."""
    if not limits:
        return
    import resource

    for number, value in limits:
        hard = resource.getrlimit(number)[1]
        if hard != resource.RLIM_INFINITY and hard < value:
            value = hard
        resource.setrlimit(number, (value, value))


def confine(source: int) -> None:
    """Give up what the host's first frame names; ends this process where that fails."""
    kind, _, payload = framing.read_frame(source)
    if kind != b"P":
        posix._exit(70)
    plan = framing.loads(payload)
    if plan:
        # Not sent to those who are confined already.
        from grading.engine import confine as confinement

        confinement.confine(plan)


def take_descriptors() -> tuple[int, int]:
    """(source, sink) of frames, moved off 0 and 1; 0 becomes the null device, 1 the capture pipe.

    The capture pipe's number comes in ``EVALSITE_CAPTURE_FD``.
    """
    capture = int(posix.environ.pop(b"EVALSITE_CAPTURE_FD"))
    source, sink = private(0), private(1)
    null = posix.open("/dev/null", posix.O_RDONLY)
    move(null, 0)
    move(capture, 1)
    return source, sink


def private(descriptor: int) -> int:
    """A copy with a number that a program does not meet, not inherited by an exec.

    As F_DUPFD_CLOEXEC gives, whose module takes longer to load than all of a cell's own.
    """
    number = PRIVATE_DESCRIPTORS
    while is_open(number):
        number += 1
    return posix.dup2(descriptor, number, False)


def is_open(descriptor: int) -> bool:
    try:
        posix.fstat(descriptor)
    except OSError:
        return False
    return True


def move(descriptor: int, number: int) -> None:
    posix.dup2(descriptor, number)
    posix.close(descriptor)


def prepare_interpreter() -> None:
    """Long integers print, and the directory the interpreter started in is no import path."""
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    sys.path[:] = [path for path in sys.path if path]
