"""What one run of a candidate program came to.

Every run ends in exactly one outcome::

    compiled? -- no -----------------------------------------> syntax_error   score 0
      | yes
    loaded? -- raised, died, exited, flooded its output ------> error          score 0
      | yes
    all targets asked? -- died, broke the protocol, flooded --> error          score 0
      | yes
    every target true? -- no ---------------------------------> assertion_fail passed / total
      | yes
    pass                                                                       score 1

    at any point the host's clock passes the limit -----------> timeout        score 0

A program that reads standard input is run once for each target, by the same tree but that nothing
is loaded: what it raises makes its target false. A death, a flood or a timeout ends the whole.

The platform's own faults are none of these: they raise :class:`PlatformError`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

# Raise when a change can alter a verdict: it is stored with every attempt.
GRADER_VERSION = 6


class Outcome(StrEnum):
    PASS = "pass"
    ASSERTION_FAIL = "assertion_fail"
    ERROR = "error"
    TIMEOUT = "timeout"
    SYNTAX_ERROR = "syntax_error"


class Label(StrEnum):
    """How far a target's answer can be trusted."""

    SEALED = "sealed"  # evaluated outside the candidate's process
    IN_PROCESS = "in_process"  # a comparison had to be made inside it
    VACUOUS = "vacuous"  # never asked the candidate anything


class Trick(StrEnum):
    """What would have fooled a grader that shares its process with the program.

    Signs for a person to look at, not proof: an honest program may end early or compare its
    own way, and a hostile one may hide the two that its own process reports.
    """

    # Seen by the host.
    EARLY_EXIT = "ended early"  # with status 0, or by SystemExit
    OUT_OF_TURN = "frames out of turn"  # wrote to the channel of verdicts
    # Reported by the cell.
    OWN_COMPARISON = "own comparison"  # a failed target was given an object with an own __eq__
    PATCHED_BUILTINS = "patched builtins"


class PlatformError(Exception):
    """The platform failed: no verdict, no score; the run is to be repeated."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Head and tail of one output stream and its true size in bytes."""

    head: str = ""
    tail: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One target: ``detail`` says why it is not true; ``duration_s`` is wall seconds.

    ``printed`` is the head of what the program printed for it, where that is what was compared.
    """

    index: int
    true: bool
    label: Label
    detail: str = ""
    duration_s: float = 0.0
    printed: Stream | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Structured cause of anything but a pass; never taken from the candidate's stderr.

    ``phase``: ``compile`` | ``import`` | ``entry`` | ``target``. ``frames`` are lines of the
    candidate's own code, innermost last, as ``[line, function]``.
    """

    phase: str
    exception: str = ""
    message: str = ""
    frames: list[tuple[int, str]] = field(default_factory=list)
    signal: str = ""
    exit_status: int | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """How the program was found: the rule that picked it, which block, of how many."""

    rule: str
    block: int | None = None
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything known about one run. Seconds and bytes; ``program`` is the text that ran."""

    outcome: Outcome
    passed: int
    total: int
    targets: list[TargetResult]
    detail: str
    failure: Failure | None
    denied: list[str]
    stdout: Stream
    stderr: Stream
    wall_s: float
    cpu_s: float
    peak_bytes: int
    starved: bool
    tier: str
    hardening: list[str]
    python: str
    limits: dict[str, Any]
    extraction: Extraction
    program: str
    tricks: list[Trick] = field(default_factory=list)
    grader_version: int = GRADER_VERSION
    # Empty where the program ran in the bare interpreter of the grader.
    environment: str = ""

    @property
    def score(self) -> float:
        """passed / total for pass and assertion_fail, 0 for the other outcomes."""
        if self.outcome in (Outcome.PASS, Outcome.ASSERTION_FAIL) and self.total:
            return self.passed / self.total
        return 0.0

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; the same keys whatever the outcome."""
        return asdict(self) | {"outcome": self.outcome.value, "score": self.score}
