"""What is stacked on every tier, seen from inside; and where the host's files stay."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade, runtime
from grading.engine.isolation import TIERS
from grading.engine.isolation import hardening as hardening_module
from grading.engine.isolation.findings import findings, safe_for_strangers
from grading.engine.outcome import PlatformError
from grading.engine.usage import children
from grading.engine.workdir import PREFIX, exceeds

pytestmark = pytest.mark.sandbox
CHECKOUT = Path(__file__).resolve().parents[2]
REFUSING = str(CHECKOUT / "tests/refusing.py")
SYSTEM_PYTHON = "/usr/bin/python3"
launch_module = sys.modules["grading.engine.isolation.launch"]


def make(tier: str, tmp_path: Path, **options: str) -> Sandbox:
    made = Sandbox("t", isolation=tier, cache_root=tmp_path / "cache", **options)  # type: ignore[arg-type]
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    return made


@pytest.fixture(scope="module", params=TIERS)
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return make(request.param, tmp_path_factory.mktemp("cache"))


def run(sandbox: Sandbox, program: str, *targets: str, timeout_s: float = 10) -> Verdict:
    task = Task(targets=targets, timeout_s=timeout_s, denylist=())
    return grade(task, Generation(program), sandbox)


def holds(sandbox: Sandbox, program: str, *targets: str) -> None:
    verdict = run(sandbox, program, *targets)
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_a_verdict_says_what_was_in_force(box: Sandbox) -> None:
    verdict = run(box, "def f(): return 1", "f() == 1")
    assert verdict.hardening == box.hardening
    assert {"no-capabilities", "non-dumpable"} <= set(verdict.hardening)


def test_neither_process_keeps_a_capability_or_lets_others_look_in(box: Sandbox) -> None:
    program = (
        "import ctypes\n"
        "def f():\n"
        "    dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"
        "    with open('/proc/self/status') as file:\n"
        "        caps = {l.split()[1] for l in file if l[:6] in ('CapEff', 'CapPrm', 'CapInh')}\n"
        "    return dumpable, caps"
    )
    judge = (
        "import ctypes\n"
        "assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0\n"
        "with open('/proc/self/status') as file:\n"
        "    assert 'CapEff:\\t0000000000000000' in file.read()\n"
        "f()"
    )
    holds(box, program, "f() == (0, {'0' * 16})", judge)


def test_the_root_inside_shows_and_takes_nothing(box: Sandbox, tmp_path: Path) -> None:
    if "private-files" not in box.hardening:
        pytest.skip("this tier has no mounts of its own")
    home = os.path.expanduser("~")
    hidden = [str(CHECKOUT / "manage.py"), os.environ["EVALSITE_DATA_DIR"], str(tmp_path)]
    hidden += ["/etc/passwd", "/var/log", "/run", f"{home}/.profile", "/sys/kernel"]
    present = [path for path in hidden if os.path.lexists(path)]
    assert len(present) >= 4
    program = (
        "import os\n"
        "def reached(path):\n"
        "    try:\n"
        "        return bool(os.listdir(path) if os.path.isdir(path) else open(path))\n"
        "    except OSError:\n"
        "        return False\n"
        "def sizes(): return [os.statvfs(p).f_blocks * os.statvfs(p).f_frsize >> 20\n"
        "    for p in ('.', '/dev/shm')]\n"
        "def flags(): return [bool(os.statvfs(p).f_flag & os.ST_RDONLY) for p in ('/', '/usr')]\n"
    )
    holds(box, program, f"not any(map(reached, {present!r}))", "reached('/usr')")
    holds(box, program, "sizes() == [64, 64]", "flags() == [True, True]")


def test_mounts_are_covers_without_landlock_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grading.engine.isolation.landlock.version", lambda: 0)
    box = make("unshare", tmp_path)
    if "private-files" not in box.hardening:
        pytest.skip("this host lets no namespace mount")
    program = (
        "import os\n"
        "def f(): return [os.path.exists(p) for p in "
        f"({str(CHECKOUT / 'manage.py')!r}, '/etc/passwd', {os.environ['EVALSITE_DATA_DIR']!r})]\n"
        "def g():\n"
        "    try: open('/usr/x', 'w')\n"
        "    except OSError as problem: return problem.errno\n"
        "def h(): return [name for name in os.listdir('/proc') if name.isdigit()]"
    )
    holds(box, program, "f() == [False] * 3", "g() == 30", "len(h()) == 2")


def test_where_mounts_are_refused_the_tier_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("unshare", tmp_path)
    monkeypatch.setattr(
        "grading.engine.isolation.unshare.mounts", lambda view, scratch: {"covered": ["/nowhere"]}
    )
    box = make("unshare", tmp_path)
    assert "private-files" not in box.hardening and "scratch-quota" in box.hardening
    assert "No mounts of its own" in box.findings()[0].cause
    holds(box, "def f(): return 1", "f() == 1")


def test_a_directory_of_the_callers_survives_with_what_was_written(
    box: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("text")
    result = box.run_argv([box.python, "-S", "-c", "open('out', 'w').write('x')"], tmp_path)
    assert result.passed, result
    assert (tmp_path / "out").read_text() == "x"


def test_a_slot_is_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALSITE_WORKER_SLOT", "1")
    before = os.sched_getaffinity(0)
    box = make("auto", tmp_path)
    assert "one-core" in box.hardening or len(before) == 1
    cores = sorted(before)
    wanted = {cores[1 % len(cores)]}
    holds(box, "import os\ndef f(): return os.sched_getaffinity(0)", f"f() == {wanted}")
    assert os.sched_getaffinity(0) == before
    monkeypatch.delenv("EVALSITE_WORKER_SLOT")
    assert hardening_module.worker_core() is None


@pytest.mark.parametrize("tier", TIERS)
def test_a_root_worker_starts_programs_as_its_slots_user(
    tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() != 0 or not os.path.exists(SYSTEM_PYTHON):
        pytest.skip("needs root and an interpreter that everybody can read")
    monkeypatch.setenv("EVALSITE_WORKER_SLOT", "3")
    box = make(tier, tmp_path, base_python=SYSTEM_PYTHON)
    assert "slot-uid" in box.hardening
    assert not any(finding.what == "slot-uid" for finding in box.findings())
    with box.start(["-c", "print(flush=True)\ninput()"]) as child:
        assert select.select([child.stdout_fd], [], [], 20)[0]
        # The first process may be a wrapper; all of them are the slot's.
        assert os.stat(f"/proc/{child.pid}").st_uid == 60_003
    holds(box, "open('x', 'w')\ndef f(): return 1", "f() == 1")
    mine = f"-{os.getpid()}-"
    assert not [
        name for name in os.listdir(tempfile.gettempdir()) if PREFIX in name and mine in name
    ]


def test_a_worker_conceals_itself() -> None:
    code = (
        "import ctypes, sys\n"
        f"sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from grading.engine.child import conceal\n"
        "conceal()\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    assert subprocess.check_output([sys.executable, "-c", code]) == b"0\n"


@pytest.mark.parametrize("tier", TIERS)
def test_an_interpreter_without_ctypes_still_grades(
    tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = CHECKOUT / "grading/engine"
    for file in engine.glob("*.py"):
        # Which no interpreter has.
        (tmp_path / file.name).write_text(
            file.read_text().replace("import _ctypes", "import _none")
        )
    monkeypatch.setattr(runtime, "_HERE", tmp_path)
    monkeypatch.setattr(launch_module, "_ENGINE", tmp_path)
    runtime._image.cache_clear()
    launch_module._codes.cache_clear()
    try:
        box = make(tier, tmp_path)
        before = set(children(os.getpid()))
        with box.warm():
            holds(box, "def f(): return 1", "f() == 1")
            assert set(children(os.getpid())) <= before
        assert box.run("print(1)").stdout == "1\n"
    finally:
        runtime._image.cache_clear()
        launch_module._codes.cache_clear()
    assert not {"landlock", "non-dumpable"} & set(box.hardening)
    assert ("seccomp" in box.hardening) == (tier == "bwrap")
    assert any("no ctypes" in finding.cause for finding in box.findings())


# --- the work directory --------------------------------------------------------------------------


def test_a_full_work_directory_ends_the_run(tmp_path: Path) -> None:
    box = make("rlimit", tmp_path)
    program = (
        "def f():\n"
        "    n = 0\n"
        "    while True:\n"
        "        n += 1\n"
        "        with open('fill%d' % n, 'wb') as file: file.write(bytes(1 << 20))"
    )
    verdict = run(box, program, "f() == 1", timeout_s=20)
    assert (verdict.outcome, verdict.detail) == (Outcome.ERROR, "work directory full")
    assert verdict.failure is not None and verdict.failure.phase == "target"


def test_a_scratch_of_fixed_size_says_so_to_the_program(tmp_path: Path) -> None:
    box = make("bwrap", tmp_path)
    program = (
        "def f():\n"
        "    for n in range(80):\n"
        "        with open('fill%d' % n, 'wb') as file: file.write(bytes(1 << 20))"
    )
    verdict = run(box, program, "f() is None", timeout_s=20)
    assert verdict.outcome is Outcome.ASSERTION_FAIL and "No space left" in verdict.detail


def test_exceeds_counts_bytes_entries_and_levels(tmp_path: Path) -> None:
    for name in ("a/b", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"x" * 100_000)
    (tmp_path / "d/link").symlink_to(tmp_path)
    assert not exceeds(str(tmp_path), 1 << 20, 6)
    assert exceeds(str(tmp_path), 1 << 20, 5)
    assert exceeds(str(tmp_path), 90_000, 100)
    assert not exceeds(str(tmp_path), 1 << 20, 100, depth=2)
    assert exceeds(str(tmp_path), 1 << 20, 100, depth=1)
    assert not exceeds(str(tmp_path / "nowhere"), 0, 0)
    fds = len(os.listdir("/proc/self/fd"))
    exceeds(str(tmp_path), 1 << 20, 100)
    assert len(os.listdir("/proc/self/fd")) == fds


# --- a host that lets programs confine little ----------------------------------------------------

REPORT = """
import sys
sys.path.insert(0, {checkout!r})
from grading.engine import Generation, Sandbox, Task, grade
box = Sandbox("t", cache_root={cache!r})
box.ensure()
score = grade(Task(targets=("f() == 1",), timeout_s=10), Generation("def f(): return 1"), box).score
print(box.tier, int(score), box.safe_for_strangers, *sorted(box.hardening), sep=",")
print(*[finding.what for finding in box.findings()], sep=",")
"""


@pytest.mark.parametrize("also", ["", "seccomp"])
def test_where_namespaces_and_landlock_are_refused_it_still_grades(
    tmp_path: Path, also: str
) -> None:
    code = REPORT.format(checkout=str(CHECKOUT), cache=str(tmp_path))
    options = ["--also", also] if also else []
    command = [sys.executable, REFUSING, *options, "--", sys.executable, "-c", code]
    env = {key: value for key, value in os.environ.items() if key != "EVALSITE_TIER"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = (line.split(",") for line in done.stdout.splitlines())
    assert first[:3] == ["rlimit", "1", "False"]
    assert ("seccomp" in first) == (not also) and "landlock" not in first
    assert {"bwrap", "unshare", "landlock", "rlimit"} <= set(second)
    assert ("seccomp" in second) == bool(also)


@pytest.mark.parametrize(
    ("tier", "names", "safe"),
    [
        ("bwrap", [], True),
        ("unshare", ["private-files"], True),
        ("unshare", ["landlock"], True),
        ("unshare-root", ["private-files", "seccomp"], True),
        ("unshare", ["seccomp"], False),
        ("rlimit", ["landlock", "seccomp"], True),
        ("rlimit", ["landlock"], False),
        ("rlimit", ["seccomp"], False),
    ],
)
def test_what_is_fit_for_programs_of_strangers(tier: str, names: list[str], safe: bool) -> None:
    assert safe_for_strangers(tier, names) is safe


def test_every_finding_is_one_line_with_a_fix() -> None:
    told = findings("rlimit", [], [])
    assert {"seccomp", "landlock", "rlimit"} <= {finding.what for finding in told}
    for finding in told:
        assert "\n" not in finding.line() and finding.fix.endswith(".") and finding.cause
