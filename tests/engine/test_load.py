"""Verdicts do not depend on what else the machine does; see also ``make bench-load``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading.engine import Generation, Sandbox, Task, grade
from grading.engine.spread import spread

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

SUM = "def f(n):\n    return sum(range(n))"
PROGRAMS = [
    # (program, target, outcome): many messages, much work, no end, wrong, none.
    ("def f(n): return n", "all(f(n) == n for n in range(300))", "pass"),
    (SUM, "f(15_000_000) == 112499992500000", "pass"),
    ("def f(n):\n    while True: pass", "f(1)", "timeout"),
    (SUM, "f(10) == 46", "assertion_fail"),
    ("def f(n", "f(1)", "syntax_error"),
]


@pytest.fixture
def busy() -> Iterator[None]:
    """Twice as many processes that only burn time as there are cores."""
    hog = [sys.executable, "-S", "-c", "while True: pass"]
    hogs = [subprocess.Popen(hog) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for process in hogs:
        process.kill()
        process.wait()


def outcome(case: tuple[str, str, str], sandbox: Sandbox) -> str:
    program, target, _ = case
    task = Task(targets=(target,), entry_points=("f",), timeout_s=1.5)
    return grade(task, Generation(program), sandbox).outcome.value


def test_verdicts_are_the_same_beside_busy_processes(tmp_path: Path, busy: None) -> None:
    sandbox = Sandbox("load", cache_root=tmp_path)
    sandbox.ensure()
    cases = PROGRAMS * 3
    assert list(spread(outcome, cases, sandbox, 2)) == [wanted for _, _, wanted in cases]
