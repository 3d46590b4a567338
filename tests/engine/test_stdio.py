"""Programs that read standard input: what they find there, and what their runs come to."""

from __future__ import annotations

import time
from typing import Any

import pytest

from grading.engine import exchanges, script_run
from grading.engine.grade import grade
from grading.engine.limits import OUTPUT_BYTES, WORK_BYTES, Limits
from grading.engine.outcome import Label, Outcome, PlatformError, Trick, Verdict
from grading.engine.program import build_program
from grading.engine.run import Timeout
from grading.engine.sandbox import Sandbox
from grading.engine.script_run import ScriptRun
from grading.engine.task import Exchange, Format, Generation, Kind, Task
from grading.engine.usage import Usage

pytestmark = pytest.mark.sandbox

DOUBLE = (Exchange("3\n", "6\n"), Exchange("4\n", "8\n"), Exchange("5\n", "10\n"))


def run(sandbox: Sandbox, program: str, *targets: Exchange, text: str = "", **task: Any) -> Verdict:
    task.setdefault("timeout_s", 10.0)
    return grade(
        Task(targets=targets or DOUBLE, kind=Kind.STDIO, **task),
        Generation(text or program),
        sandbox,
    )


def prints(sandbox: Sandbox, program: str, given: str, **task: Any) -> str:
    """What the program prints for an input."""
    verdict = run(sandbox, program, Exchange(given, "\0never"), **task)
    printed = verdict.targets[0].printed
    assert printed is not None
    assert verdict.failure is not None
    assert not verdict.failure.exception, verdict.detail
    return printed.head


GIVEN = "a b\r\nç\n\nlast"

READING = {
    "input": "print([input() for _ in range(4)])",
    "sys.stdin.read": "import sys\nprint(sys.stdin.read().split('\\n'))",
    "sys.stdin": "import sys\nprint([line.removesuffix('\\n') for line in sys.stdin])",
    "readlines": "import sys\nprint([line.strip('\\n') for line in sys.stdin.readlines()])",
    "open(0)": "print(open(0, newline='\\n').read().split('\\n'))",
    "/dev/stdin": "print(open('/dev/stdin', newline='\\n').read().split('\\n'))",
    "buffer": "import sys\nprint(sys.stdin.buffer.read().decode().split('\\n'))",
    "buffer.readline": (
        "import sys\nline = iter(sys.stdin.buffer.readline, b'')\n"
        "print([one.decode().strip('\\n') for one in line])"
    ),
    "os.read": "import os\nprint(os.read(0, 10**6).decode().split('\\n'))",
    "os.read by size": "import os\nprint(os.read(0, os.fstat(0).st_size).decode().split('\\n'))",
    "mmap": (
        "import mmap\nwith mmap.mmap(0, 0, access=mmap.ACCESS_READ) as m:\n"
        "    print(m[:].decode().split('\\n'))"
    ),
    "fileinput": (
        "import fileinput\nprint([line.strip('\\n') for line in "
        "fileinput.input(openhook=lambda *a: None)])"
    ),
    "BytesIO": (
        "import io, os, sys\n"
        "input = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\n"
        "print([input().decode().strip('\\n') for _ in range(4)])"
    ),
    "seek": (
        "import sys\nsys.stdin.read()\nsys.stdin.seek(0)\nprint(sys.stdin.read().split('\\n'))"
    ),
}


@pytest.mark.parametrize("way", READING)
def test_every_way_to_read(sandbox: Sandbox, way: str) -> None:
    assert prints(sandbox, READING[way], GIVEN) == "['a b\\r', 'ç', '', 'last']\n"


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("try:\n    input()\nexcept EOFError:\n    print('end')", "end\n"),
        ("if __name__ == '__main__':\n    print('main')", "main\n"),
        ("import __main__\nx = 1\nprint(__main__.x)", "1\n"),
        ("import sys\nprint(sys.argv)", "['program.py']\n"),
        ("import random\nprint(random.random())", "0.8444218515250481\n"),
        ("print(len(str(10 ** 5000)))", "5001\n"),
        ("import os\nprint(os.listdir('.'))", "[]\n"),
        ("import os\nos.write(1, b'raw')", "raw"),
        ("open(1, 'w').write('by number')", "by number"),
        ("import sys\nsys.stdout = open('/dev/stdout', 'w')\nprint('x')", "x\n"),
        ("import atexit\natexit.register(print, 'late')\nprint('early')", "early\nlate\n"),
        (
            "import threading, time\n"
            "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()",
            "thread\n",
        ),
        (
            "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
            "True\n",
        ),
    ],
)
def test_it_runs_as_a_script(sandbox: Sandbox, program: str, printed: str) -> None:
    assert prints(sandbox, program, "") == printed


