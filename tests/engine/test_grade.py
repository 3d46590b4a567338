"""What targets mean when the program lives in another process, and how runs end."""

from __future__ import annotations

import textwrap
import time
from dataclasses import replace
from typing import Any

import pytest

from grading.engine import session
from grading.engine.grade import grade
from grading.engine.judged import starved
from grading.engine.limits import Limits
from grading.engine.outcome import Outcome, PlatformError, Trick, Verdict
from grading.engine.run import CellDied, Ended, JudgeDied, Run, Timeout
from grading.engine.sandbox import Sandbox
from grading.engine.task import Format, Generation, Task
from grading.engine.usage import Usage

pytestmark = pytest.mark.sandbox


def run(sandbox: Sandbox, program: str, *targets: str, **task: Any) -> Verdict:
    task.setdefault("timeout_s", 10.0)
    text = textwrap.dedent(program)
    return grade(Task(targets=targets, **task), Generation(text), sandbox)


def answers(verdict: Verdict) -> str:
    """One letter per target: t true, f false; with labels: s, i, v."""
    return " ".join(
        ("t" if target.true else "f") + target.label.value[0] for target in verdict.targets
    )


CLASSES = """
    import re
    from dataclasses import dataclass
    from collections import namedtuple, OrderedDict
    from enum import Enum, IntEnum
    Point = namedtuple("Point", "x y")
    class Colour(Enum):
        RED = 1
        BLUE = 2
    class Level(IntEnum):
        LOW = 1
    @dataclass
    class Pair:
        a: int
        b: int
        def total(self, more=0):
            return self.a + self.b + more
    class Stack(list):
        def top(self):
            return self[-1]
    class Odd(ValueError):
        pass
    class Bag:
        def __init__(self, *items): self.items = items
        def __iter__(self): return iter(self.items)
        def __str__(self): return "bag"
    def point(x): return Point(x, 2)
    def colour(x): return Colour(x)
    def level(): return Level.LOW
    def pair(a, b): return Pair(a, b)
    def stack(*xs): return Stack(xs)
    def odd(x):
        if x % 2: raise Odd("odd one")
        return x
    def keyed(d): return d["missing"]
    def bag(*xs): return Bag(*xs)
    def first(p): return p.a
    def found(x): return re.match("a", x)
    def same(x): return x
    def adder(n): return lambda x: x + n
"""

