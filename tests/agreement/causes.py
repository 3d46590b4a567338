"""Why a verdict differs from somebody else's: a fixed list, decided by rules and never by names."""

from __future__ import annotations

from enum import StrEnum

from agreement.results import Result
from agreement.sets import Case

from grading.engine.outcome import Outcome, Trick

IN_PLACE = "holds only because a call changed its argument"


class Cause(StrEnum):
    """In the order in which they are looked for."""

    LOAD = "load"
    LIMIT = "limit"
    HARNESS = "their process"
    DENIED = "denied import"
    OUTPUT = "output or memory cap"
    IN_PLACE = "in-place change"
    MISSING_NAME = "name from their grader"
    SEALED = "sealed values"
    UNEXPLAINED = "unexplained"


MEANINGS = {
    Cause.LOAD: "one of the two ran out of time; ours with 30 s agrees with theirs",
    Cause.LIMIT: "one of the two ran out of time; with 30 s ours still differs",
    Cause.HARNESS: "the verdict that came with the data differs from that of a fresh "
    "interpreter, which agrees with ours",
    Cause.DENIED: "the program imports what the denylist refuses",
    Cause.OUTPUT: "the program passed the cap on output or memory",
    Cause.IN_PLACE: "the target holds only because the call changed its argument",
    Cause.MISSING_NAME: "the program uses a name that it does not define or import",
    Cause.SEALED: "a value of the program's own making, which stays in its process, does not "
    "take part in the comparison",
    Cause.UNEXPLAINED: "none of these",
}


def cause(case: Case, at_3_s: Result, at_30_s: Result, agrees_fresh: bool) -> Cause:
    """``agrees_fresh``: theirs is a peer's verdict, and a fresh interpreter gives ours."""
    if case.out_of_time or Outcome.TIMEOUT in (at_3_s.outcome, at_30_s.outcome):
        return Cause.LOAD if at_30_s.agrees(case) else Cause.LIMIT
    if agrees_fresh:
        return Cause.HARNESS
    if at_3_s.denied:
        return Cause.DENIED
    if at_3_s.detail == "output overflow" or "MemoryError" in at_3_s.detail:
        return Cause.OUTPUT
    if IN_PLACE in at_3_s.detail:
        return Cause.IN_PLACE
    if "NameError" in at_3_s.detail:
        return Cause.MISSING_NAME
    if Trick.OWN_COMPARISON in at_3_s.tricks or "object of the program" in at_3_s.detail:
        return Cause.SEALED
    return Cause.UNEXPLAINED
