"""The API: who may call what, what comes back, and every way for a call to fail."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from grading import tokens
from grading.engine.outcome import Outcome
from grading.models import Submission
from tests.grading import web_records

pytestmark = pytest.mark.django_db
ROOT = "/api/v1"


def bearer(user: Any, *scopes: str) -> dict[str, str]:
    return {"HTTP_AUTHORIZATION": f"Bearer {tokens.make(user, 'test', scopes)[0]}"}


def lines(count: int = 3, **changes: Any) -> bytes:
    rows = [
        {"task_id": f"Tidepool/{position}", "generation": web_records.CHAT} | changes
        for position in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def problem(answer: Any, status: int) -> dict[str, Any]:
    """The document of a failed call, which must be one."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status and body["title"] and body["detail"]
    return body


SEND = f"{ROOT}/submissions?benchmark=tidepool&model=Quillfish%208B"


def send(client: Client, content: bytes, more: str = "", **headers: str) -> Any:
    return client.post(SEND + more, content, content_type="application/octet-stream", **headers)


def test_a_file_is_sent_followed_and_read(client: Client) -> None:
    web_records.benchmark()
    rosa = web_records.person("rosa")
    headers = bearer(rosa, "submit")
    answer = send(client, lines(), "&settings=%7B%22temperature%22%3A0.2%7D", **headers)
    assert answer.status_code == 202
    sent = answer.json()
    assert (sent["state"], sent["samples"], sent["model"]) == ("grading", 3, "Quillfish 8B")
    assert answer.headers["Location"].endswith(f"/api/v1/submissions/{sent['id']}")
    assert Submission.objects.get().settings == {"temperature": 0.2}
    state = client.get(f"{ROOT}/submissions/{sent['id']}")
    assert int(state.headers["Retry-After"]) >= 1
    again = send(client, lines(), **headers)
    assert again.status_code == 200 and again.json()["id"] == sent["id"]
    cancelled = client.post(f"{ROOT}/submissions/{sent['id']}/cancel", **headers)
    assert cancelled.json()["state"] == "cancelled"
    problem(client.post(f"{ROOT}/submissions/{sent['id']}/cancel", **headers), 409)


def test_a_key_makes_a_request_happen_once(client: Client) -> None:
    """Also where nothing else would tell: the first one was cancelled meanwhile."""
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit") | {"HTTP_IDEMPOTENCY_KEY": "night 7"}
    first = send(client, lines(), **headers)
    assert first.status_code == 202
    client.post(f"{ROOT}/submissions/{first.json()['id']}/cancel", **headers)
    again = send(client, lines(), **headers)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    problem(send(client, lines(2), **headers), 422)
    problem(send(client, lines(), "&visibility=private", **headers), 422)
    other = bearer(web_records.person("tom"), "submit") | {"HTTP_IDEMPOTENCY_KEY": "night 7"}
    assert send(client, lines(), **other).status_code == 202
    problem(send(client, lines(), **(headers | {"HTTP_IDEMPOTENCY_KEY": "k" * 201})), 422)
    assert Submission.objects.count() == 2


def test_a_form_carries_a_file_as_well(client: Client) -> None:
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit")
    answer = client.post(SEND, {"file": SimpleUploadedFile("a.jsonl", lines())}, **headers)
    assert answer.status_code == 202
    assert "file" in problem(client.post(SEND, {}, **headers), 422)["detail"]


def test_a_dry_run_stores_nothing(client: Client) -> None:
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit")
    answer = send(client, lines() + b"{}\n", "&dry_run=true", **headers)
    assert answer.status_code == 200
    assert answer.json()["problem_count"] == 1
    assert not Submission.objects.exists()


def test_any_format_is_taken_and_may_be_read_otherwise(client: Client) -> None:
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit")
    rows = [
        {"question_id": f"Tidepool/{n}", "code_list": ["x", "y"], "mine": "z"} for n in (0, 1, 2)
    ]
    data = gzip.compress(json.dumps(rows).encode())
    assert send(client, data, "&dry_run=true", **headers).json()["samples"] == 6
    choices = "&text_field=mine&reading=completion"
    report = send(client, data, f"&dry_run=true{choices}", **headers).json()
    assert report["detected"]["readings"] == {"completion": 3}
    assert send(client, data, choices, **headers).status_code == 202
    assert Submission.objects.get().intake["text_fields"] == {"mine": 3}
    problem(send(client, data, "&reading=other", **headers), 422)