MEANINGS = [
    # data
    ("point(1) == (1, 2)", "ts"),
    ("point(1).x == 1 and point(1)._fields == ('x', 'y')", "ts"),
    ("point(1) == Point(1, 2)", "ts"),
    ("same(point(3)).y == 2", "ts"),
    ("same(1) == 1.0 and isinstance(same(1), int) and not isinstance(same(1), bool)", "ts"),
    ("same({1: [2, (3, {4})]}) == {1: [2, (3, {4})]}", "ts"),
    ("same(float('inf')) == float('inf')", "ts"),
    ("(lambda x: same(x) is x)([1])", "ts"),
    ("(lambda x: same([x])[0] is x)([1])", "ts"),
    ("same(b'a') == b'a' and same(1j) == 1j and same(range(3)) == range(3)", "ts"),
    ("same(same) is same(same)", "ts"),
    # enums
    ("colour(1) is colour(1) and colour(1) == Colour.RED", "ts"),
    ("colour(1).name == 'RED' and colour(2).value == 2", "ts"),
    ("colour(1) == 1", "fs"),
    ("level() == 1 and level() is Level.LOW and level() + 1 == 2", "ts"),
    ("same(colour(2)) is colour(2)", "ts"),
    # classes of the program
    ("pair(1, 2).a == 1", "ts"),
    ("pair(1, 2).total() == 3 and pair(1, 2).total(more=4) == 7", "ts"),
    ("pair(1, 2) == Pair(1, 2)", "ti"),
    ("pair(1, 2) == pair(1, 3)", "fi"),
    ("pair(1, 2) != Pair(1, 3)", "ti"),
    ("pair(1, 2) == (1, 2)", "fs"),
    ("(1, 2) == pair(1, 2)", "fs"),
    ("isinstance(pair(1, 2), Pair)", "ti"),
    ("isinstance(point(1), tuple)", "ts"),
    ("isinstance(same(3), Pair)", "fs"),
    ("first(Pair(5, 6)) == 5", "ts"),
    ("pair(1, 2) + 1", "fs"),
    ("pair(1, 2) < pair(3, 4)", "fs"),
    ("len(pair(1, 2)) == 2", "fs"),
    ("pair(1, 2)", "fs"),
    ("found('a') and not found('b')", "ts"),
    ("found('a').group() == 'a' and found('a') != 'a'", "ts"),
    ("str(bag(1)) == 'bag'", "ts"),
    ("list(bag(1, 2)) == [1, 2]", "ts"),
    ("p = pair(1, 2)\np.a = 10\nassert p.total() == 12", "ts"),
    # data with a class of its own
    ("stack(1, 2) == [1, 2] and stack(1, 2).top() == 2 and len(stack(1)) == 1", "ts"),
    # functions
    ("adder(2)(3) == 5", "ts"),
    ("callable(adder(2)) and pair.__name__ == 'pair'", "ts"),
    ("sorted([3, 1, 2], key=same) == [1, 2, 3]", "ts"),
    ("list(map(same, [1, 2])) == [1, 2]", "ts"),
    # exceptions
    (
        "try:\n    odd(1)\nexcept ValueError as e:\n    assert str(e) == 'odd one'",
        "ts",
    ),
    ("try:\n    odd(1)\nexcept Odd as e:\n    pass\nelse:\n    assert 0", "ts"),
    ("try:\n    keyed({})\nexcept KeyError as e:\n    assert e.args == ('missing',)", "ts"),
    ("odd(1) is None", "fs"),
    ("odd(2) == 2", "ts"),
    # nothing asked
    ("1 == 1", "tv"),
    ("assert True, 'always'", "tv"),
    ("undefined_name", "fs"),
    ("this is no python", "fv"),
]


@pytest.fixture(scope="module")
def meanings(sandbox: Sandbox) -> dict[str, str]:
    verdict = run(sandbox, CLASSES, *(target for target, _ in MEANINGS), timeout_s=30.0)
    shown = answers(verdict).split()
    details = [target.detail for target in verdict.targets]
    return {
        target: f"{answer} {detail}" if answer[0] != right[0] else answer
        for (target, right), answer, detail in zip(MEANINGS, shown, details, strict=True)
    }


@pytest.mark.parametrize(("target", "right"), MEANINGS)
def test_what_a_target_means(meanings: dict[str, str], target: str, right: str) -> None:
    assert meanings[target] == right


ITERATION = """
    import itertools
    def count():
        n = 0
        while True:
            yield n
            n += 1
    def three():
        yield 1
        yield 2
        raise ValueError("third")
    def pairs(xs): return zip(xs, xs)
    def doubled(xs): return [2 * x for x in xs]
    def apply(f, *xs): return [f(x) for x in xs]
    def nested(f, n): return f(n)
    def inc(x): return x + 1
    async def later(x): return x + 1
    def gather(): return {1: 2}.keys()
"""


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("next(count()) == 0", "ts"),
        ("[x for x, _ in zip(count(), range(500))] == list(range(500))", "ts"),
        ("list(count())", "fs"),
        ("list(pairs([1, 2])) == [(1, 1), (2, 2)]", "ts"),
        ("list(pairs([1])) == list(pairs([1]))", "ts"),
        ("g = three()\nassert next(g) == 1 and next(g) == 2", "ts"),
        ("list(three())", "fs"),
        ("try:\n    list(three())\nexcept ValueError as e:\n    assert str(e) == 'third'", "ts"),
        ("doubled(x for x in [1, 2]) == [2, 4]", "ts"),
        ("doubled(iter([3])) == [6]", "ts"),
        ("apply(lambda x: x * 3, 1, 2) == [3, 6]", "ts"),
        ("apply(str, 1) == ['1']", "ts"),
        ("nested(lambda n: inc(n) + 1, 1) == 3", "ts"),
        ("nested(lambda n: 1 / n, 0)", "fs"),
        ("apply(inc, 1) == [2]", "ts"),
        ("import asyncio\nassert asyncio.run(later(1)) == 2", "ts"),
        ("gather() == {1}", "ts"),
    ],
)
def test_iterators_callbacks_and_coroutines(sandbox: Sandbox, target: str, right: str) -> None:
    verdict = run(sandbox, ITERATION, target, entry_points=("count", "apply"))
    assert answers(verdict) == right, verdict.detail


