"""Tasks with unittest classes: cut into targets, sealed, failed by mutants, not to be forged."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from grading.engine import task_files
from grading.engine.grade import grade
from grading.engine.outcome import Verdict
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task
from grading.engine.task_files import TaskSource


def read(*rows: Any) -> TaskSource:
    return task_files.read(io.BytesIO(json.dumps(rows).encode()), "tasks.json")


def only(row: dict[str, Any]) -> TaskRecord:
    source = read(row)
    assert source.problems.kept == []
    (record,) = source.records
    return record


LEDGER = {
    "task_id": "ClassEval_0",
    "class_name": "Ledger",
    "import_statement": ["import math"],
    "test_classes": ["LedgerTest"],
    "skeleton": '''import math

class Ledger:
    """Entries with amounts."""

    def __init__(self, *amounts):
        self.entries = {}

    def add(self, name, amount):
        """Adds an amount; ValueError where it is negative."""

    def total(self):
        """The sum of all amounts."""
''',
    "solution_code": """import math

class Ledger:
    opened = 0

    def __init__(self, *amounts):
        self.entries = {str(n): amount for n, amount in enumerate(amounts)}
        Ledger.opened += 1

    def add(self, name, amount):
        if amount < 0:
            raise ValueError("negative")
        self.entries[name] = self.entries.get(name, 0) + amount
        return self

    def total(self):
        return math.fsum(self.entries.values())

    def sort(self, names):
        names.sort(key=self.entries.get)

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, name):
        return self.entries[name]

    def __contains__(self, name):
        return name in self.entries

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.entries.clear()
""",
    "test": """import unittest
from unittest import TestCase

class Base(TestCase):
    made = 0

    @classmethod
    def setUpClass(cls):
        cls.made += 1
        cls.shared = []

    def setUp(self):
        self.ledger = Ledger(1)
        self.addCleanup(self.shared.clear)

    def tearDown(self):
        self.ledger = None

    def test_total(self):
        self.assertEqual(self.ledger.total(), 1)

class LedgerTest(Base):
    def test_add(self):
        self.assertIs(self.ledger.add("a", 2), self.ledger)
        self.assertEqual(self.ledger.entries, {"0": 1, "a": 2})

    def test_negative(self):
        with self.assertRaisesRegex(ValueError, "neg"):
            self.ledger.add("a", -1)

    def test_amounts(self):
        for amount in range(3):
            with self.subTest(amount=amount):
                self.assertEqual(Ledger(amount).total(), amount)

    def test_class_state(self):
        self.assertEqual((self.made, self.shared), (1, []))
        self.shared.append(1)
        self.assertEqual(self.ledger.total(), 1)

    def test_in_place(self):
        names = ["b", "a"]
        self.ledger.add("a", 5).add("b", 6)
        self.ledger.sort(names)
        self.assertEqual(names, ["a", "b"])

    def test_items(self):
        self.assertEqual(len(self.ledger), 1)
        self.assertEqual(self.ledger["0"], 1)
        self.assertIn("0", self.ledger)
        self.assertNotIn("1", self.ledger)
        with self.assertRaises(KeyError):
            self.ledger["1"]

    def test_context(self):
        with Ledger(3) as ledger:
            self.assertIsInstance(ledger, Ledger)
            self.assertEqual(ledger.total(), 3)
        self.assertEqual(ledger.total(), 0)

    @unittest.skip("never")
    def test_skipped(self):
        self.assertEqual(self.ledger.total(), 1)

    def helper(self):
        pass

@unittest.skip("never")
class SkippedTest(Base):
    pass

if __name__ == "__main__":
    unittest.main()
""",
}

TOTALS = {
    "task_id": "BigCodeBench/0",
    "entry_point": "task_func",
    "libs": "['pandas', 'numpy']",
    "complete_prompt": '''import numpy as np
import pandas as pd

def task_func(frame):
    """Total of v per k, and the totals as an array. ValueError for a frame without rows."""
''',
    "instruct_prompt": "Total of v per k.",
    "canonical_solution": """    if frame.empty:
        raise ValueError("no rows")
    totals = frame.groupby("k")["v"].sum()
    return totals, np.array(totals)
""",
    "test": """import unittest
class TestCases(unittest.TestCase):
    def setUp(self):
        self.frame = pd.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})

    def test_series(self):
        totals, _ = task_func(self.frame)
        self.assertIsInstance(totals, pd.Series)
        expected = pd.Series([4, 2], index=pd.Index(["a", "b"], name="k"), name="v")
        pd.testing.assert_series_equal(totals, expected)

    def test_array(self):
        _, array = task_func(self.frame)
        self.assertIsInstance(array, np.ndarray)
        np.testing.assert_array_equal(array, [4, 2])

    def test_empty(self):
        with self.assertRaises(ValueError):
            task_func(self.frame.iloc[:0])
