"""Files of every kind through the browser's form: what is said, what is stored, what is kept."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from grading.intake import staging
from grading.models import BenchmarkVersion, Generation, Sample, Submission
from tests.grading import web_records
from tests.intake.upload_table import CODE, TABLE, TASKS, every, nothing_stored, row
from tests.intake.uploads import document, lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa(client: Client) -> Any:
    web_records.benchmark(tasks=TASKS)
    person = web_records.person("rosa")
    client.force_login(person)
    return person


def send(client: Client, content: bytes | None, **fields: Any) -> Any:
    data: dict[str, Any] = {
        "benchmark": BenchmarkVersion.objects.get(benchmark__slug="tidepool").pk,
        "model": "Quillfish 8B",
        "visibility": "public",
    }
    if content is not None:
        data["file"] = SimpleUploadedFile("quillfish", content)
    return client.post("/submit/", data | fields)


def token(answer: Any) -> str:
    found = re.search(r'name="staged" value="([0-9a-f]{32})"', answer.content.decode())
    assert found, "nothing is kept"
    return found[1]


@pytest.mark.parametrize("name", TABLE)
def test_the_report_comes_first_and_the_samples_are_as_told(
    client: Client, rosa: Any, name: str
) -> None:
    expected = TABLE[name]
    answer = send(client, expected.content())
    page = answer.content.decode()
    assert nothing_stored(), "a check stores nothing"
    for words in expected.words:
        assert words in page
    if expected.rules:
        assert answer.status_code == 422
        assert "Queue for grading" not in page
        assert {*re.findall(r'<span class="tag bad">([^<]+)<', page)} == {*expected.rules}
        assert send(client, None, staged=token(answer), do="queue").status_code == 422
        assert nothing_stored(), "a file with problems is not queued"
        return
    assert answer.status_code == 200
    queued = send(client, None, staged=token(answer), do="queue")
    assert queued.status_code == 302
    counts = [Sample.objects.filter(task__position=place).count() for place in range(TASKS)]
    assert tuple(counts) == expected.samples
    assert Generation.objects.count() == sum(expected.samples)
    numbers = [*Sample.objects.filter(task__position=0).values_list("index", flat=True)]
    assert len(numbers) == expected.samples[0]


def test_numbers_of_samples_follow_the_file(client: Client, rosa: Any) -> None:
    content = b"".join(row(0, completion=f"x = {number}\n") for number in range(3))
    assert send(client, content, do="queue").status_code == 302
    found = Generation.objects.values_list("sample__index", "text")
    assert {(index, json.dumps(text)) for index, text in found} == {
        (number, json.dumps(f"x = {number}\n")) for number in range(3)
    }


def test_the_kept_file_is_read_otherwise_without_being_sent_again(
    client: Client, rosa: Any
) -> None:
    content = every(completion="some prose", mine=CODE)
    first = send(client, content)
    assert "hold no Python" in first.content.decode()
    assert '<option value="mine">' in first.content.decode()
    kept = token(first)
    again = send(client, None, staged=kept, text_field="mine", reading="generation")
    assert "hold no Python" not in again.content.decode()
    assert token(again) == kept
    queued = send(client, None, staged=kept, text_field="mine", reading="generation", do="queue")
    assert queued.status_code == 302
    assert set(Generation.objects.values_list("text", flat=True)) == {CODE}
    intake = Submission.objects.get().intake
    assert (intake["text_fields"], intake["readings"]) == ({"mine": 3}, {"generation": 3})
    assert staging.staged(kept, rosa.pk) is None, "what is queued is kept no longer"


def test_the_same_file_read_otherwise_is_another_submission(client: Client, rosa: Any) -> None:
    content = every(completion=CODE)
    first = send(client, content, do="queue")
    same = send(client, content)
    assert "already graded" in same.content.decode()
    assert send(client, None, staged=token(same), do="queue").headers == first.headers
    other = send(client, content, reading="generation", do="queue")
    assert other.headers["Location"] != first.headers["Location"]
    assert Submission.objects.count() == 2


def test_a_file_is_kept_when_another_field_is_wrong(client: Client, rosa: Any) -> None:
    answer = send(client, every(), model="")
    assert answer.status_code == 422
    assert "quillfish" in answer.content.decode()
    assert send(client, None, staged=token(answer)).status_code == 200


def test_another_file_takes_the_place_of_the_kept_one(client: Client, rosa: Any) -> None:
    first = token(send(client, every()))
    second = token(send(client, row(0), staged=first))
    assert staging.staged(first, rosa.pk) is None
    assert staging.staged(second, rosa.pk) is not None


@pytest.mark.parametrize("staged", ["0" * 32, "../../etc/passwd", "x", "\0"])
def test_a_file_that_is_not_kept_is_asked_for(client: Client, rosa: Any, staged: str) -> None:
    answer = send(client, None, staged=staged, do="queue")
    assert answer.status_code == 422
    assert "choose it again" in answer.content.decode()
    assert nothing_stored()


def test_nobody_else_sees_a_kept_file(client: Client, rosa: Any) -> None:
    kept = token(send(client, every() + b"{\n"))
    query = f"benchmark={BenchmarkVersion.objects.get().pk}"
    client.force_login(web_records.person("sam", superuser=True))
    assert send(client, None, staged=kept, do="queue").status_code == 422
    assert client.get(f"/submit/{kept}/report.json?{query}").status_code == 404
    assert client.get(f"/submit/{kept}/errors.csv?{query}").status_code == 404
    client.logout()
    assert client.get(f"/submit/{kept}/errors.csv?{query}").status_code == 302
    assert nothing_stored()


def test_all_problems_and_the_report_can_be_downloaded(client: Client, rosa: Any) -> None:
    bad = {"task_id": "=cmd()\ud800\n", "completion": "x"}
    answer = send(client, every() + lines([bad] * 40) + b"{\n")
    page = answer.content.decode()
    assert "The first 20 of 41 problems: unknown task 40, bad JSON 1." in page
    links = re.findall(r'href="(/submit/[^"]+)"', page)
    errors, report = (next(link for link in links if name in link) for name in ("csv", "json"))
    text = b"".join(client.get(errors.replace("&amp;", "&")).streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 41
    assert (rows[0]["line"], rows[0]["rule"]) == ("4", "unknown task")
    assert rows[0]["task_id"].startswith("'=cmd()")
    assert rows[-1]["rule"] == "bad JSON"
    found = json.loads(client.get(report.replace("&amp;", "&")).content)
    assert (found["samples"], found["problem_count"], len(found["problems"])) == (3, 41, 20)


@pytest.mark.parametrize("query", ["", "benchmark=999", "benchmark=x", "reading=other", "match=x"])
def test_a_report_needs_to_know_how_to_read(client: Client, rosa: Any, query: str) -> None:
    kept = token(send(client, every()))
    version = BenchmarkVersion.objects.get().pk
    whole = query if query.startswith("benchmark") or not query else f"benchmark={version}&{query}"
    assert client.get(f"/submit/{kept}/report.json?{whole}").status_code == 404


@pytest.mark.parametrize("fields", [{"reading": "other"}, {"match": "x"}, {"text_field": "a\0"}])
def test_a_correction_that_does_not_exist_is_a_field_error(
    client: Client, rosa: Any, fields: dict[str, str]
) -> None:
    answer = send(client, every(), **fields)
    assert answer.status_code == 422
    assert b'class="err"' in answer.content


def test_the_benchmark_is_told_by_the_tasks_a_file_names(client: Client, rosa: Any) -> None:
    other = web_records.benchmark("ebb", tasks=5)
    content = lines([{"task_id": f"ebb_{number}", "code": CODE} for number in range(5)])
    answer = send(client, content, benchmark="")
    page = answer.content.decode()
    assert answer.status_code == 200
    assert f'<option value="{other.pk}" selected>' in page
    assert "<dd>Ebb, version 1</dd>" in page
    assert f"benchmark={other.pk}" in page
    queued = send(client, None, staged=token(answer), benchmark="", do="queue")
    assert queued.status_code == 302
    assert Submission.objects.get().version == other


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"{}\n", document([[CODE]] * 3)])
def test_a_benchmark_that_nothing_tells_is_asked_for(
    client: Client, rosa: Any, content: bytes
) -> None:
    web_records.benchmark("ebb")
    answer = send(client, content, benchmark="")
    assert answer.status_code == 422
    assert "No benchmark has the tasks" in answer.content.decode()
    assert send(client, None, staged=token(answer)).status_code in {200, 422}
    assert nothing_stored()


def test_the_only_benchmark_needs_no_choice(client: Client, rosa: Any) -> None:
    assert "selected>Tidepool, version 1" in client.get("/submit/").content.decode()
    answer = send(client, b"{}\n", benchmark="")
    assert "missing field" in answer.content.decode()


def test_previews_show_raw_text_beside_the_program(client: Client, rosa: Any) -> None:
    page = send(client, every(generation=web_records.CHAT)).content.decode()
    assert page.count("rule: entry point, block 1 of 1") == 3
    assert "Ties go to the first." in page
    assert 'class="l used"' in page
