from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from grading import chunks, queue_control, sweep
from grading.engine.outcome import Outcome
from grading.models import Chunk, Sample, Submission
from tests.grading import web_records
from tests.grading.pipeline_records import age_chunks, first_lease, stored_submission
from tests.grading.web_records import verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa() -> Any:
    return web_records.person("rosa")


def half(task: Any, index: int) -> Any:
    return web_records.mixed(task, index) if index == 0 else None


def text_of(answer: Any) -> str:
    return answer.content.decode()  # type: ignore[no-any-return]


def test_a_finished_submission_opens_with_its_finding(client: Client, rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return verdict(Outcome.PASS if task.position else Outcome.ASSERTION_FAIL)

    done = web_records.submission(web_records.benchmark(), rosa, judge)
    page = text_of(client.get(f"/s/{done.public_id}/"))
    assert "pass@1 is <strong>66.7\N{NO-BREAK SPACE}%</strong>" in page
    assert "2 of 3 tasks have a sample that passes" in page
    assert "88.9\N{NO-BREAK SPACE}%" in page
    assert f'href="/s/{done.public_id}/samples/?outcome=assertion_fail"' in page
    assert 'href="/b/tidepool/tasks/Tidepool-0/?version=1"' in page
    assert "hx-get" not in page


def test_an_incomplete_submission_says_that_it_takes_no_rank(client: Client, rosa: Any) -> None:
    done = web_records.submission(
        web_records.benchmark(),
        rosa,
        lambda task, index: verdict(Outcome.PASS) if task.position else "no sandbox",
    )
    page = text_of(client.get(f"/s/{done.public_id}/"))
    assert "It covers 2 of 3 tasks, so it takes no rank." in page
    assert "could not grade 2 samples" in page
    assert f'href="/s/{done.public_id}/samples/?outcome=platform"' in page


def test_a_submission_that_the_platform_failed_entirely_has_no_score(
    client: Client, rosa: Any
) -> None:
    done = web_records.submission(web_records.benchmark(), rosa, lambda task, index: "no sandbox")
    page = text_of(client.get(f"/s/{done.public_id}/"))
    assert "no value: no sample is graded" in page
    assert "0.0\N{NO-BREAK SPACE}%" not in page


def test_a_live_submission_polls_and_works_without_scripts(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert f'hx-get="/s/{live.public_id}/progress/"' in page
    assert 'hx-trigger="every 2s"' in page
    assert 'http-equiv="refresh"' not in page
    assert 'href="?refresh=10"' in page
    asked = text_of(client.get(f"/s/{live.public_id}/?refresh=10"))
    assert '<meta http-equiv="refresh" content="10">' in asked
    for odd in ("0", "-1", "x", "²", "9999999"):
        answer = client.get(f"/s/{live.public_id}/?refresh={odd}")
        assert answer.status_code == 200
        assert 'content="0"' not in text_of(answer)


def test_the_fragment_shows_outcomes_and_stops_when_all_is_done(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    url = f"/s/{live.public_id}/progress/"
    fragment = text_of(client.get(url, headers={"HX-Request": "true"}))
    assert "<html" not in fragment
    assert "3 <small>of 6 samples graded" in fragment
    assert "hx-trigger" in fragment
    assert "provisional, not ranked" in fragment

    Submission.objects.update(state="done", finished_at=timezone.now())
    last = client.get(url, headers={"HX-Request": "true"})
    assert last.headers["HX-Refresh"] == "true"
    assert "hx-trigger" not in text_of(client.get(url))


def test_platform_faults_are_told_apart_from_outcomes(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    Sample.objects.filter(state="queued").update(platform_failure="<b>disk full</b>", losses=1)
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert "3 samples met a platform fault" in page
    assert "&lt;b&gt;disk full&lt;/b&gt;" in page
    assert "oc-platform" not in page


def test_a_submission_that_no_worker_takes_says_so(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, lambda task, index: None)
    Chunk.objects.update(state="queued", worker="", token="")
    long_ago = timezone.now() - timedelta(minutes=5)
    Submission.objects.update(created_at=long_ago)
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert "No worker has reported yet." in page
    assert "Next" in page


def test_a_worker_whose_lease_ran_out_is_not_shown_as_running(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    past = timezone.now() - timedelta(minutes=2)
    Chunk.objects.update(lease_until=past)
    Submission.objects.update(heartbeat_at=past)
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert "Running now" not in page
    assert "No worker has reported since" in page


def test_a_live_page_says_that_grading_is_paused_by_whom_and_why(client: Client, rosa: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        return half(task, 0) if index < 2 else None

    live = web_records.submission(web_records.benchmark(tasks=12), rosa, judge, n=4)
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert " left</strong>" in page and "is paused" not in page
    ada = web_records.person("ada", superuser=True)
    queue_control.change(queue_control.Mode.PAUSED, ada, "a <b>new</b> disk")
    Submission.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))
    page = text_of(client.get(f"/s/{live.public_id}/progress/"))
    assert "Grading is paused since" in page and "by ada:" in page
    assert "a &lt;b&gt;new&lt;/b&gt; disk" in page
    assert "no estimate while grading is paused" in page and " left</strong>" not in page
    assert "No worker has reported" not in page
    answer = client.get(f"/api/v1/submissions/{live.public_id}")
    state = answer.json()
    assert state["eta_s"] is None and answer.headers["Retry-After"] == "30"
    assert (state["queue"]["mode"], state["queue"]["by"]) == ("paused", "ada")


def test_a_live_page_says_when_a_worker_was_lost_and_what_was_requeued(client: Client) -> None:
    live = stored_submission(tasks=1, per_task=5, per_chunk=5)
    lease = first_lease(live, "w4-40")
    assert chunks.begin(lease, chunks.queued_samples(lease)[0])
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert "was lost" not in page
    assert re.search(r"w4-40</span> has 5, heartbeat <time[^>]*>(just now|\d s ago)", page)
    age_chunks()
    assert sweep.sweep_once().recovered == 1
    loss = live.worker_losses.get()
    page = text_of(client.get(f"/s/{live.public_id}/progress/"))
    assert "w4-40</span> was lost" in page and "5 samples requeued at" in page
    assert f'<time datetime="{loss.at:%Y-%m-%dT%H:%M:%SZ}">' in page
    state = client.get(f"/api/v1/submissions/{live.public_id}").json()
    assert [(one["worker"], one["samples_requeued"]) for one in state["lost_workers"]] == [
        ("w4-40", 5)
    ]
    assert state["queue"] == {"mode": "running"} and state["workers"] == []


def test_samples_are_listed_by_outcome(client: Client, rosa: Any) -> None:
    done = web_records.submission(web_records.benchmark(), rosa)
    page = text_of(client.get(f"/s/{done.public_id}/samples/?outcome=error"))
    assert "Tidepool/2 · 0" in page
    assert "Tidepool/0 · 0" not in page
    one = text_of(client.get(f"/s/{done.public_id}/samples/?task=Tidepool-0"))
    assert "Remove task Tidepool/0" in one
    assert "Tidepool/1 · 0" not in one
    none = text_of(client.get(f"/s/{done.public_id}/samples/?outcome=platform"))
    assert "No sample matches." in none


@pytest.mark.parametrize(
    "query", ["page=x", "page=-4", "page=999999999999", "outcome=%F0", "task=%22"]
)
def test_odd_queries_are_no_fault(client: Client, rosa: Any, query: str) -> None:
    done = web_records.submission(web_records.benchmark(), rosa)
    assert client.get(f"/s/{done.public_id}/samples/?{query}").status_code == 200
    assert client.get(f"/s/{done.public_id}/?{query}").status_code == 200


def test_a_nul_in_an_address_is_404(client: Client, rosa: Any) -> None:
    done = web_records.submission(web_records.benchmark(), rosa)
    assert client.get(f"/s/{done.public_id}/samples/?outcome=%00").status_code == 404
    assert client.get(f"/s/{done.public_id}/Tidepool%00/0/").status_code == 404


def test_the_owner_cancels_and_what_is_graded_is_kept(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    client.force_login(rosa)
    assert "Cancel grading" in text_of(client.get(f"/s/{live.public_id}/"))
    assert client.get(f"/s/{live.public_id}/cancel/").status_code == 405
    client.post(f"/s/{live.public_id}/cancel/")
    live.refresh_from_db()
    assert live.state == "cancelled"
    page = text_of(client.get(f"/s/{live.public_id}/"))
    assert "3 verdicts are kept and not ranked; 3 samples were never run." in page
    again = client.post(f"/s/{live.public_id}/cancel/", follow=True)
    assert "Nothing to cancel" in text_of(again)


def test_a_stranger_cannot_cancel(client: Client, rosa: Any) -> None:
    live = web_records.submission(web_records.benchmark(), rosa, half)
    assert client.post(f"/s/{live.public_id}/cancel/").status_code == 403
    client.force_login(web_records.person("tom"))
    assert "Cancel grading" not in text_of(client.get(f"/s/{live.public_id}/"))
    assert client.post(f"/s/{live.public_id}/cancel/").status_code == 403
    live.refresh_from_db()
    assert live.state == "grading"


def test_private_pages_are_404_for_others(client: Client, rosa: Any) -> None:
    done = web_records.submission(web_records.benchmark(), rosa, private=True)
    paths = [
        "",
        "progress/",
        "samples/",
        "Tidepool-0/0/",
        "Tidepool-0/0/generation.txt",
        "Tidepool-0/0/program.txt",
        "Tidepool-0/0/case.jsonl",
    ]
    for path in paths:
        assert client.get(f"/s/{done.public_id}/{path}").status_code == 404, path
    assert client.post(f"/s/{done.public_id}/cancel/").status_code == 404
    client.force_login(rosa)
    for path in paths:
        assert client.get(f"/s/{done.public_id}/{path}").status_code == 200, path


@pytest.mark.parametrize("tasks", [3, 12])
def test_the_number_of_queries_does_not_grow(
    client: Client, rosa: Any, tasks: int, django_assert_max_num_queries: Any
) -> None:
    version = web_records.benchmark(tasks=tasks)
    done = web_records.submission(version, rosa)
    live = web_records.submission(version, rosa, half, model="Petrel 9B")
    with django_assert_max_num_queries(5):
        client.get(f"/s/{done.public_id}/")
    with django_assert_max_num_queries(9):
        client.get(f"/s/{live.public_id}/")
    with django_assert_max_num_queries(9):
        client.get(f"/s/{live.public_id}/progress/")
    with django_assert_max_num_queries(4):
        client.get(f"/s/{done.public_id}/samples/?task=Tidepool-0")