def test_a_large_input_arrives_whole(sandbox: Sandbox) -> None:
    given = "0123456789\n" * 400_000
    assert prints(sandbox, "import sys\nprint(len(sys.stdin.read()))", given) == "4400000\n"


def test_each_target_has_a_process_and_an_input_of_its_own(sandbox: Sandbox) -> None:
    program = "import os\nprint(os.path.exists('left'), input())\nopen('left', 'w').write('x')"
    verdict = run(sandbox, program, *(Exchange(f"{n}\n", f"False {n}") for n in range(3)))
    assert verdict.outcome is Outcome.PASS
    assert verdict.score == 1.0
    assert [target.label for target in verdict.targets] == [Label.SEALED] * 3


ENDINGS = [
    # (program, outcome, passed, detail, exception)
    ("print(2 * int(input()))", "pass", 3, "", ""),
    ("import sys\nprint(2 * int(input()))\nsys.exit()", "pass", 3, "", ""),
    ("print(2 * int(input()))\nexit()\nprint(1)", "pass", 3, "", ""),
    ("print(2 * int(input()))\nquit(0)", "pass", 3, "", ""),
    ("print(2 * int(input()))\nraise SystemExit(0)", "pass", 3, "", ""),
    (
        "import os\nprint(2 * int(input()), flush=True)\nos._exit(0)",
        "pass",
        3,
        "",
        "",
    ),
    (
        "print(6)",
        "assertion_fail",
        1,
        "target 2 of 3: line 1 of the output: expected '8', printed '6'",
        "",
    ),
    (
        "",
        "assertion_fail",
        0,
        "target 1 of 3: line 1 of the output: expected '6', printed nothing more",
        "",
    ),
    (
        "n = int(input())\nprint(2 * n)\nif n == 4: raise ValueError('four')",
        "assertion_fail",
        2,
        "target 2 of 3: ValueError: four (line 3)",
        "ValueError",
    ),
    (
        "1 / 0",
        "assertion_fail",
        0,
        "target 1 of 3: ZeroDivisionError: division by zero (line 1)",
        "ZeroDivisionError",
    ),
    (
        "print(2 * int(input()))\nraise SystemExit(3)",
        "assertion_fail",
        0,
        "target 1 of 3: exited with status 3",
        "",
    ),
    (
        "print(2 * int(input()))\nraise SystemExit('no')",
        "assertion_fail",
        0,
        "target 1 of 3: exited with status 1",
        "",
    ),
    (
        "import sys\nsys.stderr.write(str(2 * int(input())))",
        "assertion_fail",
        0,
        "target 1 of 3: line 1 of the output: expected '6', printed nothing more",
        "",
    ),
    (
        "import os\nprint(2 * int(input()))\nos.close(1)",
        "assertion_fail",
        0,
        "target 1 of 3: exited with status 120",
        "",
    ),
    ("import socket", "assertion_fail", 0, "target 1 of 3: denied: socket", "ImportError"),
    (
        "def f(:",
        "syntax_error",
        0,
        "SyntaxError: invalid syntax (program.py, line 1)",
        "SyntaxError",
    ),
    ("x = '\ud800'", "syntax_error", 0, None, "UnicodeEncodeError"),
    (
        "import os\nn = int(input())\nprint(2 * n, flush=True)\nif n == 4: os.kill(os.getpid(), 9)",
        "error",
        1,
        "killed by SIGKILL",
        "",
    ),
    ("bytearray(5 << 30)", "error", 0, "MemoryError (line 1)", "MemoryError"),
    ("while True: print('x' * 1000)", "error", 0, "output overflow", ""),
    (
        "import os\nwhile True: os.write(2, b'x' * 1000)",
        "error",
        0,
        "output overflow",
        "",
    ),
    (
        "import os\nfor n in range(3, 64):\n"
        "    try: os.write(n, b'X' + bytes(12))\n    except OSError: pass\n"
        "print(2 * int(input()))",
        "error",
        0,
        "broke the protocol: a frame that is not the cell's",
        "",
    ),
]


@pytest.mark.parametrize(("program", "outcome", "passed", "detail", "exception"), ENDINGS)
def test_how_a_program_ends(
    sandbox: Sandbox,
    program: str,
    outcome: str,
    passed: int,
    detail: str | None,
    exception: str,
) -> None:
    verdict = run(sandbox, program)
    assert (verdict.outcome, verdict.passed, verdict.total) == (outcome, passed, 3), verdict
    if detail is not None:
        assert verdict.detail == detail
    if outcome == "pass":
        assert verdict.failure is None
        return
    assert verdict.failure is not None
    assert verdict.failure.exception == exception
    assert verdict.failure.phase == ("compile" if outcome == "syntax_error" else "target")
    assert (verdict.score > 0) == (outcome == "assertion_fail" and passed > 0)


