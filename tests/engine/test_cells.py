"""Cells that share a sandbox: each is a fresh interpreter, and none finds or harms another."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest

from grading.engine import Generation, Outcome, Sandbox, Task, Verdict, grade, runtime
from grading.engine.isolation.rlimit import rlimits
from grading.engine.limits import Limits
from grading.engine.outcome import PlatformError
from grading.engine.task import Exchange, Kind
from grading.engine.usage import children

pytestmark = pytest.mark.sandbox
ONE = "def f(): return 1"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    made = Sandbox("t", isolation="bwrap", cache_root=tmp_path_factory.mktemp("cache"))
    try:
        made.ensure()
    except PlatformError as error:
        pytest.skip(str(error))
    if not {"seccomp", "no-capabilities"} <= set(made.hardening):
        pytest.skip("nothing keeps programs from starting processes here")
    return made


@pytest.fixture
def kept(box: Sandbox) -> Iterator[Sandbox]:
    with box.warm():
        holds(box, ONE, "f() == 1")
        yield box


def run(sandbox: Sandbox, program: str, *targets: str, timeout_s: float = 10) -> Verdict:
    task = Task(targets=targets, entry_points=("f",), timeout_s=timeout_s, denylist=())
    return grade(task, Generation(program), sandbox)


def holds(sandbox: Sandbox, program: str, *targets: str) -> None:
    verdict = run(sandbox, program, *targets)
    assert verdict.outcome is Outcome.PASS, verdict.detail


def both(sandbox: Sandbox, program: str, *targets: str) -> list[tuple[Outcome, str, int]]:
    """What comes of it in the kept sandbox and in one of its own."""
    alone = Sandbox("alone", isolation="bwrap", cache_root=os.environ["EVALSITE_CACHE_DIR"])
    alone.ensure()
    verdicts = [run(box, program, *targets, timeout_s=1) for box in (sandbox, alone)]
    return [(verdict.outcome, verdict.detail, len(verdict.targets)) for verdict in verdicts]


def test_a_sandbox_is_kept_from_program_to_program(kept: Sandbox) -> None:
    before = children(os.getpid())
    program = "import os\ndef f(): return os.getpid() > os.getppid() > 1"
    for _ in range(3):
        holds(kept, program, "f()")
    assert children(os.getpid()) == before


@pytest.mark.parametrize(
    ("dirt", "clean"),
    [
        ("import math, builtins\nmath.pi = builtins.len = 3", "math.pi > 3.1 and len('a') == 1"),
        ("open('left', 'w').close()", "os.listdir() == []"),
        ("open('/tmp/left', 'w').close()", "os.listdir('/tmp') == []"),
        ("open('/dev/shm/left', 'w').close()", "os.listdir('/dev/shm') == []"),
        ("open('left', 'w').close(); os.remove('left')", "os.listdir() == []"),
        ("os.chmod('.', 0)", "os.access('.', os.W_OK)"),
        ("os.chmod('/tmp', 0o500)", "os.access('/tmp', os.W_OK)"),
        ("os.utime('.', (0, 0))", "os.stat('.').st_mtime > 0"),
        ("os.environ['X'] = os.putenv('Y', '1') or '1'", "not {'X', 'Y'} & set(os.environ)"),
        ("os.chdir('/'); os.umask(0)", "(os.getcwd(), os.umask(0o22)) == ('/work', 0o22)"),
        (
            "import threading, time\n"
            "threading.Thread(target=lambda: time.sleep(600), daemon=False).start()",
            "len(os.listdir('/proc/self/task')) == 1",
        ),
        ("import resource\nresource.setrlimit(7, (20, 20))", "resource.getrlimit(7)[0] == 64"),
    ],
)
def test_nothing_a_program_did_reaches_the_next(kept: Sandbox, dirt: str, clean: str) -> None:
    holds(kept, f"import os\n{dirt}\ndef f(): return 1", "f() == 1")
    holds(kept, f"import math, os, resource\ndef f(): return {clean}", "f()")


@pytest.mark.parametrize(
    "deed",
    [
        "os.kill(os.getppid(), 9)",
        "os.kill(os.getppid(), 0)",
        "os.kill(1, 15)",
        "os.kill(0, 9)",
        "os.kill(-1, 9)",
        "os.killpg(os.getpgid(os.getppid()), 9)",
        "os.fork()",
        "resource.prlimit(os.getppid(), 0, (1, 1))",
        "os.setpriority(0, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), [0])",
        "open(f'/proc/{os.getppid()}/mem', 'rb')",
        "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
        "os.listdir(f'/proc/{os.getppid()}/fd')",
        "os.readlink(f'/proc/{os.getppid()}/exe')",
        "os.open('/proc/1/oom_score_adj', os.O_WRONLY)",
    ],
)
def test_a_program_cannot_reach_what_starts_the_next(kept: Sandbox, deed: str) -> None:
    before = children(os.getpid())
    attempt = f"try: {deed}\n    except (OSError, ImportError): return 'refused'"
    program = f"import os, resource\ndef f():\n    {attempt}\n"
    holds(kept, program, "f() == 'refused'")
    holds(kept, ONE, "f() == 1")
    assert children(os.getpid()) == before


def test_a_program_holds_no_descriptor_but_its_own(kept: Sandbox) -> None:
    program = (
        "import os\n"
        "def f(): return sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) < 40)"
    )
    # The three streams, and the directory being listed.
    holds(kept, program, "f() == [0, 1, 2, 3]")
    holds(kept, "import os\ndef f(): return 'EVALSITE_CAPTURE_FD' in os.environ", "not f()")


@pytest.mark.parametrize(
    "program",
    [
        "import os\ndef f(): os._exit(0)",
        "import os\ndef f(): os._exit(3)",
        "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGKILL)",
        "import os\ndef f(): os.abort()",
        "import signal\ndef f(): signal.raise_signal(signal.SIGTERM)",
        "def f():\n    while 1: pass",
        "def f(): print('x' * 300_000)",
        "def f(): return f()",
        "def f(): return [0] * 10**10",
        "def f(:",
        "import sys\nsys.exit(1)",
        "raise ValueError('no')",
    ],
)
def test_an_end_is_told_as_in_a_sandbox_of_its_own(kept: Sandbox, program: str) -> None:
    shared, alone = both(kept, program, "f() == 1")
    assert shared == alone
    holds(kept, ONE, "f() == 1")


def test_a_program_that_does_not_let_go_is_the_last_one_there(kept: Sandbox) -> None:
    before = set(children(os.getpid()))
    # The interpreter's own exit is gone, so the end of its input leaves it running.
    stays = "import posix, time\nposix._exit = lambda status: time.sleep(600)\n" + ONE
    holds(kept, stays, "f() == 1")
    assert len(before - set(children(os.getpid()))) == 1
    holds(kept, ONE, "f() == 1")


def test_the_limits_are_those_of_a_sandbox_of_its_own(kept: Sandbox) -> None:
    limits = Limits(timeout_s=10, address_space_bytes=kept.address_space_limit)
    wanted = {which: (value, value) for which, value in rlimits(limits)}
    assert wanted[resource.RLIMIT_CORE] == (0, 0) and len(wanted) == 7
    program = "import resource\ndef f(which): return resource.getrlimit(which)"
    holds(kept, program, *(f"f({which}) == {pair}" for which, pair in wanted.items()))


def test_what_a_program_used_is_counted(kept: Sandbox) -> None:
    program = (
        "import time\n"
        "def f():\n"
        "    data = bytearray(40 << 20)\n"
        "    while time.process_time() < 0.3: pass\n"
        "    return len(data)"
    )
    verdict = run(kept, program, "f() == 40 << 20")
    assert verdict.outcome is Outcome.PASS
    assert 0.25 < verdict.cpu_s < 2
    assert 40 << 20 < verdict.peak_bytes < 200 << 20


def test_a_killed_parent_costs_a_run_at_most(kept: Sandbox) -> None:
    for pid in children(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    # It may have been dying when it was asked: that is the platform's failure.
    with suppress(PlatformError):
        assert run(kept, ONE, "f() == 1").outcome is Outcome.PASS
    holds(kept, ONE, "f() == 1")


def test_an_order_without_an_answer_ends_the_parent(
    kept: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(children(os.getpid()))

    def late(*_: object) -> None:
        raise TimeoutError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("grading.engine.copies.Copy.__init__", late)
        with pytest.raises(PlatformError, match="takes no orders"):
            run(kept, ONE, "f() == 1")
    unanswered = set(children(os.getpid())) - before
    holds(kept, ONE, "f() == 1")
    assert unanswered.isdisjoint(children(os.getpid()))


def test_a_parent_that_does_not_start_is_the_platforms_failure(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "WARM_CELL", ("framing",))
        with box.warm(), pytest.raises(PlatformError):
            run(box, ONE, "f() == 1")
    with box.warm():
        holds(box, ONE, "f() == 1")


def test_programs_that_may_start_processes_get_a_sandbox_of_their_own(kept: Sandbox) -> None:
    task = Task(("f() == 0",), timeout_s=10, denylist=(), allow_processes=True)
    program = "import subprocess\ndef f(): return subprocess.call(['true'])"
    assert grade(task, Generation(program), kept).outcome is Outcome.PASS


def test_programs_that_read_their_input_share_it_too(kept: Sandbox) -> None:
    before = children(os.getpid())
    task = Task((Exchange("2\n", "4\n"), Exchange("3\n", "9\n")), kind=Kind.STDIO, timeout_s=10)
    verdict = grade(task, Generation("n = int(input())\nprint(n * n)"), kept)
    assert verdict.outcome is Outcome.PASS, verdict.detail
    verdict = grade(task, Generation("import sys\nsys.exit(3)"), kept)
    assert verdict.outcome is not Outcome.PASS
    assert children(os.getpid()) == before


def test_a_run_leaves_no_descriptor_open(kept: Sandbox) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    for program in (ONE, "import os\ndef f(): os._exit(1)"):
        run(kept, program, "f() == 1")
        assert len(os.listdir("/proc/self/fd")) == descriptors
