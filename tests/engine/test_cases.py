"""The command that grades files of cases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grading.engine import canary
from grading.engine.cases import BadCase, grade_case, read_cases
from grading.engine.outcome import PlatformError
from grading.engine.sandbox import Sandbox
from grading.engine.task import Exchange, Format, Generation, Kind

ROOT = Path(__file__).resolve().parent.parent.parent
GOOD = {"id": "a", "generation": "def f(): return 1", "targets": ["f() == 1"], "metadata": {}}

STDIO = GOOD | {
    "generation": "print(2 * int(input()))",
    "targets": [{"input": "1", "output": "2", "weight": 3}, {"input": "2", "output": "5"}],
    "metadata": {"kind": "stdio"},
}


def lines(*rows: dict[str, Any] | str) -> list[str]:
    return [row if isinstance(row, str) else json.dumps(row) for row in rows]


def test_metadata_becomes_the_task_and_unknown_keys_are_ignored() -> None:
    metadata = {
        "timeout_s": 2,
        "prompt": "p",
        "format": "completion",
        "entry_point": "f",
        "setup": "s",
        "in_place": True,
        "allow_processes": True,
        "repeat": 3,
        "unknown": 1,
    }
    (case,) = read_cases(lines(GOOD | {"metadata": metadata, "other": 1}))
    task = case.task
    assert (task.timeout_s, task.prompt, task.setup) == (2.0, "p", "s")
    assert (task.entry_points, task.in_place, task.allow_processes) == (("f",), True, True)
    assert (case.repeat, case.generation.format) == (3, Format.COMPLETION)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: the line must be an object"),
        (GOOD | {"id": 1}, "line 2, id: found int, expected str"),
        (GOOD | {"targets": [1]}, "line 2, targets: found list, expected a string or a list"),
        ({"id": "a", "targets": []}, "line 2, generation: found NoneType, expected str"),
        (GOOD | {"metadata": []}, "line 2, metadata: found list, expected dict"),
        (GOOD | {"metadata": {"timeout_s": 31}}, "line 2, metadata.timeout_s: 31 is not in"),
        (GOOD | {"metadata": {"timeout_s": "3"}}, "line 2, metadata.timeout_s: found str"),
        (GOOD | {"metadata": {"in_place": 1}}, "line 2, metadata.in_place: found int"),
        (GOOD | {"metadata": {"format": "chat"}}, "line 2, metadata.format: use generation"),
        (GOOD | {"metadata": {"kind": "exam"}}, "line 2, metadata.kind: use assertion or stdio"),
        (STDIO | {"targets": "1"}, "line 2, targets: found str, expected a list of objects"),
        (STDIO | {"targets": ["1"]}, "line 2, targets: found str, expected a list of objects"),
        (STDIO | {"targets": [{"input": "1"}]}, "line 2, targets: found dict, expected a list"),
    ],
)
def test_a_wrong_line_is_named(row: Any, message: str) -> None:
    with pytest.raises(BadCase, match=message.replace("(", r"\(")):
        read_cases(lines(GOOD, row))


@pytest.mark.sandbox
def test_the_command_grades_in_order_and_writes_one_row_each(tmp_path: Path) -> None:
    wrong = GOOD | {"id": "b", "generation": "def f(): return 2"}
    (tmp_path / "in.jsonl").write_text("\n".join(lines(GOOD, wrong, "")))
    done = run(tmp_path, "in.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["id"], row["exit_code"], row["score"]) for row in rows] == [
        ("a", "pass", 1.0),
        ("b", "assertion_fail", 0.0),
    ]
    assert set(rows[0]) == {
        "id",
        "exit_code",
        "score",
        "passed",
        "total",
        "per_assertion",
        "labels",
        "detail",
        "denied",
        "tier",
        "duration_s",
    }


@pytest.mark.sandbox
def test_exchanges_are_cases_too(sandbox: Sandbox) -> None:
    (case,) = read_cases(lines(STDIO))
    assert case.task.kind is Kind.STDIO
    assert case.task.targets == (Exchange("1", "2"), Exchange("2", "5"))
    row = grade_case(case, sandbox)
    assert (row["exit_code"], row["per_assertion"]) == ("assertion_fail", [True, False])


def test_a_wrong_file_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n".join(lines(GOOD, "{")))
    done = run(tmp_path, "in.jsonl")
    assert done.returncode == 2
    assert "in.jsonl: line 2: not JSON" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_an_interpreter_that_is_not_there_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n".join(lines(GOOD)))
    done = run(tmp_path, "in.jsonl", "--python", "2.99")
    assert done.returncode == 2
    assert "no Python interpreter '2.99'" in done.stderr


def run(folder: Path, cases: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grading.engine", "--cases", str(folder / cases)]
    return subprocess.run(
        [*command, "--out", str(folder / "out.jsonl"), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.sandbox
def test_the_canaries_tell_right_from_wrong(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary.check(sandbox)
    with monkeypatch.context() as patch:
        patch.setattr(canary, "_GOOD", Generation("def total(values):\n    return 1\n"))
        with pytest.raises(PlatformError, match="a right program got assertion_fail"):
            canary.check(sandbox)
    monkeypatch.setattr(canary, "_BAD", canary._GOOD)
    with pytest.raises(PlatformError, match="a wrong program got pass"):
        canary.check(sandbox)
