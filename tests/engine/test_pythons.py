"""Every interpreter that an environment may choose grades as the host's does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grading.engine import canary, humaneval
from grading.engine.cases import grade_case, read_cases
from grading.engine.grade import grade
from grading.engine.outcome import Outcome, PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Exchange, Format, Generation, Kind, Task

VERSIONS = ("3.8", "3.9", "3.10", "3.12", "3.13")
pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module", params=VERSIONS)
def other(request: pytest.FixtureRequest) -> Sandbox:
    made = Sandbox("other", base_python=request.param)
    try:
        made.ensure()
    except PlatformError as problem:
        pytest.skip(f"needs Python {request.param}: {problem}")
    assert made.python_version.startswith(f"{request.param}.")
    return made


def test_it_tells_right_from_wrong(other: Sandbox) -> None:
    canary.check(other)
    assert other.environment.stamp and not other.environment.venv
    assert other.environment.flags == ("-s", "-B", "-S")


def test_standard_modules_go_by_name_in_targets(other: Sandbox) -> None:
    program = "def f(x): return x * 0.5\ndef statistics(): return 1\n"
    task = Task(("math.isclose(f(1), 0.5)", "collections.Counter('aa')['a'] == f(4)"))
    verdict = grade(task, Generation(program), other)
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert verdict.python == other.python_version


def test_a_program_may_recurse_deeply(other: Sandbox) -> None:
    program = (
        "import sys\nsys.setrecursionlimit(60000)\n"
        "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"
    )
    verdict = grade(Task(("f(50000) == 50000",)), Generation(program), other)
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_a_program_may_read_standard_input(other: Sandbox) -> None:
    program = (
        "import os, sys\nsys.setrecursionlimit(60000)\n"
        "def f(n):\n    return 0 if n == 0 else 2 + f(n - 1)\n"
        "n = int(input())\nassert sys.stdin.read() == 'x'\nprint(f(n))\nexit()"
    )
    exchanges = (Exchange("3\nx", "6"), Exchange("20000\nx", "40000"), Exchange("x", "1"))
    verdict = grade(Task(exchanges, kind=Kind.STDIO), Generation(program), other)
    assert [target.true for target in verdict.targets] == [True, True, False], verdict.detail
    assert verdict.failure and verdict.failure.exception == "ValueError"


@pytest.mark.slow
def test_the_reference_cases(other: Sandbox, shared: Path) -> None:
    lines = (shared / "cases" / "grader_cases.jsonl").read_text(encoding="utf-8").splitlines()
    expected = {row["id"]: row for row in map(json.loads, lines)}
    rows = [grade_case(case, other) for case in read_cases(lines)]
    wrong = {
        row["id"]: row
        for row in rows
        if row["exit_code"] != expected[row["id"]]["expected_exit"]
        or abs(row["score"] - expected[row["id"]]["expected_score"]) > 0.001
    }
    assert len(rows) == len(expected) and wrong == {}


@pytest.mark.slow
def test_the_reference_solutions_of_humaneval(other: Sandbox) -> None:
    wrong = {}
    # As a worker grades them; the other tests of this file start every judge anew.
    with other.warm():
        for record in humaneval.convert(humaneval.load_rows()).records:
            task = Task(
                record.targets,
                prompt=record.prompt,
                setup=record.setup,
                entry_points=record.entry_points,
                timeout_s=20.0,
            )
            solution = record.reference.removeprefix(record.prompt)
            verdict = grade(task, Generation(solution, Format.COMPLETION), other)
            if verdict.outcome is not Outcome.PASS:
                wrong[record.task_id] = verdict.detail
    assert wrong == {}