@pytest.mark.parametrize(
    ("program", "target", "task", "right"),
    [
        ("def f(x): return sum(x)", "f([1]) == sum([1])", {}, "t"),
        ("def sum(x): return 7\ndef f(x): return 1", "f([1]) == sum([1])", {}, "t"),
        ("def sum(x): return 7", "sum([1]) == 7", {}, "t"),
        ("def sorted(x): return []\ndef f(x): return []", "f([2]) == sorted([2])", {}, "f"),
        ("import math\nmath.sqrt = abs\ndef f(x): return 9", "f(9) == math.sqrt(9)", {}, "f"),
        ("class math: pi = 3\ndef f(): return 3", "f() == math.pi", {}, "f"),
        ("def check(x): return x", "check(1) == 1", {}, "t"),
        ("def select(x): return x", "select(1) == 1", {}, "t"),
        (
            "def poly(x): return 0\ndef f(x): return 0",
            "poly(f(3)) == 0",
            {"prompt": "def poly(x):\n    return x + 1\n\ndef f(x):\n", "entry_points": ("f",)},
            "f",
        ),
        (
            "def expected(x): return 0\ndef f(x): return 0",
            "f(3) == expected(3)",
            {"setup": "def expected(x): return x", "entry_points": ("f",)},
            "f",
        ),
        ("LIMIT = 5", "LIMIT == 5", {"entry_points": ("LIMIT",)}, "t"),
        ("n = 0\ndef f():\n global n\n n = 1", "f()\nassert n == 1", {"entry_points": ("f",)}, "t"),
        ("def g(x): return x", "f(1) == 1", {"entry_points": ("f",)}, "f"),
        ("class Node:\n def __init__(s, v): s.v = v\ndef f(n): return n.v + n.left.v",
         "f(root) == 3",
         {"setup": "root = Node(1)\nroot.left = Node(2)", "entry_points": ("f",)}, "t"),
    ],
)  # fmt: skip
def test_which_name_is_whose(
    sandbox: Sandbox, program: str, target: str, task: dict[str, Any], right: str
) -> None:
    verdict = grade(Task(targets=(target,), timeout_s=10.0, **task), Generation(program), sandbox)
    assert answers(verdict)[0] == right, verdict.detail


EMPTIES = "def f(xs):\n    xs.clear()\n    return []\ndef sort(xs):\n    xs.sort()\n    return xs\n"


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("(lambda xs: f(xs) == xs)([1])", "f"),
        ("xs = [2, 1]\nassert f(xs) == sorted(xs)", "f"),
        ("sort([2, 1]) == [1, 2]", "t"),
        ("(lambda xs: sort(xs) is xs)([2, 1])", "f"),
        ("xs = [2, 1]\nsort(xs)\nassert xs == [1, 2]", "t"),
        ("xs = [2, 1]\nf(xs)\nassert xs == []", "t"),
        ("xs = [[2, 1]]\nsort(xs[0])\nassert xs == [[1, 2]]", "t"),
        ("xs = [2, 1]\nys = sort(xs)\nassert xs == [1, 2]", "f"),
        ("xs = [2, 1]\nassert sort(xs) == [1, 2] and xs == [1, 2]", "f"),
    ],
)
def test_changes_of_arguments(sandbox: Sandbox, target: str, right: str) -> None:
    assert answers(run(sandbox, EMPTIES, target))[0] == right


