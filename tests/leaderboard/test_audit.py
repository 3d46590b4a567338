"""The task audit: what it finds, when it is taken, and what its page says."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from django.urls import reverse

from grading.models import Attempt, Sample, Task, TaskFlag
from leaderboard import snapshots
from leaderboard.audit import audit_due, correlation, latest
from leaderboard.audit_charts import histogram, scatter
from leaderboard.models import Audit
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    """Ten models of rising skill; task 0 is solved by all, 1 by none, 2 by the weaker half only."""
    made = builders.version(tasks=14)
    for skill in range(10):
        scores = [(1, 1), (1, 0), (1, int(skill < 5)), *builders.solving(skill + 1, 11)]
        builders.submission(made, f"M{skill}", scores)
    snapshots.take(made)
    return made


def audited(version):
    audit_due()
    return latest(version)


def sample(version, position, *outcomes, wall_s=0.1):
    """A sample of the first model that was run once per outcome."""
    task = version.tasks.get(position=position)
    submission = version.submissions.first()
    made = Sample.objects.create(submission=submission, task=task, index=0)
    builders.attempt(made, 1, 1, outcome=outcomes[0], wall_s=wall_s)
    for number, outcome in enumerate(outcomes[1:], start=2):
        held = Attempt.objects.get(sample=made, number=1)
        held.pk, held.number, held.outcome = None, number, outcome
        held.save()


def test_tasks_that_say_nothing_or_the_wrong_thing_are_flagged(version):
    found = audited(version)
    assert [one.flags for one in found[:4]] == [
        ["saturated"],
        ["unsolved"],
        ["suspect"],
        ["saturated"],
    ]
    assert found[2].discrimination < -0.8
    assert (found[2].solved_by, found[2].mean, found[2].models) == (0.5, 0.5, 10)
    assert found[0].discrimination is None
    assert all(one.discrimination > 0 for one in found[5:12])


def test_few_models_do_not_make_a_task_suspect():
    version = builders.version(tasks=3)
    for skill in range(4):
        builders.submission(
            version, f"M{skill}", [(1, int(skill < 2)), *builders.solving(skill, 2)]
        )
    snapshots.take(version)
    assert [one.discrimination for one in audited(version)] == [None] * 3


def test_flake_rate_is_of_samples_that_ran_again(version):
    sample(version, 4, "pass", "timeout")
    sample(version, 5, "pass", "pass")
    sample(version, 6, "pass")
    found = audited(version)
    assert [found[place].flake for place in (4, 5, 6)] == [1.0, 0.0, None]
    Attempt.objects.filter(number=2, outcome="timeout").update(grader_version=2)
    snapshots.take(version)
    Audit.objects.all().delete()
    assert audited(version)[4].flake is None  # another grader may judge otherwise
    assert [("flaky" in found[place].flags) for place in (4, 5)] == [True, False]


def test_passing_runs_close_to_the_limit_are_counted_by_the_limit_of_the_task(version):
    Task.objects.filter(version=version, position=6).update(timeout_s=10)
    Task.objects.filter(version=version, position=7).update(measured_timeout_s=5)
    for position in (5, 6, 7):
        sample(version, position, "pass", wall_s=2.9)
    found = audited(version)
    assert [found[place].close for place in (4, 5, 6, 7)] == [None, 1.0, 0.0, 0.0]
    assert "limit too tight" in found[5].flags


def test_a_failing_reference_is_flagged(version):
    Task.objects.filter(version=version, position=4).update(status=Task.Status.SUSPECT)
    assert "reference fails" in audited(version)[4].flags


def test_each_snapshot_is_audited_once(version):
    assert audit_due() == "audited the tasks of Tidepool version 1 snapshot 1"
    assert audit_due() == ""
    builders.submission(version, "Gannet", [(1, 1)] * 14)
    snapshots.take(version)
    assert audit_due()
    assert Audit.objects.count() == 2
    assert latest(version)[1].models == 11


def test_correlation_is_pearson_s():
    a, b = [0.1, 0.5, 0.2, 0.9, 0.4], [0.3, 0.4, 0.1, 0.8, 0.9]
    assert correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert correlation([1.0, 1.0], [0.0, 1.0]) is None


def test_charts_say_what_they_show(version):
    found = audited(version)
    assert "2 of 14 below 10 %, 3 at 90 % or above" in histogram(found)
    drawn = scatter(found)
    assert drawn.count('class="sdot bad"') == 1
    assert "1 negative" in drawn


def test_the_page_lists_flags_and_links_to_the_board_without_them(client, version):
    address = reverse("audit", args=["tidepool", 1])
    assert "No snapshot of this board has been audited yet." in client.get(address).content.decode()
    audit_due()
    body = client.get(address).content.decode()
    assert 'without=tidepool-2"' in body
    suspect = client.get(f"{address}?flag=suspect").content.decode()
    assert "1 task flagged “suspect”" in suspect
    held = json.loads(client.get(f"{address}?format=json").content)
    assert held[2]["flags"] == ["suspect"]
    task = client.get(reverse("task", args=["tidepool", "tidepool-2"])).content.decode()
    assert "suspect</a>" in task
    assert "Leaderboard without this task" in task


def test_flags_are_kept_with_the_tasks_for_triage_until_the_next_audit(version):
    def flags():
        return set(TaskFlag.objects.values_list("task__slug", "name"))

    audit_due()
    assert {("tidepool-1", "unsolved"), ("tidepool-2", "suspect")} <= flags()
    builders.submission(version, "Gannet", [(1, 1)] * 14)
    snapshots.take(version)
    audit_due()
    assert ("tidepool-1", "unsolved") not in flags()
    assert ("tidepool-2", "suspect") in flags()


def test_the_page_of_a_task_has_all_its_figures(client, version):
    sample(version, 2, "pass", "timeout")
    audit_due()
    body = client.get(reverse("task", args=["tidepool", "tidepool-2"])).content.decode()
    said = " ".join(re.sub(r"<[^>]*>", " ", body.partition('id="au"')[2]).split())
    for part in (
        "Solved by 50.0 % of 10 models",
        "Mean pass rate 50.0 %",
        "Discrimination −0.",
        "Flake rate 100.0 %",
        "Close to the limit 0.0 %",
        "Suspect: better models do worse on it than weaker ones.",
        "Flaky: the same program got different outcomes.",
    ):
        assert part in said.replace("\N{NO-BREAK SPACE}", " ")


def test_flags_lead_those_who_may_to_the_failures(client, version):
    audit_due()
    address = reverse("audit", args=["tidepool", 1])
    assert "/triage/?" not in client.get(address).content.decode()
    admin = builders.user("admin")
    admin.is_staff = True
    admin.save()
    client.force_login(admin)
    assert "/triage/?benchmark=tidepool&amp;flag=suspect" in client.get(address).content.decode()
