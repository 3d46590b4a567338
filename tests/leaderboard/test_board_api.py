"""The calls about models, comparisons and ranks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from grading import regrade_runs, regrades
from grading.engine.outcome import Outcome
from grading.models import Regrade
from leaderboard import snapshots
from tests.grading import web_records
from tests.grading.test_api import bearer, problem
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db
ROOT = "/api/v1"


def all_of(outcome: Outcome) -> Any:
    return lambda *_: verdict(outcome)


@pytest.fixture
def two_models() -> None:
    version, rosa = web_records.benchmark(tasks=12), web_records.person("rosa")
    web_records.submission(version, rosa, all_of(Outcome.PASS), model="Petrel 9B")
    web_records.submission(version, rosa, model="Gannet 22B")
    snapshots.take_due()


def test_a_comparison_is_that_of_the_page(client: Client, two_models: None) -> None:
    place = f"{ROOT}/benchmarks/tidepool/compare"
    answer = client.get(place, {"a": "gannet-22b", "b": "petrel-9b"})
    found = answer.json()
    page = "/b/tidepool/compare/gannet-22b...petrel-9b/?format=json"
    assert found == json.loads(client.get(page).content)
    assert (found["a"]["model"], found["b"]["pass@1"]) == ("Gannet 22B", 1.0)
    assert client.get(place).json()["a"]["model"] == "Petrel 9B"
    problem(client.get(place, {"a": "nobody"}), 404)
    problem(client.get(f"{ROOT}/benchmarks/none/compare"), 404)


def test_one_model_compares_with_nothing(client: Client) -> None:
    web_records.submission(web_records.benchmark(), web_records.person("rosa"))
    problem(client.get(f"{ROOT}/benchmarks/tidepool/compare"), 409)


def test_models_are_listed_with_their_scores(client: Client, two_models: None) -> None:
    first = client.get(f"{ROOT}/models", {"limit": 1}).json()
    assert [one["name"] for one in first["items"]] == ["Petrel 9B"]
    rest = client.get(f"{ROOT}/models", {"limit": 1, "cursor": first["next"]}).json()
    assert [one["slug"] for one in rest["items"]] == ["gannet-22b"] and rest["next"] is None
    named = client.get(f"{ROOT}/models", {"q": "GANNET"}).json()["items"]
    assert [one["slug"] for one in named] == ["gannet-22b"]
    model = client.get(f"{ROOT}/models/petrel-9b").json()
    (row,) = model["submissions"]
    assert (row["benchmark"], row["version"], row["on_board"]) == ("tidepool", 1, True)
    assert (row["pass@1"], row["tasks_covered"], row["tier"]) == (1.0, 12, "bwrap")


def test_a_list_of_models_takes_three_queries(client: Client, two_models: None) -> None:
    with CaptureQueriesContext(connection) as seen:
        client.get(f"{ROOT}/models")
    assert len(seen) == 2


def test_a_model_without_public_submissions_is_its_owners(client: Client) -> None:
    rosa = web_records.person("rosa")
    web_records.submission(web_records.benchmark(), rosa, private=True)
    problem(client.get(f"{ROOT}/models/quillfish-8b"), 404)
    assert client.get(f"{ROOT}/models").json()["items"] == []
    own = bearer(rosa, "read")
    assert len(client.get(f"{ROOT}/models", **own).json()["items"]) == 1
    answer = client.get(f"{ROOT}/models/quillfish-8b", **own)
    assert answer.json()["submissions"][0]["on_board"] is False
    problem(client.get(f"{ROOT}/models/quillfish-8b", **bearer(rosa, "submit")), 404)


def test_ranks_that_would_move_are_told_until_it_is_decided(
    client: Client, two_models: None
) -> None:
    ada = web_records.person("ada", staff=True)
    chosen = regrades.Selection(model="Petrel 9B")
    regrade = regrades.ask(chosen, "why", ada)
    while claim := regrade_runs.claim(regrade.pk, "w9-1"):
        assert regrade_runs.record(claim, verdict(Outcome.ERROR), "")
    place, headers = f"{ROOT}/regrades/{regrade.public_id}/ranks", bearer(ada, "triage")
    (board,) = client.get(place, **headers).json()
    assert (board["benchmark"], board["version"]) == ("tidepool", 1)
    moved = {one["model"]: (one["before"], one["after"]) for one in board["models"]}
    assert moved == {"Petrel 9B": (1, 2), "Gannet 22B": (2, 1)}
    Regrade.objects.update(state=Regrade.State.CANCELLED)
    assert client.get(place, **headers).json() == []
    problem(client.get(place), 401)