def test_a_bad_file_is_reported_by_line(client: Client) -> None:
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit")
    body = problem(send(client, lines() + b"{\n", **headers), 422)
    assert body["report"]["problems"][0]["line"] == 4
    assert not Submission.objects.exists()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({}, 401),
        ({"HTTP_AUTHORIZATION": "Bearer evs_no"}, 401),
        ({"HTTP_AUTHORIZATION": "Basic cm9zYTpwdw=="}, 401),
        ({"HTTP_AUTHORIZATION": "Bearer"}, 401),
    ],
)
def test_sending_needs_a_token(client: Client, header: dict[str, str], status: int) -> None:
    web_records.benchmark()
    client.force_login(web_records.person("rosa"))
    answer = send(client, lines(), **header)
    problem(answer, status)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert not Submission.objects.exists()


def test_sending_needs_the_scope(client: Client) -> None:
    web_records.benchmark()
    answer = send(client, lines(), **bearer(web_records.person("rosa"), "read"))
    assert "submit" in problem(answer, 403)["detail"]


@pytest.mark.parametrize(
    "query",
    [
        "benchmark=nothing&model=M",
        "benchmark=tidepool",
        "model=M",
        "benchmark=tidepool&model=M&settings=nonsense",
        "benchmark=tidepool&model=M&settings=[1]",
        "benchmark=tidepool&model=M&visibility=everybody",
        "benchmark=tidepool&model=M&dry_run=perhaps",
        "benchmark=tidepool&model=" + "m" * 300,
        "benchmark=tidepool&model=%0A",
    ],
)
def test_wrong_parameters_are_named(client: Client, query: str) -> None:
    web_records.benchmark()
    headers = bearer(web_records.person("rosa"), "submit")
    answer = client.post(
        f"{ROOT}/submissions?{query}", lines(), content_type="application/octet-stream", **headers
    )
    problem(answer, 404 if "nothing" in query else 422)
    assert not Submission.objects.exists()


def test_private_things_are_for_their_owner_with_the_scope_to_read(client: Client) -> None:
    rosa = web_records.person("rosa")
    made = web_records.submission(web_records.benchmark(), rosa, private=True)
    address = f"{ROOT}/submissions/{made.public_id}"
    task = "Tidepool-0"
    for place in ("", "/results", "/results.jsonl", f"/results/{task}/0"):
        problem(client.get(address + place), 404)
        problem(client.get(address + place, **bearer(web_records.person(f"t{place}"), "read")), 404)
        problem(client.get(address + place, **bearer(rosa, "submit")), 404)
        assert client.get(address + place, **bearer(rosa, "read")).status_code == 200
    assert len(client.get(f"{ROOT}/submissions", **bearer(rosa, "read")).json()["items"]) == 1
    problem(client.get(f"{ROOT}/submissions"), 401)


def test_only_the_owner_and_staff_cancel(client: Client) -> None:
    version = web_records.benchmark()
    made = web_records.submission(version, web_records.person("rosa"), lambda *_: None)
    address = f"{ROOT}/submissions/{made.public_id}/cancel"
    problem(client.post(address), 401)
    problem(client.post(address, **bearer(web_records.person("tom"), "read", "submit")), 403)
    staff = bearer(web_records.person("ada", staff=True), "read", "submit")
    assert client.post(address, **staff).json()["state"] == "cancelled"


