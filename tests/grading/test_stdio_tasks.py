"""Tasks of the kind ``stdio`` from their file to the pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from grading import benchmarks, models
from grading.engine.cases import read_case
from grading.engine.grade import grade
from grading.engine.outcome import Label, Outcome, Stream, TargetResult
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.task import Exchange, Generation, Kind
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db

TARGETS = (Exchange("3\nfirst secret\n", "6\n"), Exchange("4\n" + "x" * 5_000, "8 wanted"))
REFERENCE = "n = int(input())\nprint(2 * n, *(['wanted'] if n == 4 else []))"
WRONG = "n = int(input())\nprint(2 * n)\nraise SystemExit(7 if n == 9 else 0)"


def record(**changes: Any) -> TaskRecord:
    values = {"kind": Kind.STDIO, "reference": REFERENCE} | changes
    return TaskRecord("Double/0", "Read n and print 2 n.", TARGETS, **values)


def stored(*records: TaskRecord, hidden: bool = False) -> models.BenchmarkVersion:
    version = benchmarks.import_version("double", "Double", records or (record(),)).version
    models.Benchmark.objects.update(targets_hidden=hidden)
    version.refresh_from_db()
    return version


@pytest.fixture
def rosa() -> User:
    return web_records.person("rosa")


def test_kind_and_targets_are_stored_and_read_back() -> None:
    row = stored().tasks.get()
    assert row.kind == "stdio"
    assert row.targets[0] == {"input": "3\nfirst secret\n", "output": "6\n"}
    task = benchmarks.engine_task(row)
    assert (task.kind, task.targets) == (Kind.STDIO, TARGETS)


def test_the_kind_is_part_of_the_content() -> None:
    one, other = (
        TaskRecord("T/0", "p", ("f()",), kind=kind) for kind in (Kind.ASSERTION, Kind.STDIO)
    )
    assert benchmarks.hash_of([one]) != benchmarks.hash_of([other])
    changed = record().graded_content() | {
        "targets": [{"input": "3\nfirst secret\n", "output": ""}]
    }
    assert changed["targets"] != record().graded_content()["targets"]


@pytest.mark.sandbox
def test_references_are_graded(sandbox: Sandbox) -> None:
    wrong = TaskRecord("Double/1", "p", TARGETS, kind=Kind.STDIO, reference=WRONG)
    version = stored(record(), wrong)
    report = benchmarks.grade_references(version, sandbox)
    assert (report.total, report.passed) == (2, 1)
    assert report.failed[0].detail.startswith("target 2 of 2: line 1 of the output: expected")
    assert [row.in_place for row in version.tasks.all()] == [False, False]


@pytest.mark.sandbox
def test_the_limit_follows_the_longest_target(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [TargetResult(n, True, Label.SEALED, "", s) for n, s in enumerate((2.0, 1.5))]
    slow = verdict(Outcome.PASS, targets=results, wall_s=3.5)
    monkeypatch.setattr(benchmarks, "grade", lambda task, program, sandbox: slow)
    version = stored()
    benchmarks.grade_references(version, sandbox)
    assert version.tasks.get().measured_timeout_s == 8.0


def test_downloads_and_the_example() -> None:
    from grading import uploads

    version = stored()
    (line,) = benchmarks.prompts_jsonl(version)
    assert json.loads(line) == {
        "task_id": "Double/0",
        "prompt": "Read n and print 2 n.",
        "entry_point": None,
    }
    example = benchmarks.example_jsonl(version)
    assert "completion" not in example
    import io

    report = uploads.check(io.BytesIO(example.encode()), "example.jsonl", version)
    assert (report.samples, report.ok) == (3, True)


def failing(sandbox: Sandbox, version: models.BenchmarkVersion, uploader: User) -> Any:
    """A submission whose sample prints too little for the second target."""
    task = benchmarks.engine_task(version.tasks.get())
    ruling = grade(task, Generation(WRONG), sandbox)
    assert (ruling.outcome, ruling.passed) == (Outcome.ASSERTION_FAIL, 1)
    return web_records.submission(version, uploader, lambda task, index: ruling, n=1, text=WRONG)


@pytest.mark.sandbox
def test_pages_show_what_was_given_expected_and_printed(
    client: Client, rosa: User, sandbox: Sandbox
) -> None:
    made = failing(sandbox, stored(), rosa)
    page = client.get("/b/double/tasks/Double-0/").content.decode()
    assert "standard input and output" in page
    assert 'aria-label="input of target 1"' in page
    assert 'aria-label="expected output of target 2"' in page
    assert "first secret" in page and "8 wanted" in page
    assert "3 s, the default, for each target" in page
    assert "left out here" in page
    assert "In-place change" not in page
    page = client.get(f"/s/{made.public_id}/Double-0/0/").content.decode()
    assert 'aria-label="printed of target 2"' in page
    assert "expected &#x27;8 wanted&#x27;, printed &#x27;8&#x27;" in page
    assert page.count("holds</span>") == 1
    assert "not true</span>" in page
    assert "raised</span>" not in page
    assert "at most 3" in page and "for each target" in page
    assert len(page) < 60_000


@pytest.mark.sandbox
def test_hidden_exchanges_are_for_staff(client: Client, rosa: User, sandbox: Sandbox) -> None:
    made = failing(sandbox, stored(hidden=True), rosa)
    paths = [
        "/b/double/tasks/",
        "/b/double/tasks/Double-0/",
        f"/s/{made.public_id}/",
        f"/s/{made.public_id}/samples/",
        f"/s/{made.public_id}/Double-0/0/",
        "/api/v1/benchmarks/double/tasks/Double-0",
        f"/api/v1/submissions/{made.public_id}/results/Double-0/0",
    ]
    client.force_login(rosa)
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        page = answer.content.decode()
        assert not [word for word in ("first secret", "wanted", "printed '8") if word in page], path
    client.force_login(web_records.person("sam", staff=True))
    assert "wanted" in client.get(paths[4]).content.decode()


def test_a_status_that_a_program_chose_does_not_tell_hidden_targets(
    client: Client, rosa: User
) -> None:
    from grading.engine.outcome import Failure

    told = verdict(Outcome.ASSERTION_FAIL, failure=Failure("target", exit_status=42))
    made = web_records.submission(stored(hidden=True), rosa, lambda task, index: told, n=1)
    assert "Exit status" not in client.get(f"/s/{made.public_id}/Double-0/0/").content.decode()
    models.Benchmark.objects.update(targets_hidden=False)
    assert "Exit status" in client.get(f"/s/{made.public_id}/Double-0/0/").content.decode()


@pytest.mark.sandbox
def test_a_sample_can_be_run_again_elsewhere(client: Client, rosa: User, sandbox: Sandbox) -> None:
    made = failing(sandbox, stored(), rosa)
    row = client.get(f"/s/{made.public_id}/Double-0/0/case.jsonl").content.decode()
    case = read_case(1, row)
    assert (case.task.kind, case.task.targets) == (Kind.STDIO, TARGETS)
    again = grade(case.task, case.generation, sandbox)
    assert [target.true for target in again.targets] == [True, False]


@pytest.mark.sandbox
def test_the_api_tells_them(client: Client, rosa: User, sandbox: Sandbox) -> None:
    made = failing(sandbox, stored(), rosa)
    task = client.get("/api/v1/benchmarks/double/tasks/Double-0").json()
    assert (task["kind"], task["targets"][0]["output"]) == ("stdio", "6\n")
    sample = client.get(f"/api/v1/submissions/{made.public_id}/results/Double-0/0").json()
    first, second = sample["attempt"]["targets"]
    assert [text["name"] for text in first["texts"]] == ["input", "expected output", "printed"]
    assert (second["true"], second["texts"][2]["head"]) == (False, "8\n")
    assert sample["case"]["metadata"]["kind"] == "stdio"


def test_printed_text_is_hostile(client: Client, rosa: User) -> None:
    bad = "<script>alert(1)</script>\u202e" + "y" * 2_000
    result = TargetResult(0, False, Label.SEALED, bad, 0.1, Stream(bad, "", 9_999_999))
    told = verdict(Outcome.ASSERTION_FAIL, targets=[result], detail=bad)
    made = web_records.submission(stored(), rosa, lambda task, index: told, n=1)
    page = client.get(f"/s/{made.public_id}/Double-0/0/").content.decode()
    assert "<script>alert" not in page
    assert "\u202e" not in page
