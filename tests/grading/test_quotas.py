"""Quotas: what counts, what gives back, who has which, and how people are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from grading import chunks, life, quotas, tokens
from grading.accounts.roles import Role
from grading.engine.outcome import Outcome
from grading.models import BenchmarkVersion, DeletedUse, Quota, Submission
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db
SEND = "/api/v1/submissions?benchmark=tidepool&model=Quillfish%208B"


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.QUOTA_SUBMISSIONS, settings.QUOTA_SAMPLES, settings.QUOTA_WAITING = 3, 20, 12


@pytest.fixture
def version() -> BenchmarkVersion:
    return web_records.benchmark()


@pytest.fixture
def rosa() -> User:
    return web_records.person("rosa")


def half(task: Any, index: int) -> Any:
    return verdict(Outcome.PASS) if index == 0 else None


def cancelled(version: BenchmarkVersion, rosa: User, judge: Any) -> Submission:
    made = web_records.submission(version, rosa, judge)
    chunks.cancel_submission(made, rosa.pk)
    return made


def deleted(made: Submission) -> None:
    life.delete(Submission.objects.get(pk=made.pk))


def yesterdays(made: Submission) -> None:
    Submission.objects.filter(pk=made.pk).update(created_at=timezone.now() - timedelta(days=1))


def waiting(*_: Any) -> None:
    return None


def failing(task: Any, index: int) -> Any:
    return "no sandbox" if task.position == 0 and index == 0 else verdict(Outcome.PASS)


# Every submission has six samples. What became of it: submissions and samples used, and waiting.
USES: dict[str, tuple[Callable[[BenchmarkVersion, User], Any], tuple[int, int, int]]] = {
    "waiting": (lambda v, u: web_records.submission(v, u, waiting), (1, 6, 6)),
    "half graded": (lambda v, u: web_records.submission(v, u, half), (1, 6, 3)),
    "done": (lambda v, u: web_records.submission(v, u), (1, 6, 0)),
    "cancelled before anything was graded": (lambda v, u: cancelled(v, u, waiting), (0, 0, 0)),
    "cancelled half graded": (lambda v, u: cancelled(v, u, half), (1, 3, 0)),
    "failed by the platform": (lambda v, u: web_records.submission(v, u, failing), (0, 0, 0)),
    "deleted": (lambda v, u: deleted(web_records.submission(v, u)), (1, 6, 0)),
    "deleted half graded": (lambda v, u: deleted(web_records.submission(v, u, half)), (1, 3, 0)),
    "cancelled, then deleted": (lambda v, u: deleted(cancelled(v, u, waiting)), (0, 0, 0)),
    "yesterday's": (lambda v, u: yesterdays(web_records.submission(v, u, waiting)), (0, 0, 6)),
    "somebody else's": (
        lambda v, u: web_records.submission(v, web_records.person("tom"), waiting),
        (0, 0, 0),
    ),
}


@pytest.mark.parametrize("what", USES)
def test_what_counts_and_what_gives_back(version: BenchmarkVersion, rosa: User, what: str) -> None:
    make, expected = USES[what]
    make(version, rosa)
    now = quotas.standing(rosa)
    assert now is not None
    assert (now.submissions.used, now.samples.used, now.waiting.used) == expected
    assert (now.submissions.left, now.samples.left) == (3 - expected[0], 20 - expected[1])


def test_what_was_deleted_is_forgotten_after_its_day(version: BenchmarkVersion, rosa: User) -> None:
    DeletedUse.objects.create(user=rosa, samples=1, at=timezone.now() - timedelta(days=3))
    deleted(web_records.submission(version, rosa))
    assert [use.samples for use in DeletedUse.objects.all()] == [6]


def test_each_limit_refuses_with_its_reason(rosa: User, settings: Settings) -> None:
    def refused(samples: int) -> str:
        now = quotas.standing(rosa)
        assert now is not None
        return str(now.refusal(samples) or "")

    assert refused(12) == ""
    assert "more than the 12 of yours that may wait at once: send it in parts" in refused(13)
    assert "than the 20 you may send in a day: send it in parts" in refused(21)
    DeletedUse.objects.create(user=rosa, samples=15, at=timezone.now())
    assert "you have 5 of 20 left today, more from 00:00 UTC" in refused(6)
    assert refused(5) == ""
    DeletedUse.objects.create(user=rosa, samples=1, at=timezone.now())
    DeletedUse.objects.create(user=rosa, samples=1, at=timezone.now())
    assert "You have sent 3 of 3 submissions today" in refused(1)
    settings.QUOTA_SUBMISSIONS = settings.QUOTA_SAMPLES = settings.QUOTA_WAITING = 0
    assert refused(1_000_000) == ""


def test_a_person_has_the_sites_limits_or_others(rosa: User) -> None:
    Quota.objects.create(user=rosa, submissions=1, samples=0)
    now = quotas.standing(rosa)
    assert now is not None
    assert (now.submissions.limit, now.samples.left, now.waiting.limit) == (1, None, 12)


@pytest.mark.parametrize("role", [Role.TRIAGER, Role.MAINTAINER, Role.ADMIN])
def test_the_team_has_none(version: BenchmarkVersion, role: Role) -> None:
    team = web_records.person("ada", role=role)
    Quota.objects.create(user=team, submissions=1)
    assert quotas.standing(team) is None
    quotas.require(team, 10**9)


def test_the_number_of_queries_does_not_grow(
    version: BenchmarkVersion, rosa: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        web_records.submission(version, rosa, half, model=f"Model {number}")
    with django_assert_max_num_queries(6):
        quotas.standing(User.objects.get(pk=rosa.pk))


def lines(count: int = 3, word: str = "") -> bytes:
    rows = [
        {"task_id": f"Tidepool/{at % 3}", "generation": web_records.CHAT + word}
        for at in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def form(version: BenchmarkVersion, content: bytes, **more: str) -> dict[str, Any]:
    file = SimpleUploadedFile("mine.jsonl", content)
    fields = {"benchmark": str(version.pk), "model": "Quillfish 8B", "visibility": "public"}
    return fields | {"file": file} | more


def test_the_page_tells_before_and_with_the_report(
    client: Client, version: BenchmarkVersion, rosa: User
) -> None:
    client.force_login(rosa)
    web_records.submission(version, rosa, model="Petrel 9B")
    page = client.get("/submit/").content.decode()
    assert "You have 14 of 20 samples left today" in page
    assert "2 of 3 submissions left today" in page
    assert "14 of 20 samples left" in client.get("/account/").content.decode()
    page = client.post("/submit/", form(version, lines())).content.decode()
    assert "Queue for grading" in page and "cannot be queued now" not in page
    page = client.post("/submit/", form(version, lines(15))).content.decode()
    assert "It cannot be queued now." in page and "15 samples" in page
    assert "Queue for grading" not in page


def test_the_page_refuses_what_is_over_and_takes_what_is_here_already(
    client: Client, version: BenchmarkVersion, rosa: User
) -> None:
    client.force_login(rosa)
    assert client.post("/submit/", form(version, lines(), do="queue")).status_code == 302
    Quota.objects.create(user=rosa, submissions=1)
    over = client.post("/submit/", form(version, lines(word="!"), do="queue"))
    assert over.status_code == 429 and "You have sent 1 of 1" in over.content.decode()
    assert 0 < int(over.headers["Retry-After"]) <= 86_400
    again = client.post("/submit/", form(version, lines()))
    assert "It cannot be queued now." not in again.content.decode()
    assert client.post("/submit/", form(version, lines(), do="queue")).status_code == 302
    assert Submission.objects.count() == 1
    chunks.cancel_submission(Submission.objects.get())
    page = client.get(f"/s/{Submission.objects.get().public_id}/").content.decode()
    assert "It used no quota." in page
    assert client.post("/submit/", form(version, lines(), do="queue")).status_code == 302
    assert Submission.objects.count() == 2


def test_the_api_answers_429_and_when_to_come_back(
    client: Client, version: BenchmarkVersion, rosa: User
) -> None:
    headers = {"HTTP_AUTHORIZATION": f"Bearer {tokens.make(rosa, 'test', ['submit'])[0]}"}

    def send(content: bytes, more: str = "") -> Any:
        kind = "application/octet-stream"
        return client.post(SEND + more, content, content_type=kind, **headers)

    assert send(lines(12)).status_code == 202
    over = send(lines(3, "!"))
    assert over.status_code == 429
    assert over.headers["Content-Type"] == "application/problem+json"
    told = over.json()
    assert told["title"] == "quota used up" and "12 of yours wait" in told["detail"]
    assert over.headers["Retry-After"] == str(told["retry_after_s"]) == "60"
    dry = send(lines(9, "!"), "&dry_run=true").json()
    assert "you have 8 of 20 left today" in dry["quota_refusal"]
    quota = client.get("/api/v1/quota", **headers).json()["quota"]
    assert quota == dry["quota"]
    assert quota["samples_today"] == {"limit": 20, "used": 12, "left": 8}
    assert quota["submissions_today"]["left"] == 2 and quota["samples_waiting"]["left"] == 0
    assert send(lines(12)).status_code == 200
    assert Submission.objects.count() == 1


def test_an_admin_gives_another_quota_and_takes_it_back(client: Client, rosa: User) -> None:
    client.force_login(web_records.person("ada", role=Role.ADMIN))
    url = f"/people/{rosa.pk}/"
    assert "Empty: the site&#x27;s, 20. 0: no limit." in client.get(url).content.decode()
    given = {"submissions": "1", "samples": "", "waiting": "0"}
    assert client.post(f"{url}quota/", given).status_code == 302
    own = Quota.objects.get()
    assert (own.user, own.submissions, own.samples, own.waiting) == (rosa, 1, None, 0)
    assert client.post(f"{url}quota/", {"samples": "-1"}).status_code == 422
    assert client.post(f"{url}quota/", {"samples": "many"}).status_code == 422
    client.post(f"{url}quota/", {})
    now = quotas.standing(rosa)
    assert now is not None and now.submissions.limit == 3


def test_the_command_line_says_so_too(
    version: BenchmarkVersion, rosa: User, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(lines(15))
    arguments = ("--benchmark", "tidepool", "--model", "Quillfish 8B", "--user", "rosa")
    with pytest.raises(CommandError, match="that may wait at once") as refused:
        call_command("submit", str(file), *arguments)
    assert refused.value.returncode == 2
    assert not Submission.objects.exists()
