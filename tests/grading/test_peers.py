"""Another grader's verdicts, kept with the samples and compared with ours."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from grading.engine.outcome import Outcome
from grading.models import Generation, Submission, Task
from grading.queries import peers
from tests.grading import web_records

pytestmark = pytest.mark.django_db


def judged(task: Task, index: int) -> Any:
    """Sample 0 passes, 1 fails, 2 is not graded yet."""
    outcomes = [Outcome.PASS, Outcome.TIMEOUT, None]
    outcome = outcomes[index]
    return web_records.verdict(outcome) if outcome else None


@pytest.fixture
def submission() -> Submission:
    """Tasks 0 and 1 passed elsewhere, task 2 failed, task 3 has no verdict."""
    version = web_records.benchmark(tasks=4)
    made = web_records.submission(version, web_records.person("rosa"), judged, n=3)
    rows = Generation.objects.filter(sample__submission=made)
    rows.filter(sample__task__position__in=[0, 1]).update(peer_passed=True)
    rows.filter(sample__task__position=2).update(peer_passed=False)
    Submission.objects.filter(pk=made.pk).update(
        state="done", intake={"layout": "JSON Lines", "peer_verdicts": 9}
    )
    made.refresh_from_db()
    return made


def test_verdicts_are_counted_where_there_are_two(submission: Submission) -> None:
    found = peers.agreement(submission)
    assert found == peers.Agreement(both=2, neither=1, here_only=1, elsewhere_only=2)
    assert (found.equal, found.compared, found.share) == (3, 6, 0.5)


def test_a_file_without_verdicts_agrees_with_nobody(submission: Submission) -> None:
    submission.intake = {}
    assert peers.agreement(submission) is None
    submission.intake = {"peer_verdicts": 9}
    Generation.objects.update(peer_passed=None)
    assert peers.agreement(submission) is None


def test_pages_show_them_and_list_the_differences(client: Client, submission: Submission) -> None:
    place = f"/s/{submission.public_id}/"
    page = client.get(place).content.decode()
    assert "3 of 6 verdicts are equal, 50.0" in page
    assert f"{place}samples/?outcome=passed+elsewhere+only" in page
    listed = client.get(f"{place}samples/?outcome=passed+elsewhere+only").content.decode()
    assert "2 samples" in listed
    assert "Tidepool/0 · 1" in listed
    listed = client.get(f"{place}samples/?outcome=passed+here+only").content.decode()
    assert "1 sample<" in listed
    assert "Tidepool/2 · 0" in listed
    assert "failed elsewhere" in client.get(f"{place}Tidepool-2/0/").content.decode()
    assert "elsewhere" not in client.get(f"{place}Tidepool-3/0/").content.decode()