""",
}


def test_classeval() -> None:
    record = only(LEDGER)
    assert record.task_id == "ClassEval_0"
    assert record.entry_points == ("Ledger",)
    assert (record.prompt, record.reference) == (LEDGER["skeleton"], LEDGER["solution_code"])
    assert record.targets == (
        "run_test(Base, 'test_total')",
        "run_test(LedgerTest, 'test_total')",
        *(
            f"run_test(LedgerTest, 'test_{name}')"
            for name in (
                *("add", "negative", "amounts", "class_state"),
                *("in_place", "items", "context"),
            )
        ),
    )
    assert "unittest.main" not in record.setup
    dropped = [one.target for one in read(LEDGER).dropped]
    assert dropped == [
        "run_test(LedgerTest, 'test_skipped')",
        "run_test(SkippedTest, 'test_total')",
    ]


def test_bigcodebench() -> None:
    record = only(TOTALS)
    assert record.entry_points == ("task_func",)
    assert record.prompt == TOTALS["complete_prompt"]
    assert record.reference == str(TOTALS["complete_prompt"]) + str(TOTALS["canonical_solution"])
    assert record.targets[0] == "run_test(TestCases, 'test_series')"
    assert record.metadata == {
        "libs": "['pandas', 'numpy']",
        "instruct_prompt": "Total of v per k.",
    }


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"test": "class T(TestCase:"}, "test", "does not compile"),
        ({"test": "def test_it(): pass"}, "test", "no targets"),
        ({"test": "class T(T): pass\nclass A(B): pass\nclass B(A): pass"}, "test", "no targets"),
        ({"test": 5}, "test", "wrong type"),
        ({"class_name": "no name"}, "metadata.entry_point", "not a name"),
        ({"solution_code": "def ("}, "metadata.reference", "does not compile"),
    ],
)
def test_a_bad_row(change: dict[str, Any], field: str, rule: str) -> None:
    (problem,) = read(LEDGER | change).problems.kept
    assert (problem.field, problem.rule) == (field, rule)


def graded(sandbox: Sandbox, record: TaskRecord, program: str) -> Verdict:
    task = Task(
        targets=record.targets,
        prompt=record.prompt,
        setup=record.setup,
        entry_points=record.entry_points,
        timeout_s=30.0,
        in_place=True,
    )
    return grade(task, Generation(program), sandbox)


def failing(verdict: Verdict, record: TaskRecord) -> set[str]:
    """Names of the test methods that do not hold, without ``test_``."""
    return {
        str(record.targets[target.index]).rpartition("test_")[2].strip("')")
        for target in verdict.targets
        if not target.true
    }


MUTANTS = [
    ("amount < 0", "amount < -1", {"negative"}),
    ('"negative"', '"wrong"', {"negative"}),
    ("return math.fsum(self.entries.values())", "return 1", {"amounts", "context"}),
    ("return self\n\n    def total", "return None\n\n    def total", {"add", "in_place"}),
    ("names.sort(key=self.entries.get)", "names.reverse", {"in_place"}),
    ("return len(self.entries)", "return 2", {"items"}),
    ("self.entries.clear()", "return True", {"context"}),
]


@pytest.mark.sandbox
def test_the_reference_passes_sealed(sandbox: Sandbox) -> None:
    record = only(LEDGER)
    verdict = graded(sandbox, record, record.reference)
    assert failing(verdict, record) == set(), verdict.detail
    labels = {target.label.value for target in verdict.targets if target.index not in (7, 8)}
    assert labels == {"sealed"}


@pytest.mark.sandbox
@pytest.mark.parametrize(("old", "new", "fails"), MUTANTS, ids=[new for _, new, _ in MUTANTS])
def test_mutants_fail_where_they_differ(
    sandbox: Sandbox, old: str, new: str, fails: set[str]
) -> None:
    record = only(LEDGER)
    assert old in record.reference
    verdict = graded(sandbox, record, record.reference.replace(old, new))
    assert failing(verdict, record) == fails, verdict.detail


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("old", "new", "fails"),
    [
        ("", "", set()),
        (".sum()", ".max()", {"series", "array"}),
        ("np.array(totals)", "list(totals)", {"array"}),
        ("ValueError", "KeyError", {"empty"}),
        ('["v"].sum()', "[['v']].sum()", {"series", "array"}),
    ],
)
def test_numpy_and_pandas_in_test_methods(
    scientific: Sandbox, old: str, new: str, fails: set[str]
) -> None:
    record = only(TOTALS)
    verdict = graded(scientific, record, record.reference.replace(old, new))
    assert failing(verdict, record) == fails, verdict.detail


FORGED_CLASSES = {
    "skips": """
        import unittest
        class Ledger:
            def __init__(self, *args): raise unittest.SkipTest("no")
    """,
    "stops the test": """
        import unittest.case
        class Ledger:
            def __init__(self, *args): raise unittest.case._ShouldStop
    """,
    "ends with the words of a passed test": """
        class Ledger:
            def __init__(self, *args): raise KeyboardInterrupt
    """,
    "agrees with everything": """
        class Ledger:
            def __init__(self, *args): pass
            def __getattr__(self, name): return lambda *args: self
            def __eq__(self, other): return True
            def __len__(self): return self
            def __getitem__(self, name): return self
            def __contains__(self, name): return True
            def __enter__(self): return self
            def __exit__(self, *problem): return True
    """,
    "patches unittest": """
        import unittest
        unittest.TestCase.assertEqual = lambda *args: None
        unittest.TestCase.run = lambda self, result: result.addSuccess(self)
        class Ledger:
            def __init__(self, *args): pass
    """,
    "defines the tests": """
        def run_test(case, name): return True
        class Base: pass
        LedgerTest = Base
        class Ledger:
            def __init__(self, *args): pass
    """,
}


@pytest.mark.sandbox
@pytest.mark.parametrize("program", FORGED_CLASSES.values(), ids=FORGED_CLASSES)
def test_no_forged_class_passes_a_test(sandbox: Sandbox, program: str) -> None:
    record = only(LEDGER)
    lines = [line[8:] for line in program.splitlines()]
    verdict = graded(sandbox, record, "\n".join(lines))
    assert verdict.passed == 0, [one for one in verdict.targets if one.true]


ASYNC_TEST = """import unittest
class ClockTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.clock = Clock()

    async def test_later(self):
        self.assertEqual(await self.clock.later(1), 2)

    async def test_raises(self):
        with self.assertRaises(LookupError):
            await self.clock.fail()

    async def test_plain(self):
        self.assertEqual([n async for n in self.numbers()], [1, 2])
        self.assertEqual(await self.clock.later(2), 3)

    async def numbers(self):
        yield 1
        yield 2

    def test_callback(self):
        seen = []
        self.clock.each([1, 2], seen.append)
        self.assertEqual(seen, [1, 2])

    def test_callback_that_raises(self):
        def refuse(item):
            raise ZeroDivisionError("refused")
        with self.assertRaisesRegex(ZeroDivisionError, "refused"):
            self.clock.each([1], refuse)
        self.assertEqual(self.clock.guarded(refuse), "ZeroDivisionError: refused")

    def test_generator(self):
        ticks = self.clock.ticks()
        self.assertEqual([next(ticks), next(ticks)], [0, 1])

    def test_library_exception(self):
        import json
        with self.assertRaises(json.JSONDecodeError):
            self.clock.parse("{")
