"""What targets can ask of objects that stay in the cell, and what these cannot answer."""

from __future__ import annotations

import textwrap

import pytest

from grading.engine.grade import grade
from grading.engine.outcome import Verdict
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task

pytestmark = pytest.mark.sandbox

SETUP = """
import argparse, collections, configparser, json
Shelf = Shelf
"""


def run(sandbox: Sandbox, program: str, *targets: str) -> Verdict:
    task = Task(targets=targets, setup=SETUP, entry_points=("Shelf", "f"), timeout_s=30.0)
    return grade(task, Generation(textwrap.dedent(program)), sandbox)


def answers(verdict: Verdict) -> list[str]:
    return [("t" if target.true else "f") + target.label.value[0] for target in verdict.targets]


SHELF = """
    import argparse, configparser, json
    class Shelf:
        def __init__(self, *items): self.items = dict(enumerate(items))
        def __len__(self): return len(self.items)
        def __getitem__(self, key): return self.items[key]
        def __setitem__(self, key, item): self.items[key] = item
        def __delitem__(self, key): del self.items[key]
        def __contains__(self, item): return item in self.items.values()
        def __enter__(self): return self
        def __exit__(self, kind, problem, trace):
            self.items = {"left": kind and kind.__name__}
            return True
    class Half:
        def __getitem__(self, n): return [1, 2][n]
    def f(kind):
        if kind == "parser": return argparse.ArgumentParser(prog="p")
        if kind == "half": return Half()
        if kind == "json": return json.loads("{")
        if kind == "config": raise configparser.NoSectionError("s")
        return Shelf(1)
"""

MEANINGS = [
    ("len(Shelf(1, 2)) == 2", "ts"),
    ("Shelf(5)[0] == 5", "ts"),
    ("try:\n    Shelf()[0]\nexcept KeyError:\n    pass", "ts"),
    (
        "s = Shelf(1)\ns['k'] = [2]\nassert s['k'] == [2] and len(s) == 2\n"
        "del s[0]\nassert len(s) == 1",
        "ts",
    ),
    ("5 in Shelf(5) and 6 not in Shelf(5)", "ti"),
    ("1 in f('') and list(f('half')) == [1, 2]", "ts"),
    ("with Shelf(7) as s:\n    assert s[0] == 7\nassert s['left'] is None", "ts"),
    ("with Shelf(7) as s:\n    assert s[0] == 8", "fs"),
    (
        "s = Shelf()\ntry:\n    with s:\n        {}['x']\n"
        "except KeyError:\n    assert s['left'] == 'KeyError'",
        "ts",
    ),
    ("bool(Shelf(1))", "fs"),
    ("Shelf(1) + 1", "fs"),
    # classes of libraries
    ("isinstance(f('parser'), argparse.ArgumentParser) and f('parser').prog == 'p'", "ti"),
    ("isinstance(f('parser'), json.JSONDecoder)", "fi"),
    ("try:\n    f('json')\nexcept json.JSONDecodeError as e:\n    assert 'line 1' in str(e)", "ts"),
    ("try:\n    f('json')\nexcept configparser.Error:\n    pass", "fs"),
    ("try:\n    f('config')\nexcept configparser.Error:\n    pass", "ts"),
    ("try:\n    f('json')\nexcept ValueError:\n    pass", "ts"),
]


@pytest.fixture(scope="module")
def meanings(sandbox: Sandbox) -> dict[str, str]:
    verdict = run(sandbox, SHELF, *(target for target, _ in MEANINGS))
    shown = answers(verdict)
    return {
        target: answer if answer == right else f"{answer} {result.detail}"
        for (target, right), answer, result in zip(MEANINGS, shown, verdict.targets, strict=True)
    }


@pytest.mark.parametrize(("target", "right"), MEANINGS)
def test_what_a_target_means(meanings: dict[str, str], target: str, right: str) -> None:
    assert meanings[target] == right


LIARS = """
    import collections, sys
    class Shelf: pass
    class Yes:
        def __eq__(self, other): return True
        def __contains__(self, item): return True
        def __len__(self): return self
        def __getitem__(self, key): return 1 if key in ("a", "b") else self
        def __iter__(self): return iter(())
        def __bool__(self): return True
        def __enter__(self): return self
        def __exit__(self, *problem): return True
        def keys(self): return ["a", "b"]
        def elements(self): return "ab"
    if KIND:
        Yes.__module__, Yes.__qualname__, Yes.__name__ = "collections", KIND, KIND
        setattr(collections, KIND, Yes)
    def f(x): return Yes()
"""

NEVER = (
    "collections.Counter('ab') == f(1)",
    "f(1) == collections.Counter('ab')",
    "collections.OrderedDict(a=1) == f(1)",
    "isinstance(f(1), collections.Counter)",
    "isinstance(f(1), dict)",
    "isinstance(f(1), (int, str, list))",
    "3 in f(1)",
    "len(f(1)) == 3",
    "f(1)['c'] == 3",
    "f(1)",
    "f(1) == 3",
    "with f(1):\n    assert f(1) == 3",
    "f(1) in [1, 2, 3]",
    "sorted([f(1), 3]) == [3, 3]",
)


@pytest.mark.parametrize("kind", ["", "Counter", "OrderedDict", "deque"])
def test_an_object_that_agrees_with_everything_never_holds(sandbox: Sandbox, kind: str) -> None:
    verdict = run(sandbox, LIARS.replace("KIND", repr(kind)), *NEVER)
    assert len(verdict.targets) == len(NEVER)
    assert [NEVER[one.index] for one in verdict.targets if one.true] == []
    assert verdict.outcome == "assertion_fail", verdict.detail
