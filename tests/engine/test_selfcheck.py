"""The live attacks: stopped where something is in force, and real where nothing is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grading.engine import Sandbox, selfcheck
from grading.engine.outcome import PlatformError

pytestmark = pytest.mark.sandbox
CHECKOUT = Path(__file__).resolve().parents[2]
# What bare resource limits let through: without these the attacks would prove nothing.
REAL = {
    "start a process",
    "memory outside the limit (memfd)",
    "shared memory that outlives it",
    "connect to a port of the host",
    "connect to a socket file",
    "send to a socket file",
    "connect to an abstract socket",
    "read a file of the host",
    "change a file of the host",
    "change the mode of a host's file",
    "stop a neighbour",
    "end every process in reach",
}


def test_the_tier_in_force_stops_every_attack(sandbox: Sandbox) -> None:
    if not sandbox.safe_for_strangers:
        pytest.skip("this host has only weak tiers")
    try:
        results = selfcheck.run([sandbox.tier])
    except PlatformError as problem:
        pytest.skip(str(problem))
    assert [result.attack for result in results] == list(selfcheck.ATTACKS)
    assert [result for result in results if not result.stopped] == []


def test_the_attacks_are_real() -> None:
    """On a host that refuses every hardening they get through, inside their namespaces."""
    try:
        place = selfcheck.throw_away()
    except PlatformError as problem:
        pytest.skip(str(problem))
    if subprocess.run([*place, "true"], capture_output=True).returncode:
        pytest.skip("this host has no throw-away namespaces")
    weak = [sys.executable, str(CHECKOUT / "tests/refusing.py"), "--also", "seccomp", "--"]
    command = [*place, *weak, sys.executable, "-m", "grading.engine.selfcheck", "rlimit"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=200)
    results = selfcheck.read_results(done.stdout)
    assert len(results) == len(selfcheck.ATTACKS), done.stderr
    through = {result.attack for result in results if not result.stopped}
    assert through >= REAL
    assert "pass by a lying object" not in through


def test_every_tier_is_reported() -> None:
    reports = selfcheck.look(["bwrap", "rlimit"])
    assert [report.tier for report in reports] == ["bwrap", "rlimit"]
    assert reports[1].works and "non-dumpable" in reports[1].hardening
    assert reports[0].works == bool(reports[0].hardening)


def test_a_tier_that_does_not_work_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "unshare" else which(name))
    (report,) = selfcheck.look(["unshare"])
    assert not report.works and report.hardening == ()
    assert [finding.fix for finding in report.findings] == ["Install util-linux."]
    with pytest.raises(PlatformError, match="need unshare"):
        selfcheck.run(["rlimit"])
