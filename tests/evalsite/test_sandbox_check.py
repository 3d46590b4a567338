"""`manage.py sandbox_check`, and what follows from a weak sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evalsite import banner, instance
from grading import grader
from grading.engine.isolation import Probe
from grading.engine.sandbox import Sandbox
from tests.evalsite.running import ROOT, environment

pytestmark = pytest.mark.sandbox
REFUSING = [sys.executable, str(ROOT / "tests/refusing.py"), "--"]


class Weak:
    """A sandbox of resource limits alone."""

    tier = "rlimit"
    hardening: list[str] = []
    probes = [Probe("bwrap", False, "bubblewrap is not installed.", "Install it.")]
    safe_for_strangers = False

    def findings(self) -> list[object]:
        from grading.engine.isolation.findings import findings

        return [*findings(self.tier, self.hardening, self.probes)]


def check(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("sandbox_check", *arguments, stdout=out, stderr=out)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def test_it_says_what_is_in_force(sandbox: Sandbox) -> None:
    code, text = check("--no-attacks")
    assert code == (0 if sandbox.safe_for_strangers else 1)
    assert f"In force: {sandbox.tier}, fit for" in text
    head = text.splitlines()[0].split()
    assert head == ["tier", "bwrap", "unshare", "unshare-root", "rlimit"]
    for name in sandbox.hardening:
        assert name in text
    for finding in sandbox.findings():
        assert finding.line() in text


def test_attacks_are_shown_by_tier(sandbox: Sandbox) -> None:
    if not sandbox.safe_for_strangers:
        pytest.skip("this host has only weak tiers")
    code, text = check("--tier", sandbox.tier)
    if "No attack was tried" in text:
        pytest.skip("this host has no throw-away namespaces")
    assert code == 0
    row = next(line for line in text.splitlines() if line.startswith("read a file of the host"))
    assert row.split()[-1] == "stopped"
    assert "GOT THROUGH" not in text


def test_on_a_weak_host_it_fails_and_every_line_has_a_fix(tmp_path: Path) -> None:
    command = [*REFUSING, sys.executable, "manage.py", "sandbox_check"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr
    assert "In force: rlimit, fit for one's own programs only." in done.stdout
    for what in ("bwrap: ", "unshare: ", "landlock: ", "rlimit: "):
        line = next(line for line in done.stdout.splitlines() if line.startswith(what))
        assert line.count(". ") >= 1 and line.endswith(".")
    assert "No attack was tried" in done.stderr


def test_help_begins_with_what_it_does_and_ends_with_an_example() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "sandbox_check", "--help"],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
    )
    told = done.stdout.strip()
    assert told.splitlines()[-1].startswith("Example: manage.py sandbox_check")
    assert "Try every isolation tier" in told and "Exit status: 0" in told


# --- a server that others reach ------------------------------------------------------------------


def test_up_for_others_wants_a_strong_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    weak: Sandbox = Weak()  # type: ignore[assignment]
    for host in ("127.0.0.1", "localhost", "::1"):
        instance.check_sandbox(instance.Plan(1, host, 80), weak)
    others = instance.Plan(1, "0.0.0.0", 80)
    with pytest.raises(instance.CannotStart, match=r"rlimit.*too weak.*Install bubblewrap") as told:
        instance.check_sandbox(others, weak)
    assert "\n" not in str(told.value)
    monkeypatch.setenv("EVALSITE_ALLOW_UNSAFE", "1")
    instance.check_sandbox(others, weak)


def test_the_web_server_knows_that_others_reach_it() -> None:
    def told(host: str) -> str | None:
        (_, (web,)) = instance._with_broker(instance.Plan(1, host, 80), "redis://x")
        return web.env.get("EVALSITE_FOR_OTHERS")

    assert told("0.0.0.0") == "1"
    assert told("127.0.0.1") is None


def test_a_worker_of_a_site_for_others_does_not_start_weak(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grader, "sandbox", Weak)
    monkeypatch.setattr(settings, "FOR_OTHERS", True)
    with pytest.raises(CommandError, match=r"takes no uploads.*Install bubblewrap"):
        call_command("worker", "--burst")


def test_the_banner_tells_what_is_missing() -> None:
    weak: Sandbox = Weak()  # type: ignore[assignment]
    text = banner.text(instance.Plan(1, "127.0.0.1", 80), weak, None)
    words = " ".join(text.split())
    assert "Sandbox tier rlimit Hardening none Missing bwrap: bubblewrap is not installed." in words
    assert "Resource limits are all there is. Programs can read and change" in words