"""

CLOCK = """
import asyncio, json
class Clock:
    async def later(self, n):
        await asyncio.sleep(0)
        return n + 1
    async def fail(self): raise KeyError("x")
    def each(self, items, f):
        for item in items:
            f(item)
    def guarded(self, f):
        try:
            f(1)
        except ArithmeticError as problem:
            return f"{type(problem).__name__}: {problem}"
    def ticks(self):
        n = 0
        while True:
            yield n
            n += 1
    def parse(self, text): return json.loads(text)
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("old", "new", "fails"),
    [
        ("", "", set()),
        ("return n + 1", "return n", {"later", "plain"}),
        ("KeyError", "OSError", {"raises"}),
        ("            f(item)", "            pass", {"callback", "callback_that_raises"}),
        ("return json.loads(text)", "raise ValueError", {"library_exception"}),
    ],
)
def test_coroutines_callbacks_and_generators(
    sandbox: Sandbox, old: str, new: str, fails: set[str]
) -> None:
    row = LEDGER | {"class_name": "Clock", "solution_code": CLOCK, "test": ASYNC_TEST}
    record = only(row)
    verdict = graded(sandbox, record, CLOCK.replace(old, new) if old else CLOCK)
    assert failing(verdict, record) == fails, [one for one in verdict.targets if not one.true]


def test_the_published_sets_are_read_whole(shared: Path) -> None:
    folder = shared / "data" / "tasks_other"
    with gzip.open(folder / "ClassEval_data.json.gz") as stream:
        classes = task_files.read(stream, "ClassEval_data.json.gz")
    assert (classes.title, classes.format) == ("ClassEval_data", "ClassEval")
    assert len(classes.records) == 100
    assert sum(len(record.targets) for record in classes.records) == 2196
    assert classes.problems.total == 0
    with gzip.open(folder / "bigcodebench_hard.json.gz") as stream:
        rows = json.load(stream).values()
    functions = read(*rows)
    assert (functions.format, len(functions.records)) == ("BigCodeBench", 148)
    assert functions.problems.total == 0
