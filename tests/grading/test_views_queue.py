"""The queue page: everybody's place in it, and nobody's secret."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from evalsite import queueing
from grading import chunks, queue_control, tokens
from grading.accounts import roles
from grading.accounts.roles import Role
from grading.models import QueueChange
from grading.queries import queue as queries
from tests.grading import web_records
from tests.grading.pipeline_records import first_lease, stored_submission

pytestmark = pytest.mark.django_db


def test_an_empty_queue_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_listening", lambda: None)
    page = client.get("/queue/").content.decode()
    assert "Nothing waits." in page and "no worker holds a chunk" in page


def test_a_queue_without_workers_says_so(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_listening", list)
    assert "No worker runs." in client.get("/queue/").content.decode()


def test_older_submissions_come_first_and_count_ahead() -> None:
    first = stored_submission(tasks=2, per_task=3, per_chunk=3)
    second = stored_submission(tasks=1, per_task=2)
    chunk = first.chunks.order_by("position")[0]
    chunks.ring(chunk.pk)
    assert chunks.take(chunk.pk, "w7-1")
    found = queries.queue(first.uploader)
    lines = found.waiting
    assert [(line.submission, line.left, line.ahead, line.workers) for line in lines] == [
        (first, 6, 0, 1),
        (second, 2, 6, 0),
    ]
    assert [(worker.name, worker.left) for worker in found.workers] == [("w7-1", 3)]
    assert (found.samples, found.busy) == (8, 1)


def test_what_is_private_is_counted_and_not_named(client: Client) -> None:
    version = web_records.benchmark()
    rosa = web_records.person("rosa")
    secret = web_records.submission(version, rosa, lambda *_: None, model="Secret 1B", private=True)
    web_records.submission(version, rosa, lambda *_: None, model="Open 2B")
    page = client.get("/queue/").content.decode()
    assert "Secret 1B" not in page and "a private submission" in page
    assert "Open 2B" in page and "yours" not in page
    told = client.get("/api/v1/queue").json()
    assert [line["model"] for line in told["submissions"]] == [None, "Open 2B"]
    assert secret.public_id not in str(told)
    assert (told["mode"], told["samples_waiting"]) == ("running", 12)
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


def test_an_operator_pauses_drains_and_resumes_with_a_reason(client: Client) -> None:
    assert "Pause" not in client.get("/queue/").content.decode()
    client.force_login(web_records.person("ada", role=Role.ADMIN))
    page = client.get("/queue/").content.decode()
    assert 'value="paused"' in page and 'value="running"' not in page
    refused = client.post("/queue/control/", {"mode": "paused"})
    assert refused.status_code == 422 and b"Say why" in refused.content
    assert client.post("/queue/control/", {"mode": "off", "reason": "x"}).status_code == 422
    for mode, reason in (("paused", "a <b>new</b> disk"), ("draining", "upgrade")):
        answer = client.post("/queue/control/", {"mode": mode, "reason": reason}, follow=True)
        page = answer.content.decode()
        assert f"Grading is {mode} since" in page and "by ada:" in page
        assert reason.replace("<", "&lt;").replace(">", "&gt;") in page
    again = client.post("/queue/control/", {"mode": "draining", "reason": "x"}, follow=True)
    assert b"Nothing changed" in again.content
    page = client.post("/queue/control/", {"mode": "running"}, follow=True).content.decode()
    assert "Grading goes on." in page and "since" not in page
    assert QueueChange.objects.count() == 3


@pytest.mark.parametrize("role", [None, Role.TRIAGER, Role.MAINTAINER])
def test_nobody_else_stops_grading(client: Client, role: Role | None) -> None:
    client.force_login(web_records.person("tom", role=role))
    assert 'value="paused"' not in client.get("/queue/").content.decode()
    answer = client.post("/queue/control/", {"mode": "paused", "reason": "x"})
    assert answer.status_code == 403 and not QueueChange.objects.exists()


def test_operators_call_the_same_by_the_api(client: Client) -> None:
    ada = web_records.person("ada", role=Role.ADMIN)
    headers = {"HTTP_AUTHORIZATION": f"Bearer {tokens.make(ada, 'ops', ['admin'])[0]}"}

    def call(what: str, **body: str) -> Any:
        return client.post(f"/api/v1/queue/{what}", body, "application/json", **headers)

    assert call("pause").status_code == 422
    found = call("pause", reason="new disk").json()
    assert (found["mode"], found["by"], found["reason"]) == ("paused", "ada", "new disk")
    assert call("pause", reason="again").json() == found
    told = client.get("/api/v1/queue").json()
    assert {name: told[name] for name in found} == found and told["eta_s"] is None
    assert call("drain", reason="upgrade").json()["mode"] == "draining"
    assert call("resume").json() == {"mode": "running"}
    roles.give(ada, [])
    assert call("pause", reason="x").status_code == 403
    assert queue_control.stopped() is None


def test_workers_are_listed_with_their_heartbeat(client: Client, broker_url: str) -> None:
    idle = queueing.worker("w2-2")
    idle.register_birth()
    submission = stored_submission(tasks=1, per_task=3)
    first_lease(submission, "w1-1")
    told = client.get("/api/v1/queue").json()
    assert [(one["name"], one["state"], one["left"]) for one in told["workers"]] == [
        ("w1-1", "busy", 3),
        ("w2-2", "?", None),
    ]
    for one in told["workers"]:
        age = timezone.now() - datetime.fromisoformat(one["heartbeat_at"])
        assert timedelta(0) <= age < timedelta(seconds=10)
    page = client.get("/queue/").content.decode()
    assert "w1-1" in page and "w2-2" in page and told["broker_answers"]