def test_results_come_in_pages_and_as_lines(client: Client) -> None:
    made = web_records.submission(web_records.benchmark(), web_records.person("rosa"))
    address = f"{ROOT}/submissions/{made.public_id}/results"
    rows, cursor = [], ""
    while cursor is not None:
        part = client.get(address, {"limit": 2, "cursor": cursor}).json()
        assert len(part["items"]) <= 2
        rows, cursor = rows + part["items"], part["next"]
    assert [(row["task_slug"], row["index"]) for row in rows] == [
        (f"Tidepool-{task}", index) for task in range(3) for index in range(2)
    ]
    stream = b"".join(client.get(f"{address}.jsonl").streaming_content)
    assert [json.loads(line)["outcome"] for line in stream.splitlines()] == [
        row["outcome"] for row in rows
    ]
    passed = client.get(address, {"outcome": "pass"}).json()["items"]
    assert {row["outcome"] for row in passed} == {"pass"}
    problem(client.get(address, {"outcome": "fine"}), 422)
    for wrong in ("x", "W10", "WzEsMiwzXQ", "WyJhIiwxXQ", "\udcff", "WzFlOTksMV0"):
        problem(client.get(address, {"cursor": wrong.encode("utf-8", "surrogatepass")}), 400)


def test_a_sample_is_told_whole_but_for_hidden_targets(client: Client) -> None:
    rosa = web_records.person("rosa")
    for slug, hidden in (("tidepool", False), ("secret", True)):
        version = web_records.benchmark(slug, hidden=hidden)
        made = web_records.submission(version, rosa, lambda *_: web_records.verdict(Outcome.ERROR))
        place = f"{ROOT}/submissions/{made.public_id}/results/{slug.capitalize()}-0/0"
        answer = client.get(place)
        record = answer.json()
        assert record["generation"] == web_records.CHAT
        assert record["attempt"]["outcome"] == "error"
        assert ("case" in record) is not hidden
        assert ("targets" in record["attempt"]) is not hidden
        assert ("secret argument" in answer.content.decode()) is not hidden
        problem(client.get(place + "9"), 404)
        problem(client.get(place, {"attempt": 7}), 404)
        problem(client.get(place, {"attempt": "x"}), 422)


def test_benchmarks_tasks_and_boards_are_public(client: Client) -> None:
    version = web_records.benchmark(hidden=True)
    web_records.submission(version, web_records.person("rosa"))
    assert [one["slug"] for one in client.get(f"{ROOT}/benchmarks").json()] == ["tidepool"]
    assert client.get(f"{ROOT}/benchmarks/tidepool").json()["tasks"] == 3
    tasks = client.get(f"{ROOT}/benchmarks/tidepool/tasks", {"limit": 2}).json()
    assert len(tasks["items"]) == 2 and tasks["next"]
    task = client.get(f"{ROOT}/benchmarks/tidepool/tasks/Tidepool-0")
    assert "secret argument" not in task.content.decode()
    board = client.get(f"{ROOT}/benchmarks/tidepool/leaderboard")
    assert board.json()["rows"][0]["model"] == "Quillfish 8B"
    tag = board.headers["ETag"]
    same = client.get(f"{ROOT}/benchmarks/tidepool/leaderboard", HTTP_IF_NONE_MATCH=tag)
    assert same.status_code == 304
    assert "format=csv" in board.headers["Link"]
    problem(client.get(f"{ROOT}/benchmarks/tidepool/leaderboard", {"score": 7}), 422)
    problem(client.get(f"{ROOT}/benchmarks/none"), 404)


def test_the_schema_names_every_call_and_the_page_shows_them(client: Client) -> None:
    schema = client.get(f"{ROOT}/openapi.json").json()
    assert schema["openapi"].startswith("3.")
    page = client.get("/api/").content.decode()
    for path in schema["paths"]:
        assert path in page
    assert "bearer" in json.dumps(schema["components"]["securitySchemes"]).lower()


def test_a_fault_of_the_site_is_a_document_too(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from grading.api import benchmarks

    def broken(*_: Any) -> Any:
        raise RuntimeError("boom")

    monkeypatch.setattr(benchmarks, "visible_versions", broken)
    body = problem(client.get(f"{ROOT}/benchmarks"), 500)
    assert "boom" not in json.dumps(body)
    assert "boom" in caplog.text


def test_the_client_file_knows_its_site(client: Client) -> None:
    text = client.get("/client/evalsite.py").content.decode()
    assert 'SITE = "http://testserver/"' in text
    compile(text, "evalsite.py", "exec")
