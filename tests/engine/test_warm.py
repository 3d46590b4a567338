"""The warm judge: verdicts as from fresh ones, nothing carried over, and its end."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade, runtime
from grading.engine.cases import Case, grade_case
from grading.engine.isolation import TIERS
from grading.engine.outcome import PlatformError
from grading.engine.spread import spread
from grading.engine.usage import children, descendants
from grading.engine.workdir import PREFIX

pytestmark = pytest.mark.sandbox
CHECKOUT = Path(__file__).resolve().parents[2]
Kept = Callable[[], set[int]]
ONE = "def f(): return 1"
BUSY = "f() == 1 and [0 for i in iter(int, 1)]"


def make(tier: str, cache: Path) -> Sandbox:
    made = Sandbox("t", isolation=tier, cache_root=cache)
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    return made


@pytest.fixture(scope="module", params=TIERS)
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    return make(request.param, tmp_path_factory.mktemp("cache"))


@pytest.fixture
def kept() -> Kept:
    """The processes started since, below this one."""
    before = set(children(os.getpid()))
    return lambda: set(children(os.getpid())) - before


def parents(box: Sandbox) -> int:
    """How many processes are kept: the warm judge, and where files are private that of cells."""
    return 2 if box.tier == "bwrap" else 1


@pytest.fixture
def warm(box: Sandbox, kept: Kept) -> Iterator[Sandbox]:
    """With nothing left of it afterwards."""
    descriptors = os.listdir("/proc/self/fd")
    with box.warm():
        yield box
    assert kept() == set()
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)
    made = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(PREFIX)]
    assert not [name for name in made if f"-{os.getpid()}-" in name]


def run(
    sandbox: Sandbox, program: str, *targets: str, setup: str = "", timeout_s: float = 10
) -> Verdict:
    task = Task(targets=targets, setup=setup, entry_points=("f",), timeout_s=timeout_s)
    return grade(task, Generation(program), sandbox)


def holds(sandbox: Sandbox, *targets: str, setup: str = "") -> None:
    verdict = run(sandbox, ONE, "f() == 1", *targets, setup=setup)
    assert verdict.outcome is Outcome.PASS, verdict.detail


@pytest.mark.parametrize(
    ("program", "targets", "outcome"),
    [
        (ONE, ("f() == 1", "f() == 2"), Outcome.ASSERTION_FAIL),
        ("def f(:", ("f() == 1",), Outcome.SYNTAX_ERROR),
        ("raise ValueError", ("f() == 1",), Outcome.ERROR),
        ("import os\ndef f(): os._exit(0)", ("f() == 1",), Outcome.ERROR),
        ("def f():\n    while 1: pass", ("f() == 1",), Outcome.TIMEOUT),
        ("def f(): print('x' * 300_000)", ("f() == 1", "f() == 1"), Outcome.ERROR),
    ],
)
def test_one_judge_serves_run_after_run(
    warm: Sandbox, kept: Kept, program: str, targets: tuple[str, ...], outcome: Outcome
) -> None:
    holds(warm)
    before = kept()
    assert len(before) == parents(warm)
    verdict = run(warm, program, *targets, timeout_s=1)
    assert verdict.outcome is outcome
    holds(warm)
    # A program that was killed takes what starts the next along, never the judge.
    killed = outcome is Outcome.TIMEOUT
    assert len(kept() & before) == (1 if killed else parents(warm))
    box = make(warm.tier, Path(os.environ["EVALSITE_CACHE_DIR"]))
    fresh = run(box, program, *targets, timeout_s=1 if killed else 10)
    assert verdict.outcome is fresh.outcome
    if outcome is not Outcome.TIMEOUT:
        assert verdict.detail == fresh.detail


def test_a_copy_is_as_confined_as_a_fresh_judge(warm: Sandbox) -> None:
    refused = (
        "import ctypes, os\n"
        "def refused(call, *args):\n"
        "    try: call(*args)\n"
        "    except OSError: return True\n"
        "    return False\n"
        "with open('/proc/self/status') as file:\n"
        "    status = dict(line.split(':\\t') for line in file.read().splitlines())"
    )
    holds(
        warm,
        "refused(os.fork)",
        "refused(os.kill, os.getppid(), 0)",
        "refused(os.listdir, '/')" if "landlock" in warm.hardening else "True",
        "status['CapEff'] == status['CapPrm'] == '0' * 16",
        "status['Seccomp'] == '2' and status['NoNewPrivs'] == '1'",
        "ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0",
        "[name for name in os.listdir('/proc/self/fd') if int(name) > 2][3:] == []",
        setup=refused,
    )


def test_nothing_of_a_run_reaches_the_next(warm: Sandbox, kept: Kept) -> None:
    holds(warm)
    before = kept()
    assert len(before) == parents(warm)
    holds(
        warm, setup="import math, random, builtins, os\nmath.pi = builtins.abs = 3\nos.chdir('/')"
    )
    holds(warm, "abs(-1) == 1", "3.1 < math.pi < 3.2", "os.getcwd() != '/'")
    holds(warm, "random.random() == 0.8444218515250481", setup="import random")
    assert kept() == before


def test_a_file_left_behind_ends_the_judge(warm: Sandbox) -> None:
    setup = "import os\nfound = os.listdir()\nopen('left', 'w').close()"
    for _ in range(2):
        holds(warm, "found == []", setup=setup)


def test_a_judge_at_work_past_the_limit_is_given_up(warm: Sandbox, kept: Kept) -> None:
    holds(warm)
    before = kept()
    assert len(before) == parents(warm)
    assert run(warm, ONE, BUSY, timeout_s=0.5).outcome is Outcome.TIMEOUT
    assert len(kept()) == len(kept() & before) == parents(warm) - 1
    holds(warm)
    assert len(kept() - before) == 1


def test_a_judge_that_dies_is_replaced(warm: Sandbox, kept: Kept) -> None:
    assert run(warm, ONE, "f() and os._exit(3)").detail == "judge ended"
    assert run(warm, ONE, "f() and os.abort()").detail == "judge ended"
    holds(warm)
    pids = [pid for child in kept() for pid in (child, *descendants(child))]
    for pid in kept():
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while any(map(_runs, pids)):
        assert time.monotonic() < deadline, "something outlived its killed parent"
        time.sleep(0.001)
    holds(warm)


def test_a_copy_that_does_not_end_is_given_up(warm: Sandbox, kept: Kept) -> None:
    setup = "import posix, time\nposix._exit = lambda status: time.sleep(600)"
    holds(warm, setup=setup)
    before = kept()
    assert len(before) == parents(warm)
    holds(warm)
    assert len(kept() - before) == 1


def test_a_warm_judge_counts_for_nobody_who_wants_to_be_alone(box: Sandbox, tmp_path: Path) -> None:
    mine, other = make(box.tier, tmp_path), make(box.tier, tmp_path)
    with mine.warm():
        holds(mine)
        started = time.monotonic()
        with other.solo():
            assert time.monotonic() - started < 5
            holds(other)


def test_a_fork_of_the_owner_leaves_the_judge_alone(warm: Sandbox, kept: Kept) -> None:
    holds(warm)
    before = kept()
    assert len(before) == parents(warm)
    pid = os.fork()
    if pid == 0:
        with warm.warm():
            passed = run(warm, ONE, "f() == 1").outcome is Outcome.PASS
        os._exit(not passed)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    holds(warm)
    assert kept() == before


def test_a_judge_that_does_not_start_is_the_platforms_failure(
    warm: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "BOOT", "import sys; sys.exit('broken host')")
        with pytest.raises(PlatformError, match=r"did not start|takes no orders|not take its"):
            run(warm, ONE, "f() == 1")
    holds(warm)


OWNER = """
import sys
sys.path.insert(0, {checkout!r})
from grading.engine import Generation, Sandbox, Task, grade
from grading.engine.usage import descendants
import os, threading, time
box = Sandbox("t", isolation={tier!r}, cache_root={cache!r})
box.ensure()
def tell():
    time.sleep(1)
    print(*descendants(os.getpid()), flush=True)