def test_a_change_nobody_asked_for_ends_with_its_target(sandbox: Sandbox) -> None:
    targets = ("isinstance(f(DATA), list)", "f(DATA) == sorted(set(DATA))", "DATA == [3, 1]")
    assert answers(run(sandbox, EMPTIES, *targets, setup="DATA = [3, 1]")) == "ts fs tv"


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("all(map(f, [1, 2]))", "f"),
        ("not any(map(f, [1, 2]))", "f"),
        ("list(filter(f, [1])) == []", "f"),
        ("sum(map(lambda x: x.a, [f])) == 0", "f"),
        ("try:\n    f(1)\nexcept StopIteration:\n    pass\nelse:\n    assert 0", "t"),
    ],
)
def test_a_program_cannot_end_the_loops_of_a_target(
    sandbox: Sandbox, target: str, right: str
) -> None:
    program = "def f(x): raise StopIteration"
    assert answers(run(sandbox, program, target, entry_points=("f",)))[0] == right


def test_a_task_can_ask_for_change_in_place(sandbox: Sandbox) -> None:
    target = "xs = [2, 1]\nys = sort(xs)\nassert xs == [1, 2]"
    assert run(sandbox, EMPTIES, target, in_place=True).outcome is Outcome.PASS


def test_state_carries_from_target_to_target_once(sandbox: Sandbox) -> None:
    program = "def f(xs):\n    xs.append(1)\n    f.calls += 1\n    return f.calls\nf.calls = 0\n"
    verdict = run(sandbox, program, "f([]) == 1", "f([]) == 2", "f([]) == 3")
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_random_starts_from_the_same_seed_on_both_sides(sandbox: Sandbox) -> None:
    program = "import random\ndef f():\n    return random.random()\n"
    verdict = run(sandbox, program, "import random\nassert f() == random.random()")
    assert verdict.outcome is Outcome.PASS


ENDS = [
    ("import sys; sys.exit(0)", Outcome.ERROR, "import", "SystemExit: 0 (line 1)"),
    ("import os; os._exit(0)", Outcome.ERROR, "import", "exited with status 0"),
    ("import os\ndef f(): os._exit(3)", Outcome.ERROR, "target", "exited with status 3"),
    (
        "import os, signal\ndef f(): os.kill(os.getpid(), signal.SIGSEGV)",
        Outcome.ERROR,
        "target",
        "killed by SIGSEGV",
    ),
    ("def f(): return 1/0", Outcome.ASSERTION_FAIL, "target", "ZeroDivisionError"),
    ("x = (", Outcome.SYNTAX_ERROR, "compile", "SyntaxError"),
    ("x = " + "(" * 5000 + ")" * 5000, Outcome.SYNTAX_ERROR, "compile", ""),
    ("import missing_package_xyz", Outcome.ERROR, "import", "missing_package_xyz"),
    ("def g(): return 1", Outcome.ASSERTION_FAIL, "entry", "NameError"),
    (
        "class E(BaseException):\n __traceback__ = args = None\nraise E",
        Outcome.ERROR,
        "import",
        "E",
    ),
    ("raise KeyboardInterrupt", Outcome.ERROR, "import", "KeyboardInterrupt"),
    ("def f(): raise KeyboardInterrupt", Outcome.ASSERTION_FAIL, "target", "KeyboardInterrupt"),
    ("x = [0] * 10**10", Outcome.ERROR, "import", "MemoryError"),
    (
        "import os\nfor fd in range(3, 64):\n try: os.write(fd, b'x' * 40)\n except OSError: pass",
        Outcome.ERROR,
        "import",
        "",
    ),
    ("import os\ndef f():\n os.closerange(3, 64)\n return 1", Outcome.ERROR, "target", ""),
]


@pytest.mark.parametrize(("program", "outcome", "phase", "detail"), ENDS)
def test_how_runs_end(
    sandbox: Sandbox, program: str, outcome: Outcome, phase: str, detail: str
) -> None:
    verdict = run(sandbox, program, "f() == 1", entry_points=("f",))
    assert verdict.outcome is outcome, verdict.detail
    assert verdict.score == 0
    assert verdict.failure is not None
    assert verdict.failure.phase == phase
    assert detail in verdict.detail


