"""The warm judge: each copy is the judge of one run. Written for Python 3.8."""

from __future__ import annotations

import math  # noqa: F401  # what set-up code and prompts import most, loaded for all copies
import posix
import typing  # noqa: F401

from grading.engine import inside, judge, libraries, warm  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    inside.prepare_interpreter()
    # Frames in, frames out, what is printed.
    warm.serve(become_judge, 3)


def become_judge(descriptors: list[int], plans: dict[str, Any]) -> None:
    source, sink, printed = descriptors
    frames = inside.private(source), inside.private(sink)
    posix.dup2(printed, 1)
    posix.dup2(printed, 2)
    for descriptor in descriptors:
        posix.close(descriptor)
    judge.serve(*frames)
