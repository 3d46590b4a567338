"""The same files as through the form, by the API: what is said, what is stored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from grading import verdicts
from grading.engine.outcome import Outcome
from grading.models import BenchmarkVersion, Chunk, Generation, Sample, Submission
from tests.grading import web_records
from tests.grading.test_api import bearer, problem
from tests.intake.upload_table import TABLE, TASKS, every, nothing_stored, row

pytestmark = pytest.mark.django_db
SEND = "/api/v1/submissions?benchmark=tidepool&model=Quillfish%208B"


@pytest.fixture
def rosa() -> Any:
    web_records.benchmark(tasks=TASKS)
    return web_records.person("rosa")


@pytest.fixture
def headers(rosa: Any) -> dict[str, str]:
    return bearer(rosa, "submit")


def send(client: Client, content: bytes, headers: dict[str, str], more: str = "") -> Any:
    kind = "application/octet-stream"
    return client.post(SEND + more, content, content_type=kind, **headers)


@pytest.mark.parametrize("name", TABLE)
def test_the_report_is_the_same_and_so_are_the_samples(
    client: Client, headers: dict[str, str], name: str
) -> None:
    expected = TABLE[name]
    content = expected.content()
    report = send(client, content, headers, "&dry_run=true").json()
    assert nothing_stored(), "a dry run stores nothing"
    assert report["ok"] is not bool(expected.rules)
    assert set(report["problem_rules"]) == {*expected.rules}
    answer = send(client, content, headers)
    if expected.rules:
        refused = problem(answer, 422)["report"]
        assert refused | {"file_name": ""} == report | {"file_name": ""}
        assert nothing_stored(), "a file with problems is not queued"
        return
    assert answer.status_code == 202
    counts = [Sample.objects.filter(task__position=place).count() for place in range(TASKS)]
    assert tuple(counts) == expected.samples
    assert Generation.objects.count() == report["samples"] == sum(expected.samples)
    assert report["missing_count"] == expected.samples.count(0)
    again = send(client, content, headers)
    assert (again.status_code, again.json()["id"]) == (200, answer.json()["id"])
    assert Submission.objects.count() == 1, "the same file is the same submission"


@pytest.mark.parametrize("name", ["n differs", "unknown task", "LiveCodeBench array"])
def test_page_and_call_give_one_report(
    client: Client, rosa: Any, headers: dict[str, str], name: str
) -> None:
    content = TABLE[name].content()
    called = send(client, content, headers, "&dry_run=true&file_name=quillfish").json()
    client.force_login(rosa)
    version = BenchmarkVersion.objects.get()
    data = {"benchmark": version.pk, "model": "Quillfish 8B", "visibility": "public"}
    page = client.post("/submit/", data | {"file": SimpleUploadedFile("quillfish", content)})
    link = re.search(r'href="(/submit/[^"]+report.json[^"]+)"', page.content.decode())
    assert link
    shown = client.get(link[1].replace("&amp;", "&")).content
    assert json.loads(shown) == called


def test_the_good_lines_are_used_when_the_caller_says_so(
    client: Client, headers: dict[str, str]
) -> None:
    content = every() + row(9)
    problem(send(client, content, headers), 422)
    assert nothing_stored()
    assert send(client, content, headers, "&good_lines_only=true").status_code == 202
    assert Sample.objects.count() == TASKS


def test_numbers_of_samples_follow_the_file(client: Client, headers: dict[str, str]) -> None:
    content = b"".join(row(0, completion=f"x = {number}\n") for number in range(3))
    assert send(client, content, headers).status_code == 202
    found = Generation.objects.values_list("sample__index", "text")
    assert set(found) == {(number, f"x = {number}\n") for number in range(3)}


def by_form(client: Client, rosa: Any, content: bytes) -> None:
    client.force_login(rosa)
    version = BenchmarkVersion.objects.get()
    data = {"benchmark": version.pk, "model": "Quillfish 8B", "visibility": "public"}
    file = SimpleUploadedFile("quillfish", content)
    assert client.post("/submit/", data | {"file": file, "do": "queue"}).status_code == 302


def by_call(client: Client, rosa: Any, content: bytes) -> None:
    assert send(client, content, bearer(rosa, "submit")).status_code == 202


def all_pass() -> None:
    """Everything that was sent is graded, and passes."""
    Chunk.objects.update(state=Chunk.State.RUNNING, token=web_records.TOKEN, worker="w1-77")
    for sample in Sample.objects.all():
        passed = web_records.verdict(Outcome.PASS)
        assert verdicts.record(sample.pk, web_records.TOKEN, passed, "w1-77")
    Chunk.objects.update(state=Chunk.State.DONE)
    Submission.objects.update(state=Submission.State.DONE)


@pytest.mark.parametrize("way", [by_form, by_call])
def test_a_run_with_missing_tasks_takes_no_rank(client: Client, rosa: Any, way: Any) -> None:
    way(client, rosa, TABLE["some tasks missing"].content())
    all_pass()
    (line,) = client.get("/api/v1/benchmarks/tidepool/leaderboard").json()["rows"]
    assert (line["rank"], line["reason"]) == (None, "1 of 3 tasks missing")
    assert (line["tasks_covered"], line["tasks"]) == (2, 3)
    page = client.get(f"/s/{Submission.objects.get().public_id}/").content.decode()
    assert "It covers 2 of 3 tasks, so it takes no rank." in page


@pytest.mark.parametrize("way", [by_form, by_call])
def test_pass_at_k_is_a_dash_where_a_task_has_fewer(client: Client, rosa: Any, way: Any) -> None:
    content = b"".join(row(task) for task in (0, 1, 2) for _ in range(5 if task else 4))
    way(client, rosa, content)
    all_pass()
    (line,) = client.get("/api/v1/benchmarks/tidepool/leaderboard").json()["rows"]
    assert (line["pass@1"], line["pass@5"]) == (1.0, None)
    assert (line["n_min"], line["n_max"], line["rank"]) == (4, 5, 1)
    page = client.get(f"/s/{Submission.objects.get().public_id}/").content.decode()
    assert "needs 5 samples on every task, one has 4" in page
