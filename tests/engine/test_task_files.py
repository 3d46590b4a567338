"""Task files of other projects: told apart, converted, and refused by line and field."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from grading.engine import task_files
from grading.engine.records import TaskRecord
from grading.engine.task import Exchange, Kind, Task
from grading.engine.task_files import TaskSource


def read(*rows: Any, name: str = "tasks.jsonl", array: bool = False) -> TaskSource:
    text = json.dumps(rows, indent=2) if array else "\n".join(map(json.dumps, rows))
    return task_files.read(io.BytesIO(text.encode()), name)


def only(*rows: Any) -> TaskRecord:
    source = read(*rows)
    assert source.problems.kept == []
    (record,) = source.records
    return record


def problem(*rows: Any) -> tuple[int, str, str, str]:
    """(line, task id, field, rule) of the only one."""
    (found,) = read(*rows).problems.kept
    return found.line, found.task_id, found.field, found.rule


MBPP = {
    "text": "Write a function to add.",
    "code": "class Node:\r\n    pass\r\ndef add(a, b):\r\n    return a + b",
    "task_id": 11,
    "test_setup_code": "root = Node()\r\n",
    "test_list": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
    "challenge_test_list": ["assert add(-1, 1) == 0"],
}
SANITIZED = {
    "source_file": "x.ipynb",
    "task_id": 11,
    "prompt": "Write a function to add.",
    "code": "def add(a, b):\n    return a + b",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(add(1, 2), 3)"],
}


def test_mbpp() -> None:
    record = only(MBPP)
    assert record.task_id == "MBPP/11"
    assert record.prompt == (
        "Write a function to add.\n\nYour code should pass this test:\n\nassert add(1, 2) == 3\n"
    )
    assert record.targets == ("assert add(1, 2) == 3", "assert add(0, 0) == 0")
    assert record.setup == "root = Node()"
    assert record.entry_points == ("add", "Node")
    assert record.reference == "class Node:\n    pass\ndef add(a, b):\n    return a + b"
    assert record.metadata == {"challenge_test_list": ["assert add(-1, 1) == 0"]}


def test_sanitized_mbpp() -> None:
    source = read(SANITIZED, {**SANITIZED, "task_id": 12}, array=True)
    assert (source.format, source.title) == ("MBPP", "tasks")
    assert source.problems.kept == []
    assert [record.task_id for record in source.records] == ["MBPP/11", "MBPP/12"]
    assert source.records[0].setup == "import math"
    assert source.records[0].entry_points == ("add",)


@pytest.mark.parametrize(
    ("test", "code", "names"),
    [
        ("assert sum(10, 15) == 6", "def sum(a, b): return 6", ("sum",)),
        ("assert check(70) == False", "def check(n): return False", ("check",)),
        ("assert set(f((1, 2))) == set((1,))", "def f(x): return x", ("f",)),
        ("assert (f(root)) == 3", "def f(x): return x", ("f",)),
    ],
)
def test_the_entry_point_is_what_the_reference_defines(
    test: str, code: str, names: tuple[str, ...]
) -> None:
    row = {**MBPP, "test_list": [test], "code": code, "test_setup_code": ""}
    assert only(row).entry_points == names


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"test_list": []}, "test_list", "wrong type"),
        ({"test_list": [1]}, "test_list", "wrong type"),
        ({"test_list": ["assert ("]}, "targets[0]", "does not compile"),
        ({"code": 5}, "code", "wrong type"),
        ({"code": "def ("}, "metadata.reference", "does not compile"),
        ({"test_setup_code": 5}, "test_setup_code", "wrong type"),
        ({"test_imports": ["import math", 1]}, "test_imports", "wrong type"),
        ({"text": "a\0b"}, "prompt", "NUL character"),
    ],
)
def test_a_bad_mbpp_row(change: dict[str, Any], field: str, rule: str) -> None:
    assert problem({**MBPP, "task_id": 10}, {**MBPP, **change}) == (2, "MBPP/11", field, rule)


def test_records_may_stand_in_an_array() -> None:
    own = {
        "task_id": "T/0",
        "category": "code_exec",
        "prompt": "Double n.",
        "targets": [{"input": "3", "output": "6"}],
        "metric_name": "code_exec",
        "post_process": "none",
        "metadata": {"kind": "stdio"},
    }
    source = read(own, own | {"task_id": "T/1", "prompt": ""}, array=True)
    assert [record.task_id for record in source.records] == ["T/0"]
    assert [(one.line, one.task_id) for one in source.problems.kept] == [(2, "T/1")]


def test_a_task_id_stands_once() -> None:
    source = read(MBPP, MBPP)
    assert len(source.records) == 1
    assert problem(MBPP, MBPP) == (2, "MBPP/11", "task_id", "duplicate id")


APPS = {
    "problem_id": 7,
    "question": "Double n.",
    "solutions": json.dumps(["print input() * 2", "print(2 * int(input()))", "exit()"]),
    "input_output": json.dumps({"inputs": ["3\n", ["4", "5"]], "outputs": ["6\n", ["8"]]}),
    "difficulty": "interview",
    "starter_code": "",
}
SUBSET = {
    "name": "7",
    "description": "Double n.",
    "difficulty": "interview",
    "id": 7,
    "sample_io": [{"input": "3\n", "output": ["6\n"]}],
    "test_list": [{"input": "3\n", "output": ["6\n"]}, {"input": "4\n5", "output": ["8"]}],
    "starter_code": "",
}
LIVECODEBENCH = {
    "question_title": "Double",
    "question_content": "Double n.",
    "platform": "atcoder",
    "question_id": "abc301_a",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "3\n", "output": "6\n", "testtype": "stdin"}]),
    "private_test_cases": json.dumps([{"input": "4\n5", "output": "8", "testtype": "stdin"}]),
    "metadata": "{}",
}


@pytest.mark.parametrize(
    ("row", "task_id", "timeout_s", "reference"),
    [
        (APPS, "APPS/7", 4.0, "print(2 * int(input()))"),
        (SUBSET, "APPS/7", 4.0, ""),
        (LIVECODEBENCH, "abc301_a", 6.0, ""),
    ],
    ids=["APPS", "subset", "LiveCodeBench"],
)
def test_contest_problems(
    row: dict[str, Any], task_id: str, timeout_s: float, reference: str
) -> None:
    record = only(row)
    assert record.kind is Kind.STDIO
    assert record.targets == (Exchange("3\n", "6\n"), Exchange("4\n5", "8"))
    assert (record.task_id, record.timeout_s) == (task_id, timeout_s)
    assert (record.prompt, record.reference) == ("Double n.", reference)


FUNCTIONAL = json.dumps([{"input": "3", "output": "6", "testtype": "functional"}])
NAMED = json.dumps({"fn_name": "double", "inputs": [[3]], "outputs": [[6]]})


@pytest.mark.parametrize(
    ("row", "field", "rule"),
    [
        (SUBSET | {"starter_code": "def double(n):"}, "starter_code", "not supported"),
        (APPS | {"input_output": NAMED}, "input_output", "not supported"),
        (LIVECODEBENCH | {"public_test_cases": FUNCTIONAL}, "public_test_cases", "not supported"),
        (LIVECODEBENCH | {"private_test_cases": "eJxrY"}, "private_test_cases", "bad JSON"),
        (APPS | {"input_output": "[1]"}, "input_output", "wrong type"),
        (
            APPS | {"input_output": '{"inputs": ["1"], "outputs": []}'},
            "input_output",
            "wrong number",
        ),
        (APPS | {"input_output": '{"inputs": 1, "outputs": []}'}, "input_output", "wrong type"),
        (APPS | {"input_output": '{"inputs": [1], "outputs": [1]}'}, "tests", "wrong type"),
        (APPS | {"input_output": '{"inputs": [], "outputs": []}'}, "targets", "no targets"),
        (SUBSET | {"test_list": ["3"]}, "test_list", "wrong type"),
        (SUBSET | {"description": 3}, "description", "wrong type"),
        (LIVECODEBENCH | {"question_content": " "}, "prompt", "empty"),
        (LIVECODEBENCH | {"question_id": "a b"}, "task_id", "white space"),
        ({key: APPS[key] for key in ("question", "input_output")}, "id", "missing field"),
    ],
)
def test_a_bad_contest_row(row: dict[str, Any], field: str, rule: str) -> None:
    assert problem(row)[2:] == (field, rule)


def test_the_first_row_decides_the_format() -> None:
    own = {"task_id": "T/0", "prompt": "p", "targets": ["f()"]}
    assert read(own).format == task_files.OWN
    assert problem(MBPP, "text") == (2, "", "", "wrong type")
    assert problem(MBPP, own)[2] == "task_id"
    assert read().problems.kept == read().records == []


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"[1, 2", "bad JSON"),
        (b'[{"a": 1, "a": 2}]', "bad JSON"),
        (b"\xff\xfe[\x00", "not UTF-8"),
        (gzip.compress(b"[]", mtime=0)[:-5], "broken gzip"),
    ],
)
def test_a_file_that_cannot_be_read(data: bytes, rule: str) -> None:
    source = task_files.read(io.BytesIO(data), "tasks.json.gz")
    assert source.problems.fatal
    assert source.problems.kept[0].rule == rule


def data(shared: Path, name: str) -> TaskSource:
    file = shared / "data" / name
    with file.open("rb") as stream:
        return task_files.read(stream, file.name)


@pytest.mark.parametrize(
    ("name", "format_", "tasks", "targets", "dropped"),
    [
        ("tasks_humaneval/HumanEval.jsonl.gz", "HumanEval", 164, 1133, 48),
        ("tasks_mbpp/mbpp.jsonl.gz", "MBPP", 974, 2922, 0),
        ("tasks_mbpp/sanitized-mbpp.json.gz", "MBPP", 427, 1324, 0),
    ],
)
def test_the_published_files(
    shared: Path, name: str, format_: str, tasks: int, targets: int, dropped: int
) -> None:
    source = data(shared, name)
    assert source.problems.kept == []
    assert (source.format, len(source.records)) == (format_, tasks)
    assert sum(len(record.targets) for record in source.records) == targets
    assert len(source.dropped) == dropped
    assert all(record.reference for record in source.records)
    assert all(
        Task(record.targets, prompt=record.prompt, setup=record.setup).names()
        for record in source.records
    )


def test_the_published_mbpp_has_its_own_ways(shared: Path) -> None:
    records = {
        record.task_id: record for record in data(shared, "tasks_mbpp/mbpp.jsonl.gz").records
    }
    with_setup = [task_id for task_id, record in records.items() if record.setup]
    assert with_setup == ["MBPP/367", "MBPP/927"]
    assert records["MBPP/126"].entry_points == ("sum",)
    for number in (56, 349, 899, 967):
        assert records[f"MBPP/{number}"].entry_points == ("check",)
    assert not any("\r\n" in record.reference + record.setup for record in records.values())


def test_a_published_selection_of_apps(shared: Path) -> None:
    source = data(shared, "tasks_other/apps_selected150.jsonl.gz")
    assert source.format == "contest problems"
    assert (len(source.records), source.problems.total) == (49, 101)
    assert {one.rule for one in source.problems.kept} == {"not supported"}
    assert sum(len(record.targets) for record in source.records) == 605