def test_the_limit_holds_for_each_target(sandbox: Sandbox) -> None:
    program = "import time\nn = int(input())\ntime.sleep(0.5)\nprint(2 * n)"
    verdict = run(sandbox, program, timeout_s=1.4)
    assert verdict.outcome is Outcome.PASS
    assert verdict.wall_s > 1.5
    assert all(0.5 <= target.duration_s < 1.4 for target in verdict.targets)


def test_a_timeout_ends_the_whole(sandbox: Sandbox) -> None:
    program = "n = int(input())\nprint(2 * n, flush=True)\nwhile n == 4: pass"
    verdict = run(sandbox, program, timeout_s=1.0)
    assert verdict.outcome is Outcome.TIMEOUT
    assert verdict.detail == "target 2 of 3: not finished within 1 s"
    assert [target.true for target in verdict.targets] == [True, False, False]
    assert verdict.targets[2].detail == "not reached"
    assert verdict.targets[2].printed is None
    # What it printed before is kept.
    assert verdict.targets[1].printed is not None
    assert verdict.targets[1].printed.head == "8\n"
    assert (verdict.score, verdict.stdout.head) == (0.0, "8\n")


def test_a_starved_timeout_runs_again_alone(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def fake(program: str, given: str, *rest: Any, patient: bool = False) -> ScriptRun:
        first = given == "4\n" and seen.count(given) == 0
        assert patient is (given == "4\n" and given in seen)
        seen.append(given)
        if first:
            return ScriptRun(ended=Timeout(), usage=Usage(1.0, 2.0, 1), wall_s=3.0)
        return ScriptRun(returncode=0, output=bytearray(b"%d" % (2 * int(given))))

    monkeypatch.setattr(script_run, "run", fake)
    task = Task(targets=DOUBLE, kind=Kind.STDIO)
    judged = exchanges.judge(task, "", sandbox, Limits())
    assert judged.outcome is Outcome.PASS
    assert seen == ["3\n", "4\n", "4\n", "5\n"]


def test_what_was_used_is_of_all_runs(sandbox: Sandbox) -> None:
    program = "x = bytearray(50 << 20)\nfor _ in range(10 ** 6): pass\nprint(2 * int(input()))"
    verdict = run(sandbox, program)
    assert verdict.outcome is Outcome.PASS
    assert verdict.peak_bytes > 50 << 20
    assert verdict.cpu_s > 0
    assert verdict.wall_s == pytest.approx(sum(target.duration_s for target in verdict.targets))


def test_what_is_printed_is_cut_and_counted(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "print('\\x1b[1m' + 'é' * 5000)", Exchange("", "x"))
    printed = verdict.targets[0].printed
    assert printed is not None
    assert (len(printed.head), printed.size) == (exchanges.PRINTED_CHARS, 10_005)
    assert "\x1b" not in printed.head
    assert len(verdict.targets[0].detail) < 300


def test_output_up_to_the_cap_counts(sandbox: Sandbox) -> None:
    long = "x" * (OUTPUT_BYTES - 1) + "\n"
    program = f"print('x' * {OUTPUT_BYTES - 1})"
    assert run(sandbox, program, Exchange("", long)).outcome is Outcome.PASS


def test_bytes_that_are_no_text_equal_nothing(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "import os\nos.write(1, b'\\xff')", Exchange("", "\ufffd"))
    assert verdict.outcome is Outcome.ASSERTION_FAIL


def test_streams_are_those_of_the_deciding_target(sandbox: Sandbox) -> None:
    program = (
        "import sys\nn = int(input())\nprint(n)\nsys.stderr.write(f'error {n}')\nsys.exit(n == 4)"
    )
    verdict = run(sandbox, program, *(Exchange(f"{n}", f"{n}") for n in (3, 4, 5)))
    assert (verdict.stdout.head, verdict.stderr.head) == ("4\n", "error 4")
    assert verdict.failure is not None
    assert verdict.failure.exit_status == 1


def test_a_denied_import_is_recorded_though_caught(sandbox: Sandbox) -> None:
    program = "try:\n    import shutil\nexcept ImportError:\n    pass\nprint(2 * int(input()))"
    verdict = run(sandbox, program)
    assert verdict.outcome is Outcome.PASS
    assert verdict.denied == ["shutil"]
    assert run(sandbox, "import shutil\n" + program, denylist=()).outcome is Outcome.PASS


def test_processes_are_denied_unless_the_task_allows_them(sandbox: Sandbox) -> None:
    program = (
        "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n"
        "else:\n    print(2 * int(input()))"
    )
    assert run(sandbox, program).denied == ["os.fork"]
    assert run(sandbox, program, allow_processes=True).outcome is Outcome.PASS


def test_a_process_left_behind_is_not_waited_for(sandbox: Sandbox) -> None:
    program = (
        "import os, time\nprint(2 * int(input()), flush=True)\n"
        "if os.fork() == 0:\n    time.sleep(60)\n    print('late')"
    )
    started = time.monotonic()
    verdict = run(sandbox, program, allow_processes=True, timeout_s=20.0)
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert time.monotonic() - started < 20.0


def test_signs_of_tricks(sandbox: Sandbox) -> None:
    patched = "import builtins\nbuiltins.print = print\nbuiltins.len = max\nprint(2 * int(input()))"
    assert run(sandbox, patched).tricks == [Trick.PATCHED_BUILTINS]
    # To end early is how many an honest script ends.
    early = "import sys\nprint(2 * int(input()))\nsys.exit(0)"
    assert run(sandbox, early).tricks == []
    forging = "import os\nos.write(41, b'X' + bytes(12))"
    assert run(sandbox, forging).tricks == [Trick.OUT_OF_TURN]


def test_what_the_process_says_of_a_failure_is_not_trusted(sandbox: Sandbox) -> None:
    lie = (
        "import os, json\n"
        "said = json.dumps({{'failure': {failure}, 'denied': 5, 'tricks': [1, 'x']}}).encode()\n"
        "os.write(41, b'X' + bytes(8) + len(said).to_bytes(4, 'big') + said)\n"
        "print(6, flush=True)\nos._exit(1)"
    )
    told = run(sandbox, lie.format(failure="{'exception': 'E' * 9999, 'frames': 'x'}"))
    assert told.outcome is Outcome.ASSERTION_FAIL
    assert told.failure is not None
    assert len(told.failure.exception) <= 120
    assert told.failure.frames == []
    assert run(sandbox, lie.format(failure="7")).outcome is Outcome.ERROR


def test_nothing_to_do_is_an_error(sandbox: Sandbox) -> None:
    verdict = grade(Task(targets=(), kind=Kind.STDIO), Generation("print(1)"), sandbox)
    assert (verdict.outcome, verdict.detail) == (Outcome.ERROR, "no targets")


def test_a_cell_that_does_not_start_is_the_platforms_failure(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grading.engine.runtime.BOOT", "raise SystemExit('broken')")
    with pytest.raises(PlatformError, match="did not start"):
        run(sandbox, "print(1)")


def test_an_input_that_finds_no_room_is_the_platforms_failure(sandbox: Sandbox) -> None:
    if sandbox.tier == "rlimit":
        pytest.skip("this tier's work directory is the host's")
    with pytest.raises(PlatformError, match="No space left"):
        run(sandbox, "print(1)", Exchange("x" * (WORK_BYTES + 1), "1"))


def test_a_tick_comes_about_every_second(sandbox: Sandbox) -> None:
    ticks: list[float] = []
    task = Task(targets=DOUBLE[:1], kind=Kind.STDIO, timeout_s=10.0)
    program = Generation("import time\ntime.sleep(2.5)\nprint(6)")
    grade(task, program, sandbox, lambda: ticks.append(time.monotonic()))
    assert len(ticks) >= 2


REPLIES = [
    ("```python\nfirst()\n```\nor\n```python\nsecond()\n```", "first()"),
    ("Input:\n```\n3\n```\nProgram:\n```py\nprint(6)\n```", "3"),
    ("```cpp\nint main() {}\n```\n```python\nprint(6)\n```", "print(6)"),
    ("```text\n3\n```\n```python\nprint(6)\n```", "print(6)"),
    ("print(6)", "print(6)"),
    ("<think>```python\nno()\n```\n</think>\n```python\nyes()\n```", "yes()"),
]


@pytest.mark.parametrize(("reply", "program"), REPLIES)
def test_which_block_is_the_program(reply: str, program: str) -> None:
    task = Task(targets=DOUBLE, kind=Kind.STDIO, prompt="Read n and print 2 n.")
    assert build_program(task, Generation(reply)).text.strip() == program


def test_a_prompt_that_happens_to_be_python_stays_out() -> None:
    task = Task(targets=DOUBLE, kind=Kind.STDIO, prompt="import os\nDouble")
    assert build_program(task, Generation("print(6)")).text == "print(6)"
    completion = Generation("\nprint(6)", Format.COMPLETION)
    assert build_program(task, completion).text == "import os\nDouble\nprint(6)"
