"""Tiers of isolation: probing what this host allows and choosing the strongest.

bwrap > unshare > unshare-root > rlimit; one module per tier builds its arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from grading.engine.drain import drain
from grading.engine.isolation import advice, bwrap, rlimit, unshare
from grading.engine.isolation.launch import Isolation, launch
from grading.engine.isolation.view import View
from grading.engine.limits import STARTUP_S
from grading.engine.outcome import PlatformError

TIERS = ("bwrap", "unshare", "unshare-root", "rlimit")


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a tier works here; if not, or not fully, why and what would help."""

    tier: str
    works: bool
    cause: str = ""
    fix: str = ""


def choose(wanted: str, view: View) -> tuple[Isolation, list[Probe]]:
    """The strongest tier that works for this very view, or the ``wanted`` one.

    ``wanted`` is a tier or ``auto``. Also returned: one probe for each tier tried. Raises
    PlatformError for an unknown tier, one that does not work, or when none does.
    """
    if sys.platform != "linux":
        raise PlatformError("candidate programs run on Linux only: use a container elsewhere")
    if wanted != "auto" and wanted not in TIERS:
        raise PlatformError(f"unknown isolation {wanted!r}: one of auto, {', '.join(TIERS)}")
    probes = []
    for tier in TIERS if wanted == "auto" else (wanted,):
        isolation, probe = _probe_tier(tier, view)
        probes.append(probe)
        if isolation:
            return isolation, probes
    raise PlatformError("; ".join(f"{p.tier} does not work: {p.cause} {p.fix}" for p in probes))


def _probe_tier(tier: str, view: View) -> tuple[Isolation | None, Probe]:
    failure = advice.missing(tier)
    for isolation, remark in _candidates(tier):
        said = _failure(isolation, view)
        if said is None:
            return isolation, Probe(tier, True, *remark)
        # The first way is the preferred one: its failure is the one to explain.
        failure = failure if failure.told else advice.explain(tier, said)
    return None, Probe(tier, False, failure.cause, failure.fix)


def _candidates(tier: str) -> Iterator[tuple[Isolation, tuple[str, str]]]:
    """Ways to get a tier, best first, each with cause and fix of what it lacks."""
    if tier == "bwrap":
        for way in bwrap.candidates():
            yield Isolation(tier, way.argv, True, True), advice.remark(tier, way.proc)
    elif tier == "unshare":
        argv = partial(unshare.argv, user=unshare.KEEP_USER)
        yield Isolation(tier, argv, False, True), advice.remark(tier)
    elif tier == "unshare-root":
        argv = partial(unshare.argv, user=unshare.AS_ROOT)
        yield Isolation(tier, argv, False, True), advice.remark(tier)
    else:
        yield Isolation(tier, rlimit.argv, False, False), advice.remark(tier)


def _failure(isolation: Isolation, view: View) -> str | None:
    """None if the interpreter ran under this isolation, else what was said instead."""
    command = [view.python, "-s", "-B", "-S", "-c", "print('up')"]
    try:
        with launch(isolation, view, command, capture=False) as child:
            answer = drain(child, STARTUP_S)
    except PlatformError as error:
        return str(error)
    if answer.returncode == 0 and answer.stdout == b"up\n":
        return None
    return answer.stderr.decode("utf-8", "replace").strip() or f"no answer ({answer.ended})"
