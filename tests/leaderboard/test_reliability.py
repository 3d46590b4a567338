"""What repeated samples of a run come to, and how a model's page and files show it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import combinations
from math import sqrt

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from grading.engine.outcome import Outcome
from leaderboard.cards import task_lines
from leaderboard.reliability import reliability
from tests.grading import web_records
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db

# Per task the outcomes of its samples; each assertion_fail of these records holds 2 of 3 targets.
P, F, T = Outcome.PASS, Outcome.ASSERTION_FAIL, Outcome.TIMEOUT
RUNS = ((P, P, F, T), (F, F, T, T), (P, P, P, P))
SCORES = {P: Fraction(1), F: Fraction(2, 3), T: Fraction(0)}


@pytest.fixture
def submission():
    version = web_records.benchmark(tasks=3)
    return web_records.submission(
        version,
        builders.user(),
        lambda task, index: web_records.verdict(RUNS[task.position][index]),
        n=4,
    )


def mean(value) -> float:
    """Over tasks and all pairs of their samples."""
    shares = []
    for run in RUNS:
        pairs = list(combinations(run, 2))
        shares.append(sum(value(pair) for pair in pairs) / Fraction(len(pairs)))
    return float(sum(shares) / 3)


def test_draws_are_means_over_all_that_could_be_drawn(submission):
    (two,) = reliability(submission.public_id, task_lines(submission)).draws
    assert (two.k, two.at_least) == (2, 1)
    assert two.any == two.half == pytest.approx(mean(lambda pair: P in pair))
    assert two.all == pytest.approx(mean(lambda pair: set(pair) == {P}))
    assert two.best == pytest.approx(mean(lambda pair: max(SCORES[one] for one in pair)))


def test_the_noise_of_a_rerun_is_split_off(submission):
    found = reliability(submission.public_id, task_lines(submission))
    # p (1 - p) / (n - 1) is 1/12 for the first task and 0 for the others.
    assert found.rerun_se == pytest.approx(sqrt(1 / 12) / 3)
    assert found.split.within == pytest.approx(1 / 36)


def test_one_sample_says_nothing_of_a_rerun():
    version = builders.version(tasks=2)
    made = builders.submission(version, "A", [(1, 1), (5, 1)])
    found = reliability(made.public_id, task_lines(made))
    assert (found.draws, found.split, found.rerun_se) == ((), None, None)


def test_scores_without_stored_samples_have_no_best_fraction():
    version = builders.version(tasks=2)
    made = builders.submission(version, "A", [(10, 1), (12, 6), None])
    found = reliability(made.public_id, task_lines(made))
    assert [one.k for one in found.draws] == [2, 5, 10]
    assert [one.at_least for one in found.draws] == [1, 3, 5]
    assert {one.best for one in found.draws} == {None}
    assert found.draws[1].half < found.draws[1].any


def test_it_takes_one_query(submission):
    lines = task_lines(submission)
    with CaptureQueriesContext(connection) as captured:
        reliability(submission.public_id, lines)
    assert len(captured) == 1


def text_of(client, path: str) -> str:
    body = client.get(path).content.decode().split("<main", 1)[1]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_the_model_page_says_what_to_expect(client, submission):
    said = text_of(client, reverse("model", args=["quillfish-8b"]))
    assert "2 61.1 61.1 38.9" in said  # any, half and all of two
    assert "pass@1 would vary by about 9.6 points, one standard error" in said
    assert "Formulas" in said
    version = builders.version(tasks=2, slug="saltworks")
    builders.submission(version, "Single", builders.solving(1, 2))
    assert "A task has one sample only" in text_of(client, reverse("model", args=["single"]))


def test_the_model_s_files_hold_its_page(client, submission):
    address = reverse("model", args=["quillfish-8b"])
    held = json.loads(client.get(f"{address}?format=json").content)
    assert held["model"] == "Quillfish 8B"
    assert held["submissions"][0]["pass@1"] == pytest.approx(0.5)
    assert held["submissions"][0]["on_the_board"]
    assert held["shown"]["submission"] == submission.public_id
    assert held["shown"]["reliability"]["draws"][0]["all"] == pytest.approx(7 / 18)
    assert held["shown"]["reliability"]["split"]["within"] == pytest.approx(1 / 36)
    assert [task["c"] for task in held["shown"]["tasks"]] == [2, 0, 4]
    assert set(held["shown"]["bootstrap"]) == {"low", "high"}
    header, row = client.get(f"{address}?format=csv").content.decode().splitlines()
    assert header.startswith("benchmark,version,on_the_board,model,organisation")
    assert row.startswith("Tidepool,1,True,Quillfish 8B")
    lines = client.get(f"{address}?format=md").content.decode().splitlines()
    assert lines[0] == "Quillfish 8B; scores in percent"
    assert lines[4].startswith(f"| Tidepool | 1 | {submission.public_id} | 50.0 |")
    assert lines[8].startswith("| 2 | 61.1 | 61.1 | 38.9 |")
    assert client.get(f"{address}?format=xml").status_code == 404
