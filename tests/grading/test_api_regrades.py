"""The calls of regrades: asked for once, followed, looked at, applied or cancelled."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from grading import regrade_runs, regrades
from grading.accounts.roles import Role
from grading.engine.outcome import Outcome
from grading.models import CrashGroup, IdempotencyKey, Regrade, TaskScore
from tests.grading import web_records
from tests.grading.test_api import bearer, problem
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db
REGRADES = "/api/v1/regrades"


@pytest.fixture
def keeper() -> dict[str, str]:
    return bearer(web_records.person("mia", role=Role.MAINTAINER), "triage")


def missed() -> Any:
    """A submission of six samples that all miss a target."""
    version = web_records.benchmark()
    judge = lambda *_: verdict(Outcome.ASSERTION_FAIL)  # noqa: E731
    return web_records.submission(version, web_records.person("rosa"), judge)


def post(client: Client, place: str, headers: dict[str, str], **body: Any) -> Any:
    return client.post(REGRADES + place, body, content_type="application/json", **headers)


def ask(client: Client, headers: dict[str, str], **body: Any) -> Any:
    return post(client, "", headers, **({"benchmark": "tidepool", "reason": "why"} | body))


def run(public_id: str, judge: Any = lambda run: verdict(Outcome.PASS)) -> None:
    regrade = Regrade.objects.get(public_id=public_id)
    while claim := regrade_runs.claim(regrade.pk, "w9-1"):
        assert regrade_runs.record(claim, judge(claim.run), "")


def test_it_is_asked_for_run_looked_at_and_applied(client: Client, keeper: dict[str, str]) -> None:
    made = missed()
    assert ask(client, keeper, dry_run=True).json() == {"samples": 6, "left_out": {}}
    assert not Regrade.objects.exists()
    answer = ask(client, keeper, repeats=2)
    assert answer.status_code == 202
    begun = answer.json()
    place = f"{REGRADES}/{begun['id']}"
    assert answer.headers["Location"].endswith(place)
    assert (begun["state"], begun["runs"]) == ("running", {"done": 0, "of": 12})
    assert (begun["selection"], begun["asked_by"]) == ({"benchmark": "tidepool"}, "mia")
    problem(post(client, f"/{begun['id']}/apply", keeper), 409)
    first = min(one.pk for one in made.samples.all())
    # The first sample fails in its second run: no verdict of it can be relied on.
    run(
        begun["id"],
        lambda run: verdict(
            Outcome.ERROR if run.sample_id == first and run.repeat else Outcome.PASS
        ),
    )
    done = client.get(place, **keeper).json()
    assert (done["state"], done["changed"], done["flaky"]) == ("ready", 5, 1)
    assert done["flake_rate"] == pytest.approx(1 / 6)
    order = done["outcomes"]["order"]
    matrix = done["outcomes"]["old_by_new"]
    assert matrix[order.index("assertion_fail")][order.index("pass")] == 6
    assert done["scores"] == [
        {"submission": made.public_id, "model": "Quillfish 8B", "before": 0.0, "after": 5 / 6}
    ]
    rows, cursor = [], ""
    while cursor is not None:
        query = {"limit": 4, "cursor": cursor}
        part = client.get(f"{place}/samples", query, **keeper).json()
        rows, cursor = rows + part["items"], part["next"]
    assert [row["why"] for row in rows] == ["flaky"] + ["changed"] * 5
    assert [run["outcome"] for run in rows[0]["runs"]] == ["pass", "error"]
    assert TaskScore.objects.filter(c__gt=0).count() == 0
    picked = [rows[1]["sample"], rows[2]["sample"]]
    applied = post(client, f"/{begun['id']}/apply", keeper, samples=picked).json()
    assert (applied["applied"], applied["changed"], applied["kept"]) == (2, 2, 4)
    assert (applied["state"], applied["decided_by"]) == ("applied", "mia")
    assert sum(score.c for score in TaskScore.objects.all()) == 2
    problem(post(client, f"/{begun['id']}/apply", keeper), 409)
    problem(post(client, f"/{begun['id']}/cancel", keeper), 409)


def test_without_a_body_all_is_applied(client: Client, keeper: dict[str, str]) -> None:
    missed()
    public_id = ask(client, keeper).json()["id"]
    run(public_id)
    answer = client.generic("POST", f"{REGRADES}/{public_id}/apply", **keeper)
    assert answer.json()["applied"] == 6


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        ({"task": "Tidepool/1"}, 2),
        ({"model": "Quillfish 8B", "outcome": "assertion_fail"}, 6),
        ({"grader_below": 10**6}, 6),
        ({"version": 1, "benchmark": "tidepool", "worker": "w1-77"}, 6),
        ({"group": "GROUP"}, 2),
        ({"submission": "SUBMISSION"}, 6),
    ],
)
def test_samples_are_chosen_in_every_way(
    client: Client, keeper: dict[str, str], chosen: dict[str, Any], count: int
) -> None:
    made = missed()
    names = {
        "GROUP": CrashGroup.objects.filter(title__startswith="Tidepool/0").get().public_id,
        "SUBMISSION": made.public_id,
    }
    chosen = {name: names.get(str(value), value) for name, value in chosen.items()}
    answer = post(client, "", keeper, reason="why", dry_run=True, **chosen)
    assert answer.json() == {"samples": count, "left_out": {}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"benchmark": "tidepool"}, "reason"),
        ({"benchmark": "tidepool", "reason": " "}, "reason"),
        ({"reason": "why"}, ""),
        ({"reason": "why", "benchmark": "none"}, "benchmark"),
        ({"reason": "why", "benchmark": "tidepool", "repeats": 11}, "repeats"),
        ({"reason": "why", "outcome": "fine"}, "outcome"),
        ({"reason": "why", "benchmrk": "tidepool"}, "benchmrk"),
        (
            {"reason": "why", "task": "x", "target": {"benchmark": "tidepool", "version": 9}},
            "target",
        ),
    ],
)
def test_a_wrong_wish_is_named_and_starts_nothing(
    client: Client, keeper: dict[str, str], body: dict[str, Any], field: str
) -> None:
    missed()
    told = problem(post(client, "", keeper, **body), 422)
    assert any(one["field"].rpartition(".")[2] == field for one in told["errors"]), told
    assert not Regrade.objects.exists()


def test_nothing_to_run_is_said_and_an_open_one_is_joined(
    client: Client, keeper: dict[str, str]
) -> None:
    missed()
    problem(ask(client, keeper, task="Tidepool/99"), 409)
    first = ask(client, keeper, task="Tidepool/1").json()
    assert ask(client, keeper, task="Tidepool/1").json()["joined"][0]["by"] == "mia"
    wider = ask(client, keeper).json()
    assert wider["left_out"] == {first["id"]: 2}
    listed = client.get(REGRADES, {"limit": 1}, **keeper).json()
    assert [one["id"] for one in listed["items"]] == [first["id"]] and listed["next"]
    assert listed["items"][0]["runs"] == {"done": 0, "of": 2}


def test_a_key_makes_a_regrade_start_once(client: Client, keeper: dict[str, str]) -> None:
    missed()
    once = keeper | {"HTTP_IDEMPOTENCY_KEY": "night 7"}
    first = ask(client, once)
    # Without the key this would be another one: the first is decided.
    assert post(client, f"/{first.json()['id']}/cancel", keeper).json()["state"] == "cancelled"
    again = ask(client, once)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    problem(ask(client, once, reason="another"), 422)
    assert ask(client, keeper).json()["id"] != first.json()["id"]
    assert IdempotencyKey.objects.get().regrade is not None


def test_only_samples_of_the_regrade_can_be_picked(client: Client, keeper: dict[str, str]) -> None:
    missed()
    public_id = ask(client, keeper).json()["id"]
    run(public_id)
    for wrong in ([], [0], ["x"]):
        problem(post(client, f"/{public_id}/apply", keeper, samples=wrong), 422)
    assert Regrade.objects.get().state == "ready"


def test_a_triager_asks_and_decides_nothing(client: Client) -> None:
    missed()
    headers = bearer(web_records.person("ada", role=Role.TRIAGER), "triage")
    public_id = ask(client, headers).json()["id"]
    run(public_id)
    for action in ("apply", "cancel"):
        told = problem(post(client, f"/{public_id}/{action}", headers), 403)
        assert "benchmark maintainer" in told["detail"]
    assert Regrade.objects.get().state == "ready"


def test_who_is_graded_has_no_say(client: Client) -> None:
    made = missed()
    rosa = made.uploader
    rosa.is_staff = True
    rosa.save()
    other = web_records.person("mia", role=Role.MAINTAINER)
    regrade = regrades.ask(regrades.Selection(benchmark="tidepool"), "why", other)
    told = problem(post(client, f"/{regrade.public_id}/cancel", bearer(rosa, "triage")), 403)
    assert "your own submission" in told["detail"]
