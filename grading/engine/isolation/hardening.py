"""What is stacked on a tier: the system call filter, Landlock, no capabilities, one core.

The host works out a plan; a process carries it out itself before it sees anything untrusted
(:mod:`grading.engine.confine`), but for the filter where the tier's own tool installs it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from grading.engine.drain import drain
from grading.engine.isolation import bwrap, landlock, seccomp
from grading.engine.isolation.landlock import Rule
from grading.engine.isolation.launch import Front, Isolation, launch
from grading.engine.isolation.unshare import DEVICES
from grading.engine.isolation.view import View
from grading.engine.limits import STARTUP_S
from grading.engine.outcome import PlatformError

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_OWN_PROCESS = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo")

# Prints what it is refused, as seen from inside; sockets by number since `socket` is slow.
_LOOK = """
import json, os, _socket
def refused(function, *args):
    try:
        function(*args)
    except OSError:
        return True
    return False
def capabilities():
    try:
        with open("/proc/self/status") as file:
            return [int(line.split()[1], 16) for line in file if line.startswith("CapEff")][0]
    except OSError:
        return None
print(json.dumps({
    "seccomp": refused(_socket.socket, 1, 1),
    "landlock": refused(os.listdir, "/"),
    "capabilities": capabilities(),
    "user": os.getuid(),
    "cores": len(os.sched_getaffinity(0)),
}))
"""


@dataclass(frozen=True, slots=True)
class Hardening:
    """What is in force. ``landlock`` is its version, 0 for none.

    ``own_steps``: the process can carry out a plan, which takes the C half of ctypes.
    ``names`` says it in words, with what the tier brings itself.
    """

    seccomp: bool = False
    landlock: int = 0
    own_steps: bool = True
    names: tuple[str, ...] = ()

    def program(self, isolation: Isolation, allow_processes: bool) -> bytes:
        """The filter for a tier whose tool installs it; else empty."""
        if not self.seccomp or not isolation.filter_option:
            return b""
        return _program(seccomp.Policy(allow_processes=allow_processes))

    def plan(
        self,
        isolation: Isolation,
        view: View,
        home: str,
        allow_processes: bool,
    ) -> dict[str, Any]:
        """For :func:`grading.engine.confine.confine`; empty where nothing can be done.

        ``home`` may be written besides ``view.workdir``.
        """
        if not self.own_steps:
            return {}
        plan = self._walls(isolation, view, home, allow_processes)
        if self.seccomp and not isolation.filter_option:
            only_self = not isolation.namespaced and not allow_processes
            policy = seccomp.Policy(allow_processes, isolation.private_files, only_self)
            plan["seccomp"] = _program(policy).hex()
        return plan

    @property
    def can_fork(self) -> bool:
        """Whether a process that may fork can keep its copies from doing so."""
        return self.seccomp and self.own_steps

    def forking_plan(self, isolation: Isolation, view: View, home: str) -> dict[str, Any]:
        """For :mod:`grading.engine.warm`: ``own`` plan, that of each ``copy``, ``written`` places.

        Nothing that a copy can write to may hold anything after it.
        """
        walls = self._walls(isolation, view, home, allow_processes=False)
        policy = seccomp.Policy(own_files=isolation.private_files, only_self=True)
        return {
            "own": {name: walls[name] for name in ("private", "capabilities")},
            "copy": {**walls, "with_parent": True, "seccomp": _program(policy).hex()},
            "written": _written(isolation, view, home, allow_processes=False),
        }

    def _walls(
        self, isolation: Isolation, view: View, home: str, allow_processes: bool
    ) -> dict[str, Any]:
        """A plan without the system call filter."""
        # bubblewrap has dropped capabilities, and seen to it that none come back.
        plan: dict[str, Any] = {"private": True, "capabilities": not isolation.own_files}
        if self.landlock:
            rules = _rules(isolation, view, home, allow_processes)
            plan["landlock"] = landlock.plan(self.landlock, rules)
        return plan


def probe(isolation: Isolation, view: View) -> Hardening:
    """All that works for this tier and view, found by trying; ``names`` are what was seen."""
    wanted = Hardening(seccomp.supported(), landlock.version())
    parts = [wanted, replace(wanted, landlock=0), replace(wanted, seccomp=False), Hardening()]
    if isolation.filter_option:
        parts.append(Hardening(seccomp=wanted.seccomp, own_steps=False))
    # Twice: a host that was busy for a moment must not cost what it has.
    for hardening in (wanted, *dict.fromkeys(parts)):
        seen = _look(isolation, view, hardening)
        if seen is not None:
            return replace(hardening, names=tuple(_names(isolation, hardening, seen)))
    return Hardening(own_steps=False, names=tuple(_brought(isolation)))


def _look(isolation: Isolation, view: View, hardening: Hardening) -> dict[str, Any] | None:
    """What a process under this hardening finds; None if it did not run or is less confined."""
    command = [view.python, "-s", "-B", "-S", "-c", _LOOK]

    def front(home: str) -> Front:
        return Front(plan=hardening.plan(isolation, view, home, allow_processes=True))

    program = hardening.program(isolation, allow_processes=True)
    try:
        with launch(isolation, view, command, capture=False, front=front, program=program) as child:
            answer = drain(child, STARTUP_S)
        seen: dict[str, Any] = json.loads(answer.stdout)
    except (PlatformError, ValueError):
        return None
    weaker = (hardening.seccomp and not seen["seccomp"]) or (
        hardening.landlock and not seen["landlock"]
    )
    return None if weaker else seen


def _names(isolation: Isolation, hardening: Hardening, seen: dict[str, Any]) -> Iterator[str]:
    yield from ["seccomp"] if hardening.seccomp else []
    if hardening.landlock:
        yield "landlock"
        yield from ["landlock-tcp"] if hardening.landlock >= landlock.NETWORK_VERSION else []
        yield from ["landlock-signals"] if hardening.landlock >= landlock.SCOPE_VERSION else []
    if seen["capabilities"] == 0:
        yield "no-capabilities"
    if hardening.own_steps:
        yield "non-dumpable"
    yield from _brought(isolation)
    if seen["cores"] == 1 and isolation.core is not None:
        yield "one-core"


def _brought(isolation: Isolation) -> Iterator[str]:
    """What the tier itself stands for."""
    if isolation.private_files:
        yield from ("private-files", "read-only-root", "sized-scratch")
    else:
        yield "scratch-quota"
    if isolation.own_files:
        yield "nobody-inside"
    if isolation.user is not None:
        yield "slot-uid"


def _rules(isolation: Isolation, view: View, home: str, allow_processes: bool) -> Iterator[Rule]:
    hidden = () if isolation.private_files else tuple(map(os.path.realpath, view.hidden))
    for root in (*_SYSTEM, *view.binds):
        for path in _around(root, hidden):
            yield Rule(path, landlock.READ)
    for path in (*bwrap.SYSTEM_FILES, *view.extra):
        yield Rule(path, landlock.READ)
    for path in _OWN_PROCESS:
        yield Rule(path, landlock.LOOK)
    for path in DEVICES:
        yield Rule(path, landlock.DEVICE)
    for path in _written(isolation, view, home, allow_processes):
        yield Rule(path, landlock.WRITE)


def _written(isolation: Isolation, view: View, home: str, allow_processes: bool) -> list[str]:
    """Directories that a process may write to."""
    written = [home, *([view.workdir] if view.workdir else [])]
    if isolation.own_files:
        written.append(bwrap.TMPDIR)
    # Semaphores of process pools live there; the host's own is shared with everybody.
    if isolation.private_files or allow_processes:
        written.append("/dev/shm")
    return written


@cache
def _around(root: str, hidden: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(landlock.around(root, hidden)) if os.path.isdir(root) else ()


@cache
def _program(policy: seccomp.Policy) -> bytes:
    return seccomp.program(policy)


def worker_slot() -> int | None:
    """The number of this worker on its host, from EVALSITE_WORKER_SLOT; None outside one."""
    text = os.environ.get("EVALSITE_WORKER_SLOT", "")
    return int(text) if text.isdigit() else None


def worker_core() -> int | None:
    """The core that this worker's processes share; None where no slot is given."""
    slot = worker_slot()
    if slot is None:
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[slot % len(cores)]


def stay_on_core() -> None:
    """Keep this worker on the core of its programs: they take turns, so they lose by being apart.

    Nothing happens outside a slot, or where the host forbids it.
    """
    core = worker_core()
    if core is not None:
        with suppress(OSError):
            os.sched_setaffinity(0, [core])