EQUAL = "class E{}:\n def __eq__(s, o): return {}\ndef f(): return {}"


@pytest.mark.parametrize(
    ("program", "tricks"),
    [
        ("def f(): return 1", []),
        ("def f(): return 2", []),
        (EQUAL.format("", True, "E()"), [Trick.OWN_COMPARISON]),
        (EQUAL.format("(int)", True, "[E()]"), [Trick.OWN_COMPARISON]),
        (EQUAL.format("(int)", "int(s) == o", "E(1)"), []),
        (
            "from dataclasses import dataclass\n@dataclass\nclass E: a: int\ndef f(): return E(1)",
            [],
        ),
        ("import builtins\nbuiltins.eval = print\ndef f(): return 1", [Trick.PATCHED_BUILTINS]),
        ("def f():\n __builtins__['all'] = id\n return 1", [Trick.PATCHED_BUILTINS]),
        ("import random, json, typing\nprint = id\ndef f(): return 1", []),
        ("import os\ndef f(): os._exit(0)", [Trick.EARLY_EXIT]),
        ("import sys\nsys.exit()", [Trick.EARLY_EXIT]),
        ("import os\nos._exit(3)", []),
        (
            "import os\nfor fd in range(3, 64):\n try: os.write(fd, b'x' * 60)\n"
            " except OSError: pass",
            [Trick.OUT_OF_TURN],
        ),
    ],
)
def test_signs_of_tricks(sandbox: Sandbox, program: str, tricks: list[Trick]) -> None:
    assert run(sandbox, program, "f() == 1", entry_points=("f",)).tricks == tricks


def test_a_reply_of_any_form_never_ends_the_grader(sandbox: Sandbox) -> None:
    program = """
        import gc, json, os, sys
        sys.set_int_max_str_digits(0)
        sys.setrecursionlimit(5000)
        deep = []
        for _ in range(960): deep = [deep]
        def f():
            cell = next(o for o in gc.get_objects() if type(o).__name__ == "Cell")
            data = json.dumps(["v", 3, [], 5, 5]).encode()
            size = len(data).to_bytes(4, "big")
            os.write(cell.sink, b"R" + cell.request_id + size + data)
            os.read(cell.source, 1)
    """
    failure = (
        "['x', {'exception': 'ValueError', 'base': 'Exception', 'class': None, 'args': [],"
        " 'frames': ODD, 'denied': ODD, 'message': ODD}, [], [], []]"
    )
    for odd in ("5", "[5]", "{}", "'x'", "None", "9 ** 9999", "deep", "[[9 ** 9999, 'f']]"):
        for reply in (f"['v', 4, [], [], {odd}]", failure.replace("ODD", odd)):
            verdict = run(sandbox, program.replace('["v", 3, [], 5, 5]', reply), "f() == 3")
            assert (verdict.denied, verdict.total) == ([], 1)
            assert verdict.outcome in (Outcome.ASSERTION_FAIL, Outcome.ERROR), odd


def test_an_answer_to_loading_of_any_form_never_ends_the_grader(sandbox: Sandbox) -> None:
    program = """
        import json, os, sys
        sys.set_int_max_str_digits(0)
        sys.setrecursionlimit(5000)
        deep = []
        for _ in range(960): deep = [deep]
        odd = ODD
        frame = sys._getframe()
        while "order" not in frame.f_locals: frame = frame.f_back
        cell, token = frame.f_locals["self"], frame.f_locals["order"]["token"]
        keys = "phase exception message denied frames".split()
        answer = {"token": token, "failure": dict.fromkeys(keys, odd), "names": [["f", "f"]]}
        data = json.dumps({**answer, "denied": odd, "tricks": odd}).encode()
        os.write(cell.sink, b"D" + bytes(8) + len(data).to_bytes(4, "big") + data)
        os.read(cell.source, 1)
    """
    for odd in ("5", "[5]", "{}", "'x'", "None", "9 ** 9999", "deep", "[[9 ** 4000, 'f']]"):
        verdict = run(sandbox, program.replace("ODD", odd), "f() == 3")
        assert (verdict.outcome, verdict.denied) == (Outcome.ERROR, []), odd


