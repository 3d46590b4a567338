"""Versions, what the engine gets of them, reference solutions, downloads, the import command."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from grading import benchmarks, models
from grading.engine.jsonl import Problem, ProblemLog
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.task import BlockPolicy, Preamble

pytestmark = pytest.mark.django_db


def record(task_id: str = "T/0", **fields: Any) -> TaskRecord:
    values = {"prompt": "Write f(x).", "targets": ("f(1) == 1", "f(2) == 2")} | fields
    return TaskRecord(task_id, **values)


def imported(*records: TaskRecord, slug: str = "mine") -> benchmarks.Imported:
    return benchmarks.import_version(slug, "Mine", list(records), source="mine.jsonl")


def problem_log(fatal: bool = False) -> ProblemLog:
    log = ProblemLog()
    log.add(Problem(3, "T/9", "prompt", "empty", "no text"), fatal=fatal)
    return log


def test_versions_are_frozen_numbered_and_never_doubled() -> None:
    first = imported(record("T/0"), record("T/1"))
    again = imported(record("T/1"), record("T/0"))
    changed = imported(record("T/0"), record("T/1", targets=("f(1) == 2",)))
    assert (first.created, again.created, changed.created) == (True, False, True)
    assert again.version == first.version
    assert [version.number for version in models.BenchmarkVersion.objects.order_by("number")] == [
        1,
        2,
    ]
    assert len(first.version.content_hash) == 64
    assert first.version.content_hash != changed.version.content_hash
    assert models.Task.objects.count() == 4


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "Other."},
        {"targets": ("f(1) == 1",)},
        {"setup": "x = 1"},
        {"entry_points": ("f",)},
        {"reference": "def f(x): return x"},
        {"timeout_s": 5.0},
        {"in_place": True},
        {"allow_processes": True},
    ],
)
def test_everything_that_is_graded_is_in_the_hash(change: dict[str, Any]) -> None:
    assert benchmarks.hash_of([record()]) != benchmarks.hash_of([record(**change)])


def test_problems_refuse_the_import_unless_allowed() -> None:
    with pytest.raises(benchmarks.ImportRefused, match="1 problem"):
        benchmarks.import_version("mine", "Mine", [record()], problem_log())
    assert not models.Benchmark.objects.exists()
    version = benchmarks.import_version(
        "mine", "Mine", [record()], problem_log(), allow_bad=True
    ).version
    assert version.notes["problems"] == 1
    assert version.notes["first_problems"][0]["line"] == 3


@pytest.mark.parametrize("records", [[], [record()]], ids=["no record left", "unreadable file"])
def test_some_files_are_never_imported(records: list[TaskRecord]) -> None:
    with pytest.raises(benchmarks.ImportRefused):
        benchmarks.import_version("mine", "Mine", records, problem_log(bool(records)), "", True)
    assert not models.Benchmark.objects.exists()


def test_task_slugs_are_unique_and_never_empty() -> None:
    ids = ["HumanEval/0", "HumanEval-0", "猫", "//", "a.b"]
    assert benchmarks.task_slugs(ids) == ["HumanEval-0", "HumanEval-0-2", "task-2", "task-3", "a-b"]


@pytest.mark.parametrize(
    ("own", "measured", "limit"),
    [(None, None, 3.0), (None, 8.5, 8.5), (2.0, 8.5, 2.0), (20, None, 20), (None, 99.0, 30.0)],
)
def test_the_limit_of_a_task(own: float | None, measured: float | None, limit: float) -> None:
    version = imported(record(timeout_s=own)).version
    row = models.Task.objects.get(version=version)
    row.measured_timeout_s = measured
    assert benchmarks.engine_task(row).timeout_s == limit


def test_the_engine_gets_the_policies_of_the_benchmark() -> None:
    version = imported(record(setup="x = 1", entry_points=("f",), in_place=True)).version
    models.Benchmark.objects.update(blocks="last", preamble="nothing", denylist=["os"])
    task = benchmarks.engine_task(models.Task.objects.get(version=version))
    assert (task.blocks, task.preamble) == (BlockPolicy.LAST, Preamble.NOTHING)
    assert (task.denylist, task.setup, task.entry_points) == (("os",), "x = 1", ("f",))
    assert (task.targets, task.in_place) == (("f(1) == 1", "f(2) == 2"), True)


@pytest.mark.sandbox
def test_references_are_graded_once_and_shown() -> None:
    sandbox = Sandbox("host")
    sandbox.ensure()
    slow = "import time\ndef f(x):\n    time.sleep(0.5)\n    return x\n"
    version = imported(
        record("good", reference="def f(x):\n    return x\n"),
        record("slow", reference=slow),
        record("wrong", reference="def f(x):\n    return 1\n"),
        record("in place", reference="def f(x):\n    x.append(1)\n",
               targets=("a = []\nr = f(a)\nassert a == [1]",)),
        record("without"),
    ).version  # fmt: skip
    steps: list[tuple[int, int]] = []
    report = benchmarks.grade_references(version, sandbox, lambda *step: steps.append(step))
    assert [(one.task_id, one.outcome) for one in report.failed] == [("wrong", "assertion_fail")]
    assert (report.total, report.passed) == (4, 3)
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    rows = {row.task_id: row for row in models.Task.objects.filter(version=version)}
    assert rows["good"].measured_timeout_s is None
    assert 4.0 <= (rows["slow"].measured_timeout_s or 0) <= 30.0
    assert (rows["wrong"].status, rows["good"].status) == ("suspect", "active")
    assert (rows["in place"].in_place, rows["good"].in_place) == (True, False)
    assert rows["without"].reference_verdict is None
    assert benchmarks.hash_of([record()]) == benchmarks.hash_of([record()])
    assert benchmarks.grade_references(version, sandbox, lambda *step: steps.append(step)) == report
    assert len(steps) == 4


def test_downloads_hold_prompts_and_no_targets() -> None:
    version = imported(
        record("T/0", reference="SECRET"), record("T/1", entry_points=("g", "h"))
    ).version
    lines = [json.loads(line) for line in benchmarks.prompts_jsonl(version)]
    assert lines == [
        {"task_id": "T/0", "prompt": "Write f(x).", "entry_point": "f"},
        {"task_id": "T/1", "prompt": "Write f(x).", "entry_point": ["g", "h"]},
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_example_is_three_lines_that_can_be_uploaded(count: int) -> None:
    from grading import uploads

    version = imported(*(record(f"T/{number}") for number in range(count))).version
    example = benchmarks.example_jsonl(version)
    report = uploads.check(io.BytesIO(example.encode()), "example.jsonl", version)
    assert (report.records, report.samples, report.ok) == (3, 3, True)


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("import_benchmark", *words, stdout=out, stderr=out)
    return out.getvalue()


def task_line(**changes: Any) -> str:
    row = {
        "task_id": "T/0",
        "category": "code_exec",
        "prompt": "Write f(x).",
        "targets": ["f(1) == 1", "assert True"],
        "metric_name": "code_exec",
        "post_process": "extract_code_block",
    }
    return json.dumps(row | changes) + "\n"


def test_command_refuses_a_bad_file_and_imports_the_rest_when_told(tmp_path: Path) -> None:
    file = tmp_path / "My Tasks.jsonl"
    file.write_text(task_line() + task_line(task_id="T/1", prompt="x ") + "{\n")
    with pytest.raises(SystemExit) as stopped:
        command(str(file))
    assert stopped.value.code == 2
    assert not models.Benchmark.objects.exists()
    said = command(str(file), "--allow-bad-tasks", "--skip-references")
    assert "1 tasks, 2 targets" in said
    assert "line 2: T/1 prompt: trailing white space" in said
    assert "line 3: bad JSON" in said
    assert "line 1: T/0 targets[1]: constant target" in said
    assert models.Benchmark.objects.get().slug == "my-tasks"
    assert "was here already" in command(str(file), "--allow-bad-tasks", "--skip-references")
    assert models.BenchmarkVersion.objects.count() == 1


def test_command_imports_humaneval() -> None:
    said = command("humaneval", "--skip-references")
    assert "164 tasks, 1133 targets" in said
    assert "Dropped 48 constant targets in 36 tasks" in said
    version = models.BenchmarkVersion.objects.get()
    assert version.benchmark.slug == "humaneval"
    assert len(version.notes["dropped_targets"]) == 48


@pytest.mark.parametrize("words", [["no-such-file.jsonl"], ["humaneval", "--slug", "Not A Slug"]])
def test_command_says_what_would_be_right(words: list[str]) -> None:
    with pytest.raises(CommandError, match=r"humaneval|lower-case"):
        command(*words)
