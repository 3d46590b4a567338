"""Tiers of isolation: probing what this host allows and choosing the strongest.

bwrap > unshare > unshare-root > rlimit; one module per tier builds its arguments.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from grading.engine.drain import drain
from grading.engine.isolation import advice, bwrap, unshare
from grading.engine.isolation.hardening import worker_core, worker_slot
from grading.engine.isolation.launch import Isolation, launch
from grading.engine.isolation.view import View
from grading.engine.limits import STARTUP_S
from grading.engine.outcome import PlatformError

TIERS = ("bwrap", "unshare", "unshare-root", "rlimit")
# Above what systems give to people, below what they keep for containers.
FIRST_SLOT_USER = 60_000


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a tier works here; if not, or not fully, why and what would help."""

    tier: str
    works: bool
    cause: str = ""
    fix: str = ""


class NoTier(PlatformError):
    """No tier of those wanted works; ``probes`` say why."""

    def __init__(self, probes: list[Probe]) -> None:
        self.probes = probes
        told = (f"{probe.tier} does not work: {probe.cause} {probe.fix}" for probe in probes)
        super().__init__("; ".join(told))


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
    raise NoTier(probes)


def _probe_tier(tier: str, view: View) -> tuple[Isolation | None, Probe]:
    failure = advice.missing(tier)
    for isolation, remark in _candidates(tier, view):
        said = _failure(isolation, view)
        if said is None:
            return isolation, Probe(tier, True, *remark)
        # The first way is the preferred one: its failure is the one to explain.
        failure = failure if failure.told else advice.explain(tier, said)
    return None, Probe(tier, False, failure.cause, failure.fix)


def _candidates(tier: str, view: View) -> Iterator[tuple[Isolation, tuple[str, str]]]:
    """Ways to get a tier, best first, each with cause and fix of what it lacks."""
    user, core = slot_user(view), worker_core()
    for way, remark in _ways(tier):
        isolation = replace(way, core=core)
        if user is not None:
            yield replace(isolation, user=user), remark
        yield isolation, remark


def _ways(tier: str) -> Iterator[tuple[Isolation, tuple[str, str]]]:
    if tier == "bwrap":
        for way in bwrap.candidates():
            isolation = Isolation(tier, way.argv, True, True, filter_option="--seccomp")
            yield isolation, advice.remark(tier, way.proc)
    elif tier == "rlimit":
        yield Isolation(tier, lambda view: [], False, False), advice.remark(tier)
    elif shutil.which(unshare.TOOL):
        user = unshare.KEEP_USER if tier == "unshare" else unshare.AS_ROOT
        covering = partial(unshare.argv, user=user, mounts=True)
        yield Isolation(tier, covering, False, True, unshare.mounts), advice.remark(tier)
        plain = partial(unshare.argv, user=user)
        yield Isolation(tier, plain, False, True), advice.remark(tier, mounts=False)


def slot_user(view: View) -> int | None:
    """The user a root worker's processes start as, one per worker.

    None for other workers, and where that user could not read the interpreter.
    """
    if os.getuid() != 0:
        return None
    readable = all(_world_readable(path) for path in (view.python, *view.binds))
    return FIRST_SLOT_USER + (worker_slot() or 0) if readable else None


def _world_readable(path: str) -> bool:
    parents = [parent for parent in Path(path).parents if parent != Path("/")]
    modes = [os.stat(place).st_mode for place in parents]
    return bool(os.stat(path).st_mode & 0o004) and all(mode & 0o001 for mode in modes)


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
