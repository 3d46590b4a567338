"""``manage.py regrade`` without workers: what it asks for and what it refuses."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from grading.engine.outcome import Outcome
from grading.models import Regrade
from tests.grading import web_records
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Any:
    person = web_records.person("admin", superuser=True)
    web_records.submission(
        web_records.benchmark(), person, lambda *_: verdict(Outcome.ASSERTION_FAIL)
    )
    return person


def told(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("regrade", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_it_asks_for_a_regrade(admin: Any) -> None:
    found = told("--task", "Tidepool/1", "--reason", "why", "--repeat", "3")
    regrade = Regrade.objects.get()
    assert (found["regrade"], found["state"], found["samples"]) == (regrade.public_id, "running", 2)
    assert (regrade.asked_by, regrade.repeats, regrade.runs.count()) == (admin, 3, 6)


def test_a_dry_run_only_counts(admin: Any) -> None:
    assert told("--benchmark", "tidepool", "--of-version", "1", "--dry-run") == {
        "samples": 6,
        "in_open_regrades": {},
    }
    assert not Regrade.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--reason", "x"], "everything is never meant"),
        (["--task", "Tidepool/1"], "needs a reason"),
        (["--task", "nothing", "--reason", "x"], "No graded sample matches"),
        (["--task", "Tidepool/1", "--reason", "x", "--apply"], "--apply needs --wait"),
        (["--task", "Tidepool/1", "--reason", "x", "--user", "nobody"], "No user 'nobody'"),
        (["--benchmark", "tidepool", "--reason", "x", "--to-version", "9"], "--to-version 9"),
    ],
)
def test_what_it_refuses(admin: Any, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("regrade", *arguments)
    assert not Regrade.objects.exists()
