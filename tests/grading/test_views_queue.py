"""The queue page: everybody's place in it, and nobody's secret."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from grading import chunks
from grading.queries import queue as queries
from tests.grading import web_records
from tests.grading.pipeline_records import stored_submission

pytestmark = pytest.mark.django_db


def test_an_empty_queue_says_so(client: Client) -> None:
    page = client.get("/queue/").content.decode()
    assert "Nothing waits." in page and "None holds a chunk" in page


def test_older_submissions_come_first_and_count_ahead() -> None:
    first = stored_submission(tasks=2, per_task=3, per_chunk=3)
    second = stored_submission(tasks=1, per_task=2)
    chunk = first.chunks.order_by("position")[0]
    chunks.ring(chunk.pk)
    assert chunks.take(chunk.pk, "w7-1")
    lines = queries.waiting(first.uploader)
    assert [(line.submission, line.left, line.ahead, line.workers) for line in lines] == [
        (first, 6, 0, 1),
        (second, 2, 6, 0),
    ]
    assert [(worker.name, worker.left) for worker in queries.busy()] == [("w7-1", 3)]


def test_what_is_private_is_counted_and_not_named(client: Client) -> None:
    version = web_records.benchmark()
    rosa = web_records.person("rosa")
    web_records.submission(version, rosa, lambda *_: None, model="Secret 1B", private=True)
    web_records.submission(version, rosa, lambda *_: None, model="Open 2B")
    page = client.get("/queue/").content.decode()
    assert "Secret 1B" not in page and "a private submission" in page
    assert "Open 2B" in page and "yours" not in page
    client.force_login(rosa)
    page = client.get("/queue/").content.decode()
    assert "Secret 1B" in page and "yours" in page


def test_queries_do_not_grow(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(7):
        stored_submission(tasks=1, per_task=1)
    with django_assert_max_num_queries(6):
        client.get("/queue/")
