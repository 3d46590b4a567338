"""The task file format and its rules."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from grading.engine.records import TaskFile, check_record, read_tasks
from grading.engine.task import Exchange, Kind

GOOD: dict[str, Any] = {
    "task_id": "Mine/0",
    "category": "code_exec",
    "prompt": "Write add(a, b).",
    "targets": ["add(1, 2) == 3", "assert add(0, 0) == 0, 'zero'", "x = add(1, 1)\nassert x == 2"],
    "metric_name": "code_exec",
    "post_process": "extract_code_block",
}


def read(*rows: Any) -> TaskFile:
    return read_tasks(io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()))


def test_a_full_record() -> None:
    metadata = {
        "timeout_s": 30,
        "entry_point": "add",
        "setup": "import math",
        "in_place": True,
        "allow_processes": True,
        "reference": "def add(a, b): return a + b",
        "difficulty": "easy",
    }
    examples = [{"prompt": "p", "completion": "c"}]
    result = read(GOOD | {"metadata": metadata, "few_shot_examples": examples})
    assert result.problems.total == result.warnings.total == 0
    record = result.records[0]
    assert (record.timeout_s, record.entry_points, record.setup) == (30, ("add",), "import math")
    assert (record.in_place, record.allow_processes) == (True, True)
    assert record.reference.startswith("def add")
    assert record.metadata == {"difficulty": "easy"}
    assert record.few_shot_examples == tuple(examples)


WITHOUT = object()


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"prompt": WITHOUT}, "prompt", "missing field"),
        ({"answer": 1}, "answer", "unknown field"),
        ({"task_id": 12}, "task_id", "wrong type"),
        ({"task_id": True}, "task_id", "wrong type"),
        ({"task_id": ""}, "task_id", "length"),
        ({"task_id": "a b"}, "task_id", "white space"),
        ({"category": 1}, "category", "wrong type"),
        ({"category": "poetry"}, "category", "unknown category"),
        ({"category": "mcq"}, "metric_name", "illegal pair"),
        ({"metric_name": "f1"}, "metric_name", "illegal pair"),
        ({"category": "mcq", "metric_name": "exact_match"}, "category", "not supported"),
        ({"post_process": "lower"}, "post_process", "illegal pair"),
        ({"post_process": []}, "post_process", "wrong type"),
        ({"prompt": 1}, "prompt", "wrong type"),
        ({"prompt": " \n"}, "prompt", "empty"),
        ({"prompt": "Write it.\n"}, "prompt", "trailing white space"),
        ({"prompt": "a\x00b"}, "prompt", "NUL character"),
        ({"prompt": "a\ud800b"}, "prompt", "lone surrogate"),
        ({"targets": "f()"}, "targets", "wrong type"),
        ({"targets": []}, "targets", "no targets"),
        ({"targets": [1]}, "targets[0]", "wrong type"),
        ({"targets": ["f()", "  "]}, "targets[1]", "empty"),
        ({"targets": ["f() =="]}, "targets[0]", "does not compile"),
        ({"targets": ["return 1"]}, "targets[0]", "does not compile"),
        ({"targets": ["(" * 1000]}, "targets[0]", "does not compile"),
        ({"few_shot_examples": [{"prompt": "x"}]}, "few_shot_examples", "wrong type"),
        ({"few_shot_examples": [{"prompt": "x", "completion": "y"}] * 9}, "few_shot_examples",
         "too many"),
        ({"metadata": []}, "metadata", "wrong type"),
        ({"metadata": {"timeout_s": "3"}}, "metadata.timeout_s", "wrong type"),
        ({"metadata": {"timeout_s": True}}, "metadata.timeout_s", "wrong type"),
        ({"metadata": {"timeout_s": 30.5}}, "metadata.timeout_s", "out of range"),
        ({"metadata": {"timeout_s": 0}}, "metadata.timeout_s", "out of range"),
        ({"metadata": {"entry_point": 1}}, "metadata.entry_point", "wrong type"),
        ({"metadata": {"entry_point": ["a-b"]}}, "metadata.entry_point", "not a name"),
        ({"metadata": {"setup": "("}}, "metadata.setup", "does not compile"),
        ({"metadata": {"reference": 1}}, "metadata.reference", "wrong type"),
        ({"metadata": {"in_place": 1}}, "metadata.in_place", "wrong type"),
    ],
)  # fmt: skip
def test_each_rule_is_reported_by_line_task_and_field(
    change: dict[str, Any], field: str, rule: str
) -> None:
    row = {key: value for key, value in (GOOD | change).items() if value is not WITHOUT}
    result = read(GOOD | {"task_id": "Other/1"}, row)
    assert [record.task_id for record in result.records] == ["Other/1"]
    problem = result.problems.kept[0]
    assert (problem.line, problem.field, problem.rule) == (2, field, rule)
    assert problem.task_id == (row["task_id"] if isinstance(row["task_id"], str) else "")
    assert problem.detail


def test_duplicate_ids_name_the_first_line() -> None:
    result = read(GOOD, GOOD)
    assert (len(result.records), result.problems.total) == (1, 1)
    assert "line 1" in result.problems.kept[0].detail


def test_lines_that_are_no_objects_or_no_json() -> None:
    result = read_tasks(io.BytesIO(b'5\n{"task_id": \n'))
    assert [problem.rule for problem in result.problems.kept] == ["wrong type", "bad JSON"]


def test_escaped_escapes_are_no_nul() -> None:
    assert read(GOOD | {"targets": [r"f('\\u0000') == '\x00'"]}).problems.total == 0


def test_constant_targets_stay_with_a_warning() -> None:
    result = read(GOOD | {"targets": ["assert True", "add(1, 2) == 3"]})
    assert len(result.records[0].targets) == 2
    assert [warning.field for warning in result.warnings.kept] == ["targets[0]"]


def test_importers_of_other_formats_keep_white_space() -> None:
    assert not list(check_record(1, GOOD | {"prompt": "def f():\n"}, strict=False))


EXCHANGE = {"input": "1 2\n", "output": "3\n"}
STDIO: dict[str, Any] = GOOD | {"targets": [EXCHANGE], "metadata": {"kind": "stdio"}}


def test_a_task_of_the_kind_stdio() -> None:
    result = read(STDIO, GOOD | {"task_id": "Mine/1", "metadata": {"kind": "assertion"}})
    assert result.problems.total == result.warnings.total == 0
    stdio, assertion = result.records
    assert (stdio.kind, stdio.targets) == (Kind.STDIO, (Exchange("1 2\n", "3\n"),))
    assert stdio.metadata == assertion.metadata == {}
    assert stdio.graded_content()["targets"] == [EXCHANGE]
    kinds = [record.graded_content()["kind"] for record in result.records]
    assert kinds == ["stdio", "assertion"]


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"metadata": {"kind": "unittest"}}, "metadata.kind", "unknown kind"),
        ({"metadata": {"kind": ["stdio"]}}, "metadata.kind", "unknown kind"),
        ({"metadata": {}}, "targets[0]", "wrong type"),
        ({"targets": "1"}, "targets", "wrong type"),
        ({"targets": []}, "targets", "no targets"),
        ({"targets": ["add(1, 2) == 3"]}, "targets[0]", "wrong type"),
        ({"targets": [EXCHANGE, {"input": "1"}]}, "targets[1].output", "missing field"),
        ({"targets": [EXCHANGE | {"output": 3}]}, "targets[0].output", "wrong type"),
        ({"targets": [EXCHANGE | {"input": None}]}, "targets[0].input", "wrong type"),
        ({"targets": [EXCHANGE | {"weight": 1}]}, "targets[0].weight", "unknown field"),
        ({"targets": [EXCHANGE | {"output": "é" * 131_073}]}, "targets[0].output", "too long"),
        ({"targets": [EXCHANGE | {"input": "\0"}]}, "targets", "NUL character"),
        (
            {"metadata": {"kind": "stdio", "entry_point": "f"}},
            "metadata.entry_point",
            "illegal pair",
        ),
        ({"metadata": {"kind": "stdio", "setup": "x = 1"}}, "metadata.setup", "illegal pair"),
        ({"metadata": {"kind": "stdio", "in_place": True}}, "metadata.in_place", "illegal pair"),
    ],
)
def test_a_bad_task_of_the_kind_stdio(change: dict[str, Any], field: str, rule: str) -> None:
    result = read(STDIO | change)
    assert result.records == []
    assert [(one.field, one.rule) for one in result.problems.kept] == [(field, rule)]


def test_a_message_says_what_would_be_right() -> None:
    (found,) = read(GOOD | {"targets": [EXCHANGE]}).problems.kept
    assert 'set metadata.kind "stdio"' in found.detail
    (found,) = read(STDIO | {"targets": ["3"]}).problems.kept
    assert "an object with the strings input and output" in found.detail


def test_an_empty_expected_output_stays_with_a_warning() -> None:
    result = read(STDIO | {"targets": [EXCHANGE | {"output": " \n"}, EXCHANGE]})
    assert len(result.records[0].targets) == 2
    assert [warning.field for warning in result.warnings.kept] == ["targets[0].output"]
