"""Running rows under settings, and what the results amount to."""

from __future__ import annotations

import compileall
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.attacks import fake_host
from tests.attacks.cases import SHOWN_BY, observations, outcome_of
from tests.attacks.fake_host import Setting

TIERS = ("bwrap", "unshare", "unshare-root", "rlimit")
SETTINGS = [
    *(Setting("bwrap", root, kept=True) for root in (False, True)),
    *(Setting(tier, root) for tier in TIERS for root in (False, True)),
    Setting("rlimit", refused=("landlock", "seccomp")),
]
# Nothing at all may be observed where both are stacked on a tier.
STACKED = {"landlock", "seccomp"}
# Their readings are of the whole machine, so nothing else may run meanwhile.
ALONE = ("rss_over_mb", "disk_over_mb")


@dataclass(frozen=True, slots=True)
class Seen:
    """What one row came to under one setting."""

    row: dict[str, Any]
    setting: Setting
    outcome: str
    observed: list[str]
    hardening: tuple[str, ...]

    @property
    def forged(self) -> bool:
        return self.row["kind"] == "forge" and "pass" in self.observed

    @property
    def strict(self) -> bool:
        return STACKED.issubset(self.hardening)


def prepare() -> None:
    """Compile the engine once, not in every throw-away host."""
    compileall.compile_dir(fake_host.ROOT / "grading" / "engine", quiet=2, maxlevels=2)


def run_row(setting: Setting, row: dict[str, Any]) -> Seen:
    """Raises NoFakeHost where the host, or the tier inside it, cannot be had."""
    report = fake_host.run(setting, row)
    ready = report["ready"] or {"problem": "the worker did not start"}
    if "problem" in ready:
        raise fake_host.NoFakeHost(ready["problem"])
    hardening = tuple(ready["hardening"])
    return Seen(row, setting, outcome_of(report), observations(row, report), hardening)


def run_rows(
    setting: Setting,
    rows: Iterable[dict[str, Any]],
    workers: int,
    told: Callable[[Seen], None] = lambda seen: None,
) -> list[Seen]:
    """All rows under one setting; those that measure the machine one at a time."""
    together, alone = [], []
    for row in rows:
        kinds = {word.partition(":")[0] for word in row["must_not"]}
        (alone if kinds.intersection(ALONE) else together).append(row)
    found = []
    with ThreadPoolExecutor(workers) as pool:
        for seen in pool.map(lambda row: run_row(setting, row), together):
            found.append(seen)
            told(seen)
    for row in alone:
        found.append(run_row(setting, row))
        told(found[-1])
    return found


def kinds_shown(rows: Iterable[dict[str, Any]]) -> dict[str, bool]:
    """Whether each kind of observation was made of its row with no protection at all."""
    by_id = {row["id"]: row for row in rows}
    rows_there = {kind: name for kind, name in SHOWN_BY.items() if name in by_id}
    shown = dict.fromkeys(rows_there, False)
    for name in sorted(set(rows_there.values())):
        seen = run_row(Setting(""), by_id[name])
        kinds = {word.partition(":")[0] for word in seen.observed}
        for kind, row_name in rows_there.items():
            if row_name == name:
                shown[kind] = kind in kinds
    return shown


def core_files_are_local() -> bool:
    """Whether a crash leaves its core in its own directory, where one could be seen."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="ascii").strip()
    return not pattern.startswith(("|", "/"))


def summary(seen: list[Seen]) -> list[str]:
    """Lines for one setting: attempts, forged passes, observations and which."""
    first = seen[0]
    stacked = "+".join(first.hardening) or "nothing"
    bad = [one for one in seen if one.observed]
    forged = sum(one.forged for one in seen)
    forgeries = sum(one.row["kind"] == "forge" for one in seen)
    head = (
        f"{first.setting} (stacked: {stacked}): {len(seen)} attempts, "
        f"{forged} of {forgeries} forgeries pass, "
        f"{sum(len(one.observed) for one in bad)} observations in {len(bad)} rows"
    )
    return [head, *(f"    {one.row['id']}: {', '.join(one.observed)}" for one in bad)]


def failures(seen: Iterable[Seen]) -> list[str]:
    """What must not be: a forged pass anywhere, any observation on a strict setting."""
    return [
        f"{one.setting}: {one.row['id']}: {', '.join(one.observed)}"
        for one in seen
        if one.forged or (one.strict and one.observed)
    ]


def left_behind() -> list[str]:
    """Processes of this process's throw-away hosts that the real host still has."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            owner = Path(f"/proc/{name}").stat().st_uid
        except (OSError, UnicodeDecodeError):
            continue
        if fake_host.host_name() in command or owner == fake_host.unprivileged_user():
            found.append(f"process {name}: {command[-60:]}")
    return found
