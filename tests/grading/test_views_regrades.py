"""The regrade pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from grading import regrade_runs, regrades
from grading.engine.outcome import Outcome
from grading.models import CrashGroup, Regrade, TaskScore
from tests.grading import web_records
from tests.grading.web_records import page, verdict

pytestmark = pytest.mark.django_db


def wrong(task: Any, index: int) -> Any:
    return verdict(Outcome.ASSERTION_FAIL)


def ready(by: Any, uploader: Any = None, repeats: int = 1) -> Regrade:
    """A regrade of one benchmark, six samples, that would all pass now."""
    uploader = uploader or web_records.person("rosa")
    web_records.submission(web_records.benchmark(), uploader, wrong)
    web_records.submission(web_records.benchmark("other"), uploader, wrong, model="Elsewhere 1B")
    chosen = regrades.Selection(benchmark="tidepool")
    regrade = regrades.ask(chosen, "<b>why</b>", by, repeats)
    while claim := regrade_runs.claim(regrade.pk, "w9-1"):
        regrade_runs.record(claim, verdict(Outcome.PASS), "")
    return regrade


@pytest.mark.parametrize("path", ["", "new/", "{id}/"])
def test_regrades_are_for_staff(client: Client, path: str) -> None:
    rosa = web_records.person("rosa")
    regrade = ready(web_records.person("ada", staff=True), rosa)
    url = "/regrades/" + path.format(id=regrade.public_id)
    assert client.get(url).headers["Location"].startswith("/login/")
    client.force_login(rosa)
    assert client.get(url).status_code == 403
    for action in ("apply", "cancel"):
        assert client.post(f"/regrades/{regrade.public_id}/{action}/").status_code == 403
    regrade.refresh_from_db()
    assert regrade.state == "ready"


def test_a_group_is_counted_then_started(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, wrong)
    group = CrashGroup.objects.get(title__startswith="Tidepool/0")
    form = page(client, f"/regrades/new/?group={group.public_id}")
    assert f'value="{group.public_id}"' in form
    data = {"group": group.public_id, "repeats": "2", "reason": "looks wrong"}
    counted = client.post("/regrades/new/", data | {"count": "1"}).content.decode()
    assert "2 samples would be run." in counted
    assert not Regrade.objects.exists()
    answer = client.post("/regrades/new/", data)
    regrade = Regrade.objects.get()
    assert answer.headers["Location"] == f"/regrades/{regrade.public_id}/"
    assert "0 of 4 runs made." in page(client, answer.headers["Location"])
    assert regrade.public_id in page(client, "/regrades/")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"reason": "x", "repeats": "1"}, "everything is never meant"),
        ({"task": "Tidepool/0", "repeats": "1"}, "Say why"),
        ({"task": "nothing", "reason": "x", "repeats": "1"}, "No graded sample matches"),
        ({"task": "Tidepool/0", "reason": "x", "repeats": "11"}, "less than or equal to 10"),
    ],
)
def test_what_cannot_be_started_is_refused(client: Client, sam: Any, data: Any, says: str) -> None:
    web_records.submission(web_records.benchmark(), sam, wrong)
    answer = client.post("/regrades/new/", data)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert not Regrade.objects.exists()


def test_a_ready_regrade_shows_what_would_change(client: Client, sam: Any) -> None:
    shown = page(client, f"/regrades/{ready(sam).public_id}/")
    for part in ("6 of 6 samples would have another verdict", "&lt;b&gt;why", "100.0", "0.0"):
        assert part in shown
    assert shown.count('name="sample"') == 6
    assert shown.count("?attempt=2") == 6


def test_ranks_that_would_move_are_named(client: Client, sam: Any) -> None:
    regrade = ready(sam)
    version = regrade.runs.all()[0].task.version
    better = web_records.submission(
        version,
        sam,
        lambda task, index: verdict(Outcome.PASS if index else Outcome.ERROR),
        model="Petrel 9B",
    )
    shown = page(client, f"/regrades/{regrade.public_id}/")
    assert better.language_model.name in shown
    assert "Ranks on Tidepool version 1 that would move" in shown


def test_applying_and_its_line_in_the_change_log(client: Client, sam: Any) -> None:
    regrade = ready(sam)
    client.post(f"/regrades/{regrade.public_id}/apply/")
    assert set(
        TaskScore.objects.filter(submission__version__benchmark__slug="tidepool").values_list(
            "c", flat=True
        )
    ) == {2}
    shown = page(client, f"/regrades/{regrade.public_id}/")
    assert "Applied." in shown and "Apply all" not in shown
    log = page(client, "/b/tidepool/v1/changes/")
    assert "6 samples regraded, 6 with another verdict." in log and "&lt;b&gt;why" in log
    again = client.post(f"/regrades/{regrade.public_id}/apply/", follow=True)
    assert "Nothing applied." in again.content.decode()


def test_picked_samples_only(client: Client, sam: Any) -> None:
    regrade = ready(sam)
    url = f"/regrades/{regrade.public_id}/apply/"
    client.post(url, {"picked": "1"})
    regrade.refresh_from_db()
    assert regrade.state == "ready"
    one = regrade.runs.all()[0].sample_id
    client.post(url, {"picked": "1", "sample": [one]})
    assert sum(TaskScore.objects.values_list("c", flat=True)) == 1


def test_cancelling(client: Client, sam: Any) -> None:
    regrade = ready(sam)
    client.post(f"/regrades/{regrade.public_id}/cancel/")
    assert "No figure has changed." in page(client, f"/regrades/{regrade.public_id}/")
    assert sum(TaskScore.objects.values_list("c", flat=True)) == 0


def test_the_graded_party_is_told_why_it_has_no_say(client: Client, sam: Any) -> None:
    regrade = ready(web_records.person("ada", staff=True), sam)
    shown = page(client, f"/regrades/{regrade.public_id}/")
    assert "It grades your own submission" in shown and "Apply all" not in shown
    for action in ("apply", "cancel"):
        client.post(f"/regrades/{regrade.public_id}/{action}/")
    regrade.refresh_from_db()
    assert regrade.state == "ready"