def test_a_task_without_targets_is_an_error_and_never_a_pass(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "x = 1")
    assert (verdict.outcome, verdict.detail, verdict.score) == (Outcome.ERROR, "no targets", 0.0)


def test_a_name_the_program_lacks_is_named(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "def g(): return 1", "assert f() == 1", entry_points=("f",))
    assert verdict.detail == "target 1 of 1: NameError: name 'f' is not defined"
    assert verdict.failure is not None
    assert (verdict.failure.phase, verdict.failure.exception) == ("entry", "NameError")


def test_a_failing_set_up_fails_every_target(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "def f(): return 1", "f() == 1", setup="1 / 0")
    assert verdict.outcome is Outcome.ASSERTION_FAIL
    assert verdict.targets[0].detail == "set-up: ZeroDivisionError: division by zero"


def test_a_timeout_keeps_the_results_before_it(sandbox: Sandbox) -> None:
    program = "def f(x):\n    while x > 1: pass\n    return x\n"
    started = time.monotonic()
    verdict = run(sandbox, program, "f(1) == 1", "f(2) == 2", "f(0) == 0", timeout_s=1.0)
    assert verdict.outcome is Outcome.TIMEOUT
    assert [target.true for target in verdict.targets] == [True, False, False]
    assert verdict.targets[2].detail == "not reached"
    assert (verdict.score, verdict.passed) == (0.0, 1)
    assert verdict.detail == "no verdict within 1 s"
    assert time.monotonic() - started < 30


def test_an_unprintable_candidate_leaves_clean_text(sandbox: Sandbox) -> None:
    program = "print('\\x1b[31mred\\u202e\\x00')\nraise ValueError('\\x1b[2J\\x00bad\\ud800')\n"
    verdict = run(sandbox, program, "f() == 1")
    assert verdict.stdout.head == "red\ufffd\ufffd\n"
    assert verdict.failure is not None
    assert verdict.failure.message == "\ufffdbad\ufffd"


def test_long_output_keeps_head_tail_and_size(sandbox: Sandbox) -> None:
    program = "import sys\nfor n in range(9000): print(n)\ndef f(): return 1\n"
    stdout = run(sandbox, program, "f() == 1").stdout
    assert stdout.head.startswith("0\n1\n")
    assert stdout.tail.endswith("8998\n8999\n")
    assert stdout.size == sum(len(f"{n}\n") for n in range(9000))


def test_a_forked_copy_does_not_answer_twice(sandbox: Sandbox) -> None:
    program = "import os\ndef f():\n    os.fork()\n    return 1\n"
    verdict = run(sandbox, program, "f() == 1", "f() == 1", allow_processes=True)
    assert verdict.outcome is Outcome.PASS, verdict.detail


def test_processes_are_refused_by_default(sandbox: Sandbox) -> None:
    verdict = run(sandbox, "import os\ndef f():\n    os.fork()\n    return 1\n", "f() == 1")
    assert verdict.outcome is Outcome.ASSERTION_FAIL
    assert verdict.denied == ["os.fork"]


def test_source_is_there_for_tracebacks_and_inspect(sandbox: Sandbox) -> None:
    program = """
        import inspect, traceback
        def f():
            return inspect.getsource(f)
        def g():
            try:
                raise ValueError
            except ValueError:
                return traceback.format_exc()
    """
    verdict = run(sandbox, program, "f().startswith('def f')", "'raise ValueError' in g()")
    assert verdict.outcome is Outcome.PASS, [target.detail for target in verdict.targets]


