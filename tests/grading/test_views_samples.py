from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from grading.engine.cases import read_case
from grading.engine.outcome import Failure, Outcome, Stream, TargetResult
from grading.models import Attempt, AttemptText, CrashGroup, Sample
from tests.grading import web_records
from tests.grading.web_records import SECRET_TARGET, verdict

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script></pre>\u202e\0\ud800" + "y" * 1_000_000


@pytest.fixture
def rosa() -> Any:
    return web_records.person("rosa")


def page_of(client: Client, made: Any, task: str = "Tidepool-0", index: int = 0) -> str:
    answer = client.get(f"/s/{made.public_id}/{task}/{index}/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_it_shows_generation_program_targets_and_run_facts(client: Client, rosa: Any) -> None:
    failed = verdict(Outcome.ASSERTION_FAIL)
    made = web_records.submission(web_records.benchmark(), rosa, lambda task, index: failed)
    page = page_of(client, made)
    assert "2 of 3 targets hold, score 0.667" in page
    assert "Ties go to the first." in page
    assert 'id="P2"' in page
    assert 'href="#P2"' in page
    assert "Block 1 of 1" in page
    assert page.count("holds</span>") == 2
    assert "IndexError: list index out of range" in page
    assert "raised</span>" in page
    assert "best so far: 2" in page
    assert "11.3\N{NO-BREAK SPACE}MB" in page
    assert "bwrap" in page
    assert "python -m grading.engine --cases Tidepool-0-0.jsonl --out -" in page


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_page(client: Client, rosa: Any, outcome: Outcome) -> None:
    made = web_records.submission(
        web_records.benchmark(tasks=1), rosa, lambda task, index: verdict(outcome)
    )
    assert f"</b>{outcome.value}</span>" in page_of(client, made)


def test_what_the_model_wrote_is_escaped_and_cut_everywhere(client: Client, rosa: Any) -> None:
    hostile = verdict(
        Outcome.ASSERTION_FAIL,
        program=HOSTILE,
        detail=HOSTILE[:4_000],
        targets=[TargetResult(0, False, "sealed", HOSTILE[:4_000])],  # type: ignore[arg-type]
        failure=Failure("target", HOSTILE[:100], HOSTILE[:4_000], [(1, HOSTILE[:50])]),
        denied=[HOSTILE[:50]],
        stdout=Stream(HOSTILE[:4_000], HOSTILE[:4_000], 1_000_000),
        stderr=Stream(HOSTILE[:4_000], "", 4_000),
    )
    made = web_records.submission(
        web_records.benchmark(tasks=1), rosa, lambda task, index: hostile, text=HOSTILE
    )
    page = page_of(client, made)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\0" not in page
    assert len(page) < 100_000
    assert "1,000,034 characters, shown up to line 1" in page
    assert "left out here" in page
    listed = client.get(f"/s/{made.public_id}/samples/").content.decode()
    assert "<script>alert" not in listed
    assert "\u202e" not in listed


def test_downloads_are_plain_text_attachments(client: Client, rosa: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, text=HOSTILE)
    answer = client.get(f"/s/{made.public_id}/Tidepool-0/0/generation.txt")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.content.startswith(b"<script>")
    assert b"\\ud800" in answer.content
    program = client.get(f"/s/{made.public_id}/Tidepool-0/0/program.txt")
    assert program.content.decode() == web_records.PROGRAM


def test_a_waiting_sample_has_a_page_and_no_program(client: Client, rosa: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, lambda task, index: None)
    assert "Not graded yet." in page_of(client, made)
    assert client.get(f"/s/{made.public_id}/Tidepool-0/0/program.txt").status_code == 404


def test_a_platform_failure_has_no_score(client: Client, rosa: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, lambda task, index: "no <b> room")
    page = page_of(client, made)
    assert "The platform could not grade this sample." in page
    assert "no &lt;b&gt; room" in page
    assert "score 0" not in page


def test_hidden_targets_leak_to_nobody_but_staff(client: Client, rosa: Any) -> None:
    """A program can print, raise and name what it is called with: none of that may be shown."""
    told = verdict(
        Outcome.ASSERTION_FAIL,
        detail="target 1: expected 'secret argument'",
        failure=Failure("target", "secret argument", "secret argument", [(2, "secret argument")]),
        stdout=Stream("secret argument\n", "", 16),
        stderr=Stream("secret argument\n", "", 16),
    )
    version = web_records.benchmark("hidden", hidden=True)
    made = web_records.submission(version, rosa, lambda task, index: told)
    paths = [
        f"/s/{made.public_id}/",
        f"/s/{made.public_id}/samples/",
        f"/s/{made.public_id}/Hidden-0/0/",
        "/b/hidden/tasks/",
        "/b/hidden/tasks/Hidden-0/",
    ]
    for viewer in (None, rosa):
        if viewer:
            client.force_login(viewer)
        for path in paths:
            answer = client.get(path)
            assert answer.status_code == 200
            assert b"secret" not in answer.content, path
        assert client.get(f"/s/{made.public_id}/Hidden-0/0/case.jsonl").status_code == 404
    assert "2 of 3 hold." in client.get(paths[2]).content.decode()

    client.force_login(web_records.person("sam", staff=True))
    assert b"secret argument" in client.get(paths[2]).content
    assert b"secret argument" in client.get(paths[4]).content
    assert client.get(f"/s/{made.public_id}/Hidden-0/0/case.jsonl").status_code == 200


def test_failures_before_the_first_target_are_told_even_where_targets_are_hidden(
    client: Client, rosa: Any
) -> None:
    version = web_records.benchmark("hidden", hidden=True)
    made = web_records.submission(version, rosa, lambda task, index: verdict(Outcome.ERROR))
    page = page_of(client, made, "Hidden-0")
    assert "message of a error" in page
    assert "detail of a error" in page


def test_the_case_file_repeats_the_run(client: Client, rosa: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    answer = client.get(f"/s/{made.public_id}/Tidepool-0/1/case.jsonl")
    case = read_case(1, answer.content.decode())
    assert case.task.targets[0] == SECRET_TARGET
    assert case.generation.text == web_records.CHAT
    assert json.loads(answer.content)["id"] == "Tidepool/0/1"


def test_older_attempts_can_be_opened(client: Client, rosa: Any) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    sample = Sample.objects.get(submission=made, task__position=0, index=0)
    first = sample.current_attempt
    assert first is not None
    second = Attempt.objects.get(pk=first.pk)
    text = AttemptText.objects.get(attempt=first)
    second.pk, second.number, second.kind, second.outcome = None, 2, "regrade", "timeout"
    second.save(force_insert=True)
    text.attempt = second
    text.save(force_insert=True)
    Sample.objects.filter(pk=sample.pk).update(current_attempt=second)

    page = page_of(client, made)
    assert "2 of 2 (regrade)" in page
    assert f'href="/s/{made.public_id}/Tidepool-0/0/?attempt=1"' in page
    older = client.get(f"/s/{made.public_id}/Tidepool-0/0/?attempt=1").content.decode()
    assert "1 of 2 (first)" in older
    assert client.get(f"/s/{made.public_id}/Tidepool-0/0/?attempt=7").status_code == 404


@pytest.mark.parametrize(
    "path", ["Tidepool-0/9/", "Tidepool-9/0/", "Tidepool-0/99999999999999999999/"]
)
def test_what_is_not_there_is_404(client: Client, rosa: Any, path: str) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    assert client.get(f"/s/{made.public_id}/{path}").status_code == 404


def test_staff_see_the_way_to_the_group_of_failures(client: Client, rosa: Any) -> None:
    made = web_records.submission(
        web_records.benchmark(), rosa, lambda task, index: verdict(Outcome.ERROR)
    )
    assert "For staff" not in page_of(client, made)
    client.force_login(web_records.person("sam", staff=True))
    page = page_of(client, made)
    assert f'href="/triage/{CrashGroup.objects.get().public_id}/"' in page
    assert 'href="/triage/?state=all&amp;task=Tidepool/0"' in page


@pytest.mark.parametrize("n", [2, 9])
def test_the_number_of_queries_does_not_grow(
    client: Client, rosa: Any, n: int, django_assert_max_num_queries: Any
) -> None:
    made = web_records.submission(web_records.benchmark(tasks=4), rosa, n=n)
    with django_assert_max_num_queries(7):
        page_of(client, made, "Tidepool-1")
