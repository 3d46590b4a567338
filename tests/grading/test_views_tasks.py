from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from grading.engine.outcome import Outcome
from grading.models import Task
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


def test_the_list_shows_reference_verdicts_and_sums(client: Client) -> None:
    version = web_records.benchmark()
    Task.objects.filter(position=1).update(status="suspect", reference_verdict=None)
    page = client.get("/b/tidepool/tasks/").content.decode()
    assert "1 suspect" in page
    assert page.count("</b>pass</span>") == 2
    assert "no value: no reference solution was graded" in page
    assert "no value: no submission has finished" in page
    web_records.submission(
        version, web_records.person("rosa"), lambda task, index: verdict(Outcome.ASSERTION_FAIL)
    )
    page = client.get("/b/tidepool/tasks/").content.decode()
    assert "0/2" in page
    assert "0.667" in page


def test_a_task_shows_prompt_targets_reference_and_models(client: Client) -> None:
    version = web_records.benchmark()
    made = web_records.submission(version, web_records.person("rosa"))
    page = client.get("/b/tidepool/tasks/Tidepool-0/").content.decode()
    assert "Task 0." in page
    assert "secret argument" in page
    assert "3 of 3 targets hold" in page
    assert "Quillfish 8B" in page
    assert f'href="/s/{made.public_id}/samples/?task=Tidepool-0"' in page


def test_a_task_without_reference_or_models_says_so(client: Client) -> None:
    web_records.benchmark()
    Task.objects.update(reference="", reference_verdict=None)
    page = client.get("/b/tidepool/tasks/Tidepool-0/").content.decode()
    assert "The benchmark has none for this task." in page
    assert "No submission has finished this task." in page


def test_an_old_version_stays_readable(client: Client) -> None:
    version = web_records.benchmark()
    version.benchmark.versions.create(number=2, content_hash="1" * 64)
    assert client.get("/b/tidepool/tasks/Tidepool-0/").status_code == 404
    assert client.get("/b/tidepool/tasks/Tidepool-0/?version=1").status_code == 200
    assert b"This version holds no task." in client.get("/b/tidepool/tasks/").content


def test_what_is_not_there_is_404(client: Client) -> None:
    web_records.benchmark(published=False)
    for path in ("/b/tidepool/tasks/", "/b/nothing/tasks/", "/b/tidepool/tasks/Tidepool-0/"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("count", [3, 12])
def test_the_number_of_queries_does_not_grow(
    client: Client, count: int, django_assert_max_num_queries: Any
) -> None:
    version = web_records.benchmark(tasks=count)
    rosa = web_records.person("rosa")
    for number in range(count // 3):
        web_records.submission(version, rosa, model=f"Model {number}")
    with django_assert_max_num_queries(4):
        client.get("/b/tidepool/tasks/")
    with django_assert_max_num_queries(5):
        client.get("/b/tidepool/tasks/Tidepool-0/")
