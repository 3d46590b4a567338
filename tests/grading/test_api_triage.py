"""The calls of crash review: who may, what is listed, what a decision leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from grading import triage
from grading.accounts.roles import Role
from grading.engine.outcome import Outcome
from grading.models import CrashGroup, GroupEvent
from tests.grading import web_records
from tests.grading.test_api import bearer, problem

pytestmark = pytest.mark.django_db
GROUPS = "/api/v1/triage/groups"


@pytest.fixture
def staff() -> dict[str, str]:
    return bearer(web_records.person("ada", role=Role.TRIAGER), "triage")


def mixed_groups(**shape: Any) -> list[CrashGroup]:
    web_records.submission(web_records.benchmark(), web_records.person("rosa"), **shape)
    return list(CrashGroup.objects.order_by("pk"))


def every(client: Client, address: str, headers: dict[str, str], **query: Any) -> list[Any]:
    """All items of a list, two at a time."""
    items, cursor = [], ""
    while cursor is not None:
        part = client.get(address, {"limit": 2, "cursor": cursor, **query}, **headers).json()
        assert len(part["items"]) <= 2
        items, cursor = items + part["items"], part["next"]
    return items


def patch(client: Client, group: CrashGroup, headers: dict[str, str], **body: Any) -> Any:
    place = f"{GROUPS}/{group.public_id}"
    return client.patch(place, body, content_type="application/json", **headers)


def test_groups_come_in_pages_and_are_filtered(client: Client, staff: dict[str, str]) -> None:
    groups = mixed_groups()
    assert len(groups) > 2
    listed = every(client, GROUPS, staff)
    assert [one["id"] for one in listed] == [group.public_id for group in groups]
    assert all(one["samples"] and one["stake"] > 0 for one in listed)
    kinds = every(client, GROUPS, staff, kind="timeout")
    assert {one["kind"] for one in kinds} == {"timeout"} and len(kinds) < len(groups)
    assert every(client, GROUPS, staff, task="Tidepool/99") == []
    assert every(client, GROUPS, staff, state="ignored") == []
    problem(client.get(GROUPS, {"state": "lost"}, **staff), 422)
    problem(client.get(GROUPS, {"cursor": "x"}, **staff), 400)


def test_a_page_takes_as_many_queries_whatever_is_on_it(
    client: Client, staff: dict[str, str]
) -> None:
    few = len(mixed_groups())
    web_records.submission(web_records.benchmark("other", tasks=9), User.objects.all()[0])
    client.get(GROUPS, **staff)  # which notes that the token is in use
    counts = []
    for limit in (few, 100):
        with CaptureQueriesContext(
            connection,
        ) as seen:
            client.get(GROUPS, {"limit": limit}, **staff)
        counts.append(len(seen))
    assert counts[0] == counts[1] < 20


def test_a_group_is_told_whole_and_so_are_its_attempts(
    client: Client, staff: dict[str, str]
) -> None:
    groups = mixed_groups(judge=lambda *_: web_records.verdict(Outcome.ERROR), n=1)
    assert len(groups) == 1
    place = f"{GROUPS}/{groups[0].public_id}"
    record = client.get(place, **staff).json()
    assert (record["state"], record["samples"], record["kind"]) == ("new", 3, "exception")
    assert record["spread"]["models"] == [
        {"model": "Quillfish 8B", "samples": 3, "by_task": [1, 1, 1]}
    ]
    assert record["shares"]["worker"] == [{"name": "w1-77", "samples": 3}]
    assert ["type", "NameError"] in record["fingerprints"][0]["parts"]
    attempts = every(client, f"{place}/attempts", staff)
    assert [one["task_id"] for one in attempts] == [f"Tidepool/{n}" for n in range(3)]
    assert {(one["outcome"], one["exception"]) for one in attempts} == {("error", "NameError")}
    problem(client.get(f"{GROUPS}/nothing", **staff), 404)


def test_an_emptied_group_names_the_one_it_was_merged_into(
    client: Client, staff: dict[str, str]
) -> None:
    group, other, *_ = mixed_groups()
    triage.merge(group, other, User.objects.get(username="ada"))
    emptied = client.get(f"{GROUPS}/{group.public_id}", **staff).json()
    assert (emptied["merged_into"], emptied["samples"]) == (other.public_id, 0)
    assert client.get(f"{GROUPS}/{other.public_id}", **staff).json()["merged_into"] is None


def test_a_decision_is_made_and_written_down(client: Client, staff: dict[str, str]) -> None:
    group, other, *_ = mixed_groups()
    changed = patch(client, group, staff, state="ignored", ignored_until=9, note="seen before")
    assert changed.status_code == 200
    assert (changed.json()["state"], changed.json()["ignored_until"]) == ("ignored", 9)
    patch(client, group, staff, assignee="ada")
    answer = patch(client, group, staff, assignee="nobody", note="over to you").json()
    assert answer["assignee"] == ""
    assert [(one["by"], one["kind"], one["to"]) for one in answer["events"]] == [
        ("ada", "assigned", "nobody"),
        ("ada", "assigned", "ada"),
        ("ada", "state", "ignored, until 9 samples"),
    ]
    version = {"benchmark": "tidepool", "version": 1}
    fixed = patch(client, group, staff, state="grader_bug", fixed_in_version=version).json()
    assert fixed["fixed_in_version"] == version
    noted = patch(client, other, staff, note="only a note").json()
    assert (noted["state"], noted["events"][0]["note"]) == ("new", "only a note")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"state": "escalating"}, "state"),
        ({"state": "lost"}, "state"),
        ({"assignee": "rosa"}, "assignee"),
        ({"state": "ignored", "ignored_until": 0}, "ignored_until"),
        ({"note": "a\0b"}, "note"),
        ({"note": "\ud800"}, "note"),
        ({"state": "ignored", "until": 3}, "until"),
        (
            {"state": "grader_bug", "fixed_in_version": {"benchmark": "tidepool", "version": 7}},
            "fixed_in_version",
        ),
    ],
)
def test_a_wrong_decision_is_named_and_changes_nothing(
    client: Client, staff: dict[str, str], body: dict[str, Any], field: str
) -> None:
    group = mixed_groups()[0]
    told = problem(patch(client, group, staff, **body), 422)
    assert any(one["field"].rpartition(".")[2] == field for one in told["errors"]), told
    assert not GroupEvent.objects.exists()


def test_it_needs_the_scope_and_the_role_still(client: Client, staff: dict[str, str]) -> None:
    group = mixed_groups()[0]
    ada = web_records.person("tom", role=Role.TRIAGER)
    kept = bearer(ada, "triage")
    for headers, status in (({}, 401), (bearer(ada, "read", "submit"), 403), (kept, 200)):
        for place in (GROUPS, f"{GROUPS}/{group.public_id}"):
            assert client.get(place, **headers).status_code == status
    ada.groups.clear()
    told = problem(client.get(GROUPS, **kept), 403)
    assert "triager" in told["detail"]
    problem(patch(client, group, kept, state="ignored"), 403)
    group.refresh_from_db()
    assert group.state == "new"