def test_a_completion_continues_the_prompt(sandbox: Sandbox) -> None:
    task = Task(targets=("f(1) == 2",), prompt="def f(x):\n", timeout_s=10.0)
    verdict = grade(task, Generation("    return x + 1\n", Format.COMPLETION), sandbox)
    assert verdict.outcome is Outcome.PASS
    assert verdict.program == "def f(x):\n    return x + 1\n"


def test_waiting_calls_tick(sandbox: Sandbox) -> None:
    ticks: list[float] = []
    task = Task(targets=("f() == 1",), timeout_s=10.0)
    program = "import time\ndef f():\n    time.sleep(1.5)\n    return 1\n"
    grade(task, Generation(program), sandbox, lambda: ticks.append(time.monotonic()))
    assert ticks


FORGERIES = {
    "always equal": "class E:\n __eq__ = lambda s, o: True\ndef f(x): return E()",
    "equal number": "class E(int):\n __eq__ = lambda s, o: True\n __hash__ = int.__hash__\n"
    "def f(x): return E(0)",
    "equal text": "class E(str):\n __eq__ = lambda s, o: True\ndef f(x): return E('')",
    "equal list": "class E(list):\n __eq__ = lambda s, o: True\ndef f(x): return E()",
    "reflected": "class E:\n __req__ = __eq__ = __ne__ = __bool__ = lambda *a: True\n"
    "def f(x): return E()",
    "frames": "import sys\ndef f(x):\n fr = sys._getframe()\n found = []\n"
    " while fr:\n  found += [v for v in fr.f_locals.values()]\n  fr = fr.f_back\n return found",
    "patched builtins": "import builtins\nbuiltins.eval = builtins.exec = lambda *a: True\n"
    "builtins.all = lambda x: True\ndef f(x): return None",
    "result frames": "import os\nfor fd in range(3, 64):\n"
    " for kind in (b'T', b'R', b'E', b'D'):\n"
    "  try: os.write(fd, kind + bytes(11) + b'\\x08[1,true]')\n"
    "  except OSError: pass\ndef f(x): return None",
    "early exit": "import os, atexit\natexit.register(print, 'PASS')\ndef f(x): os._exit(0)",
    "raises skip": "class AssertionError2(Exception): pass\ndef f(x): raise SystemExit(0)",
    "mutates expected": "def f(x):\n try: x.append(42)\n except Exception: pass\n return x",
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_nothing_a_candidate_does_forges_a_pass(sandbox: Sandbox, name: str) -> None:
    verdict = run(sandbox, FORGERIES[name], "f([1]) == 42", "assert f([2]) == [7]", "f([3]) == '9'")
    assert verdict.outcome is not Outcome.PASS
    assert verdict.passed == 0


@pytest.mark.parametrize(
    ("ended", "wait_s", "cpu_s", "right"),
    [
        (Timeout(), 0.7, 2.3, True),
        (Timeout(), 0.7, 3.1, False),
        (Timeout(), 0.5, 2.5, False),
        (Timeout(), None, 1.0, True),
        (Timeout(), None, 2.0, False),
        (CellDied(), 3.0, 0.0, False),
        (None, 3.0, 0.0, False),
    ],
)
def test_when_a_timeout_is_starved(
    ended: Ended | None, wait_s: float | None, cpu_s: float, right: bool
) -> None:
    result = Run(ended=ended, usage=Usage(cpu_s=cpu_s, wait_s=wait_s))
    assert starved(result, Limits(timeout_s=3.0)) is right


def test_a_judge_that_dies_twice_is_the_programs_error(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    original = session.run

    def dying(*args: Any) -> Run:
        runs.append(1)
        return replace(original(*args), ended=JudgeDied())

    monkeypatch.setattr(session, "run", dying)
    verdict = run(sandbox, "def f(): return 1", "f() == 1")
    assert (verdict.outcome, verdict.detail, len(runs)) == (Outcome.ERROR, "judge ended", 2)


def test_an_interpreter_that_does_not_start_is_the_platforms_failure(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.runtime, "BOOT", "import sys; sys.exit('broken host')")
    with pytest.raises(PlatformError, match="did not start"):
        run(sandbox, "def f(): return 1", "f() == 1")
