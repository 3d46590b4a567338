"""MBPP from its published file to a version, and uploads that name its tasks by number."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from grading import benchmarks, models, uploads
from grading.engine import task_files
from grading.engine.limits import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from grading.engine.sandbox import Sandbox
from grading.engine.task_files import TaskSource

pytestmark = pytest.mark.django_db


def published(shared: Path) -> Path:
    return shared / "data" / "tasks_mbpp" / "mbpp.jsonl.gz"


@cache
def read(shared: Path) -> TaskSource:
    with published(shared).open("rb") as stream:
        return task_files.read(stream, "mbpp.jsonl.gz")


def version_of(shared: Path, *numbers: int) -> models.BenchmarkVersion:
    wanted = {f"MBPP/{number}" for number in numbers}
    records = [record for record in read(shared).records if record.task_id in wanted]
    assert len(records) == len(numbers)
    return benchmarks.import_version("mbpp", "MBPP", records).version


def test_the_command_takes_the_published_file(shared: Path) -> None:
    out = io.StringIO()
    call_command("import_benchmark", str(published(shared)), "--skip-references", stdout=out)
    assert "mbpp.jsonl.gz (MBPP): 974 tasks, 2922 targets." in out.getvalue()
    version = models.BenchmarkVersion.objects.get()
    assert (version.benchmark.slug, version.tasks.count()) == ("mbpp", 974)
    assert version.tasks.get(task_id="MBPP/11").slug == "MBPP-11"


def test_refused_rows_are_told_and_the_others_imported_when_told(shared: Path) -> None:
    out = io.StringIO()
    file = shared / "data" / "tasks_other" / "apps_selected150.jsonl.gz"
    words = ["import_benchmark", str(file), "--slug", "apps", "--skip-references"]
    with pytest.raises(SystemExit):
        call_command(*words, stdout=out, stderr=out)
    assert "line 1: APPS/3554 starter_code: not supported: asks for a function" in out.getvalue()
    call_command(*words, "--allow-bad-tasks", stdout=out, stderr=out)
    version = models.BenchmarkVersion.objects.get()
    assert set(version.tasks.values_list("kind", flat=True)) == {"stdio"}
    assert version.tasks.count() == 49


@pytest.mark.parametrize("written", [11, "11", "MBPP/11", "mbpp_11", "Mbpp/11"])
def test_a_task_is_meant_by_its_number(shared: Path, written: Any) -> None:
    version = version_of(shared, 11, 12)
    rows = [{"task_id": written, "generation": "def remove_Occ(s, ch): return s"}]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    report = uploads.check(io.BytesIO(data), "upload.jsonl", version)
    assert report.ok, report.problems
    assert [preview.task_id for preview in report.previews] == ["MBPP/11"]


def test_a_number_of_no_task_is_a_problem(shared: Path) -> None:
    version = version_of(shared, 11, 12)
    rows = [{"task_id": number, "generation": "x = 1"} for number in (11, 975)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    report = uploads.check(io.BytesIO(data), "upload.jsonl", version)
    assert [(one.line, one.rule) for one in report.problems] == [(2, "unknown task")]


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_slow_reference_raises_its_tasks_limit(shared: Path, sandbox: Sandbox) -> None:
    version = version_of(shared, 123)
    report = benchmarks.grade_references(version, sandbox)
    assert (report.total, report.passed) == (1, 1)
    row = version.tasks.get()
    wall_s = row.reference_verdict["wall_s"]
    assert wall_s > DEFAULT_TIMEOUT_S / 4
    assert row.measured_timeout_s == min(4 * wall_s, MAX_TIMEOUT_S)
    assert benchmarks.engine_task(row).timeout_s == row.measured_timeout_s
