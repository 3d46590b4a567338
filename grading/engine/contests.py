"""Contest problems as task records of the kind ``stdio``: rows as of APPS and LiveCodeBench.

Four forms of tests are read: APPS' ``input_output`` (JSON text with ``inputs`` and ``outputs``), a
``test_list`` of objects with ``input`` and ``output``, and LiveCodeBench's
``public_test_cases`` and ``private_test_cases`` (JSON text). An input or output that is a list
holds lines. Problems that ask for a function (``fn_name``, ``functional`` tests or starter code)
are not converted. Limits per test are those of the two benchmarks' own graders.
"""

from __future__ import annotations

import json
from typing import Any

from grading.engine.conversion import BadRow, Row, record_row, require
from grading.engine.target_rules import compile_problem

APPS_TIMEOUT_S = 4.0  # APPS: eval/testing_util.py, timeout
LIVECODEBENCH_TIMEOUT_S = 6.0  # LiveCodeBench: lcb_runner/evaluation/testing_util.py, timeout
TESTS = ("input_output", "test_list", "public_test_cases")
PROMPTS = ("question_content", "question", "description")


def recognises(row: Row) -> bool:
    keys = row.keys()
    return bool(keys & set(TESTS)) and bool(keys & set(PROMPTS))


def to_row(row: Row) -> tuple[Row, list[str]]:
    """Raises `BadRow`."""
    task_id = _task_id(row)
    wording = next(name for name in PROMPTS if name in row)
    require(row, task_id, **{wording: str})
    if "input_output" not in row and str(row.get("starter_code") or "").strip():
        detail = "asks for a function (it has starter code), not for a program that reads stdin"
        raise BadRow(task_id, "starter_code", "not supported", detail)
    is_livecodebench = "public_test_cases" in row
    return record_row(
        task_id,
        row[wording],
        [{"input": given, "output": wanted} for given, wanted in _tests(row, task_id)],
        kind="stdio",
        timeout_s=LIVECODEBENCH_TIMEOUT_S if is_livecodebench else APPS_TIMEOUT_S,
        reference=_reference(row, task_id),
        difficulty=row.get("difficulty"),
    ), []


def _task_id(row: Row) -> str:
    if isinstance(row.get("question_id"), str):
        return str(row["question_id"])
    number = next((row[name] for name in ("problem_id", "id") if name in row), None)
    if isinstance(number, bool) or not isinstance(number, int | str):
        detail = "expected question_id, problem_id or id"
        raise BadRow("", "id", "missing field", detail)
    return f"APPS/{number}"


def _tests(row: Row, task_id: str) -> list[tuple[str, str]]:
    found: list[tuple[Any, Any]] = []
    if "input_output" in row:
        tests = _parsed(row["input_output"], task_id, "input_output", dict)
        if tests.get("fn_name"):
            detail = "asks for a function (fn_name), not for a program that reads stdin"
            raise BadRow(task_id, "input_output", "not supported", detail)
        inputs, outputs = tests.get("inputs"), tests.get("outputs")
        if not isinstance(inputs, list) or not isinstance(outputs, list):
            raise BadRow(task_id, "input_output", "wrong type", "expected inputs and outputs")
        if len(inputs) != len(outputs):
            detail = f"{len(inputs)} inputs but {len(outputs)} outputs"
            raise BadRow(task_id, "input_output", "wrong number", detail)
        found = list(zip(inputs, outputs, strict=True))
    for name in ("test_list", "public_test_cases", "private_test_cases"):
        if name in row:
            found += _cases(_parsed(row[name], task_id, name, list), task_id, name)
    return [(_text(given, task_id), _text(wanted, task_id)) for given, wanted in found]


def _cases(cases: list[Any], task_id: str, name: str) -> list[tuple[Any, Any]]:
    for case in cases:
        if not isinstance(case, dict) or not {"input", "output"} <= case.keys():
            raise BadRow(task_id, name, "wrong type", "expected objects with input and output")
        if case.get("testtype", "stdin") != "stdin":
            detail = "asks for a function, not for a program that reads stdin"
            raise BadRow(task_id, name, "not supported", detail)
    return [(case["input"], case["output"]) for case in cases]


def _parsed(value: Any, task_id: str, name: str, kind: type) -> Any:
    """The value, or what its text holds as JSON. A packed form is no JSON and never unpickled."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            detail = "not JSON; tests that are packed as base64 have to be written out first"
            raise BadRow(task_id, name, "bad JSON", detail) from None
    if not isinstance(value, kind):
        raise BadRow(task_id, name, "wrong type", f"expected a JSON {kind.__name__}")
    return value


def _text(value: Any, task_id: str) -> str:
    lines = value if isinstance(value, list) else [value]
    if not all(isinstance(line, str) for line in lines):
        raise BadRow(task_id, "tests", "wrong type", "expected texts, or lists of lines")
    return "\n".join(lines)


def _reference(row: Row, task_id: str) -> str:
    """The first solution that is Python 3: APPS keeps those of several people and versions."""
    solutions = row.get("solutions") or []
    if isinstance(solutions, str):
        solutions = _parsed(solutions, task_id, "solutions", list)
    texts = [text for text in solutions if isinstance(text, str)]
    return next((text for text in texts if not compile_problem(text)), "")
