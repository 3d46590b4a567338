"""Landlock: rulesets by version, and what they keep a program from."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade
from grading.engine.isolation import landlock
from grading.engine.isolation.landlock import Rule

pytestmark = pytest.mark.sandbox
HERE = landlock.version()
needs_landlock = pytest.mark.skipif(not HERE, reason="this kernel has no Landlock")


@pytest.mark.parametrize(
    ("abi", "rights", "size"),
    [(1, 13, 8), (2, 14, 8), (3, 15, 8), (4, 15, 16), (5, 16, 16), (6, 16, 24), (7, 16, 24)],
)
def test_older_versions_are_asked_for_what_they_know(abi: int, rights: int, size: int) -> None:
    plan = landlock.plan(abi, [Rule("/work", landlock.WRITE), Rule("/usr", landlock.READ)])
    ruleset = bytes.fromhex(plan["ruleset"])
    assert len(ruleset) == size
    handled = struct.unpack_from("=Q", ruleset)[0]
    assert handled == (1 << rights) - 1
    assert [path for path, _ in plan["rules"]] == ["/work", "/usr"]
    assert all(rule & ~handled == 0 for _, rule in plan["rules"])
    if abi >= 4:
        assert struct.unpack_from("=Q", ruleset, 8)[0] == 3
    if abi >= 6:
        assert struct.unpack_from("=Q", ruleset, 16)[0] == 3


def test_no_rule_allows_devices_or_sockets() -> None:
    for right in (1 << 6, 1 << 9, 1 << 11, landlock.IOCTL_DEVICE):
        assert not (landlock.READ | landlock.WRITE | landlock.DEVICE | landlock.LOOK) & right


def test_around_leaves_out_what_is_hidden(tmp_path: Path) -> None:
    for name in ("a/b/secret", "a/b/open", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    top = str(tmp_path)
    hidden = [f"{top}/a/b/secret", "/elsewhere"]
    assert landlock.around(top, hidden) == [f"{top}/a/b/open", f"{top}/a/c", f"{top}/d"]
    assert landlock.around(top, ["/elsewhere"]) == [top]
    assert landlock.around(top, [top]) == []


def make(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    monkeypatch.setattr(landlock, "version", lambda: version)
    made = Sandbox("t", isolation="rlimit", cache_root=tmp_path / "cache")
    made.ensure()
    return made


def run(sandbox: Sandbox, program: str, *targets: str) -> Verdict:
    return grade(Task(targets=targets, timeout_s=10, denylist=()), Generation(program), sandbox)


TRIED = """
import os
def tried(function, *args):
    try:
        function(*args)
    except OSError as problem:
        return type(problem).__name__
    return "done"
"""


@needs_landlock
@pytest.mark.parametrize("version", range(1, HERE + 1))
def test_files_of_the_host_are_out_of_reach(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("word")
    box = make(tmp_path, version, monkeypatch)
    program = TRIED + (
        f"def f(): return [\n"
        f"    tried(open, {str(secret)!r}), tried(open, {str(secret)!r}, 'a'),\n"
        f"    tried(os.unlink, {str(secret)!r}), tried(os.listdir, {str(tmp_path)!r}),\n"
        f"    tried(os.mkdir, {str(tmp_path / 'new')!r}), tried(os.truncate, {str(secret)!r}, 0),\n"
        f"    tried(os.open, {str(secret)!r}, os.O_TRUNC), tried(os.chmod, {str(secret)!r}, 0),\n"
        f"]\n"
        "def g():\n"
        "    open('mine', 'w').write('x')\n"
        "    os.mkdir('d'); os.rename('mine', 'd/mine') if not OLD else None\n"
        "    return tried(os.listdir, '/usr/lib'), tried(open, '/dev/null', 'w')\n"
        f"OLD = {version < 2}\n"
    )
    verdict = run(box, program, "f() == ['PermissionError'] * 8", "g() == ('done', 'done')")
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert secret.read_text() == "word" and os.stat(secret).st_mode & 0o600
    assert "landlock" in box.hardening
    assert ("landlock-tcp" in box.hardening) == (version >= 4)
    assert ("landlock-signals" in box.hardening) == (version >= 6)


@needs_landlock
def test_without_a_filter_landlock_still_holds_back_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if HERE < landlock.SCOPE_VERSION:
        pytest.skip("needs Linux 6.12")
    monkeypatch.setattr("grading.engine.isolation.seccomp.supported", lambda: False)
    box = make(tmp_path, HERE, monkeypatch)
    assert "seccomp" not in box.hardening
    program = TRIED + f"def f(): return tried(os.kill, {os.getpid()}, 0)"
    assert run(box, program, "f() == 'PermissionError'").outcome is Outcome.PASS


@needs_landlock
def test_an_application_below_the_system_directory_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = next(entry for entry in Path("/usr/share").iterdir() if entry.is_dir())
    monkeypatch.setattr("grading.engine.sandbox._hidden", lambda: (str(folder),))
    box = make(tmp_path, HERE, monkeypatch)
    program = TRIED + f"def f(): return tried(os.listdir, {str(folder)!r})"
    assert run(box, program, "f() == 'PermissionError'").outcome is Outcome.PASS


def test_a_kernel_without_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = make(tmp_path, 0, monkeypatch)
    assert "landlock" not in box.hardening and not box.safe_for_strangers
    finding = next(one for one in box.findings() if one.what == "landlock")
    assert "Linux 5.13" in finding.fix and finding.effect
    assert run(box, "def f(): return 1", "f() == 1").outcome is Outcome.PASS
