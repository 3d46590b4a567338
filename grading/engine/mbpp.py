"""MBPP as task records: the 974 tasks of ``mbpp.jsonl`` and the 427 of ``sanitized-mbpp.json``.

Austin et al. 2021, "Program Synthesis with Large Language Models". Task 11 becomes ``MBPP/11``.
Its targets are the strings of ``test_list``, unedited; ``challenge_test_list`` is no part of the
benchmark and kept as metadata. ``test_setup_code`` and ``test_imports`` are set-up, which runs
after the program: they use its classes. The prompt is the field's wording and the first test,
which tells the function's name and signature.
"""

from __future__ import annotations

from grading.engine import source
from grading.engine.conversion import BadRow, Row, record_row, require
from grading.engine.task import called_names

FULL = frozenset({"text", "code", "task_id", "test_list"})
SANITIZED = frozenset({"prompt", "code", "task_id", "test_list"})
ASK = "Your code should pass this test:"


def recognises(row: Row) -> bool:
    keys = row.keys()
    return isinstance(row.get("task_id"), int) and (keys >= FULL or keys >= SANITIZED)


def to_row(row: Row) -> tuple[Row, list[str]]:
    """Raises `BadRow`."""
    require(row, "", task_id=int)
    task_id = f"MBPP/{row['task_id']}"
    wording = "text" if "text" in row else "prompt"
    require(row, task_id, **{wording: str}, code=str, test_list=list)
    tests = row["test_list"]
    if not tests or not all(isinstance(test, str) for test in tests):
        raise BadRow(task_id, "test_list", "wrong type", "expected strings, at least one")
    # Nearly all of the full set's programs have CRLF line ends.
    code = row["code"].replace("\r\n", "\n")
    setup = _setup(row, task_id)
    return record_row(
        task_id,
        f"{row[wording]}\n\n{ASK}\n\n{tests[0]}\n",
        tests,
        entry_point=_entry_points(tests, setup, code),
        setup=setup,
        reference=code,
        challenge_test_list=row.get("challenge_test_list"),
    ), []


def _setup(row: Row, task_id: str) -> str:
    imports = row.get("test_imports", [])
    if not isinstance(imports, list) or not all(isinstance(line, str) for line in imports):
        raise BadRow(task_id, "test_imports", "wrong type", "expected a list of strings")
    code = row.get("test_setup_code", "")
    if not isinstance(code, str):
        raise BadRow(task_id, "test_setup_code", "wrong type", "expected a string")
    return "\n".join([*imports, code.replace("\r\n", "\n")]).strip()


def _entry_points(tests: list[str], setup: str, code: str) -> list[str]:
    """Of the names that the tests call, those that the reference solution defines."""
    called = called_names(tuple(tests), setup)
    defined = source.defined_names(code, source.parse(code))
    return [name for name in called if name in defined] or list(called)
