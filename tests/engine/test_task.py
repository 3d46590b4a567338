"""Which names a program has to define."""

from __future__ import annotations

import pytest

from grading.engine.grade import grade
from grading.engine.outcome import Outcome
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task, called_names

HELPED = "import math\n\ndef poly(x):\n    return x\n\ndef f(x):\n    '''Find it.'''\n"


@pytest.mark.parametrize(
    ("targets", "setup", "prompt", "names"),
    [
        (("f(1) == 1", "assert g(f(2))"), "", "", ("f", "g")),
        (("sum([1]) == 1", "assert sum([]) == 0"), "", "", ("sum",)),
        (("check(1)", "len(check(2)) == 1"), "", "", ("check",)),
        (("all(map(f, [1]))",), "", "", ("f",)),
        (("abs(sum([1])) == 1",), "", "", ()),
        (("len([]) == 0", "sum([]) == 0"), "", "", ()),
        (("1 == 1",), "", "", ()),
        (("math.floor(f(1)) == 1",), "", "", ("f",)),
        (("math.floor(1) == 1",), "", "", ()),
        (("candidate(1)",), "candidate = f", "", ("f",)),
        (("f(1) == expected(1)",), "def expected(x): return x", "", ("f",)),
        (("poly(f(1)) == 0",), "", HELPED, ("f",)),
        (("(lambda h: h(f))(1)",), "", "", ("f",)),
        (("total = f(1)\nassert total == 1",), "", "", ("f",)),
        (("is no python",), "", "", ()),
    ],
)
def test_names_that_targets_ask_of_a_program(
    targets: tuple[str, ...], setup: str, prompt: str, names: tuple[str, ...]
) -> None:
    assert called_names(targets, setup, prompt) == names


@pytest.mark.sandbox
def test_a_builtin_among_several_is_never_the_programs(sandbox: Sandbox) -> None:
    program = "def all(x): return True\ndef map(*x): return []\ndef f(x): return False\n"
    task = Task(targets=("all(map(f, [1]))", "abs(max([f(1), 0])) == 7"), timeout_s=10.0)
    assert grade(task, Generation(program), sandbox).outcome is Outcome.ASSERTION_FAIL
