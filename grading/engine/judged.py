"""What the runs of a program came to, and the words for it; shared by all kinds of targets."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any

from grading.engine.limits import Limits
from grading.engine.outcome import Failure, Label, Outcome, TargetResult, Trick
from grading.engine.run import Captured, Run, Timeout
from grading.engine.script_run import ScriptRun
from grading.engine.text import clean
from grading.engine.usage import Usage

STARVED_SHARE = 0.2
NAME_CHARS = 120
MESSAGE_CHARS = 500
FRAMES = 10
MAX_LINE = 10**9


@dataclass(slots=True)
class Judged:
    """The part of a verdict that the runs decide. ``wall_s`` and ``usage`` are of all of them."""

    outcome: Outcome
    detail: str
    failure: Failure | None
    targets: list[TargetResult] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    tricks: list[Trick] = field(default_factory=list)
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    wall_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    starved: bool = False


def starved(run: Run | ScriptRun, limits: Limits) -> bool:
    """Whether a timeout is the host's load: over 20 % of the limit went into waiting for a core.

    Where the kernel does not count that: the cell had a core for less than half of the limit. A
    cell that had cores for all of the limit took them from itself.
    """
    if not isinstance(run.ended, Timeout) or run.usage.cpu_s >= limits.timeout_s:
        return False
    if run.usage.wait_s is None:
        return run.usage.cpu_s < limits.timeout_s / 2
    return run.usage.wait_s > STARVED_SHARE * limits.timeout_s


def not_reached(index: int) -> TargetResult:
    return TargetResult(index, False, Label.SEALED, "not reached")


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def told(failure: dict[str, Any]) -> str:
    """One line for a failure that the program's process described."""
    if failure.get("denied"):
        return f"denied: {failure['denied']}"
    frames: Any = failure.get("frames")
    # Python's own message of a syntax error names the line already.
    told_line = failure.get("phase") == "compile" or not _is_frames(frames) or not frames
    line = "" if told_line else f" (line {frames[-1][0]})"
    name, message = failure.get("exception", ""), failure.get("message", "")
    return f"{name}: {message}{line}" if message else f"{name}{line}"


def failure_of(failure: dict[str, Any], phase: str) -> Failure:
    """A failure from what cell or judge said; nothing of it is trusted to have a form."""
    frames: Any = failure.get("frames")
    lines = frames[-FRAMES:] if _is_frames(frames) else []
    return Failure(
        phase=phase if phase in ("compile", "import", "entry", "target") else "import",
        exception=clean(str(failure.get("exception", "")), NAME_CHARS),
        message=clean(str(failure.get("message", "")), MESSAGE_CHARS),
        frames=[(min(max(line, 0), MAX_LINE), clean(name, 100)) for line, name in lines],
    )


def _is_frames(frames: Any) -> bool:
    return isinstance(frames, list) and all(
        isinstance(frame, list)
        and len(frame) == 2
        and isinstance(frame[0], int)
        and isinstance(frame[1], str)
        for frame in frames
    )