threading.Thread(target=tell, daemon=True).start()
with box.warm():
    grade(Task(targets=({busy!r},), timeout_s=30.0), Generation({program!r}), box)
"""


def test_a_killed_worker_takes_judge_and_copy_along(box: Sandbox, tmp_path: Path) -> None:
    code = OWNER.format(
        checkout=str(CHECKOUT), tier=box.tier, cache=str(tmp_path), busy=BUSY, program=ONE
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert owner.stdout
    with owner.stdout:
        pids = owner.stdout.readline().split()
        owner.kill()
        owner.wait()
    # Cell, warm judge and copy, at least.
    assert len(pids) >= 3
    deadline = time.monotonic() + 5
    while any(_runs(int(pid)) for pid in pids):
        assert time.monotonic() < deadline, "something outlived its worker"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("workers", [1, 2])
def test_many_runs_keep_their_order(box: Sandbox, workers: int) -> None:
    marker = secrets.token_hex(4)
    cases = [Case(f"{marker}-{n}", Task((f"f() == {n % 2}",)), Generation(ONE)) for n in range(9)]
    rows = list(spread(grade_case, cases, box, workers))
    assert [row["id"] for row in rows] == [case.id for case in cases]
    assert [row["passed"] for row in rows] == [n % 2 for n in range(9)]
