"""The triage pages: who sees them, what they show, and what a decision leaves behind."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from grading.engine.outcome import Failure, Outcome, Trick
from grading.models import CrashGroup, GroupEvent, Sample, TaskFlag
from grading.queries import triage
from tests.grading import web_records
from tests.grading.web_records import page, verdict

pytestmark = pytest.mark.django_db


def erring(task: Any, index: int) -> Any:
    return verdict(Outcome.ERROR)


def error_group(uploader: Any, **shape: Any) -> CrashGroup:
    web_records.submission(web_records.benchmark(), uploader, erring, **shape)
    return CrashGroup.objects.get()


@pytest.mark.parametrize("path", ["", "samples/", "{group}/"])
def test_triage_is_for_staff(client: Client, path: str) -> None:
    rosa = web_records.person("rosa")
    url = "/triage/" + path.format(group=error_group(rosa).public_id)
    assert client.get(url).headers["Location"].startswith("/login/?next=/triage/")
    client.force_login(rosa)
    assert "needs the role triager or benchmark maintainer or admin" in page(client, url, 403)


@pytest.mark.parametrize("path", ["decide/", "{group}/decide/", "{group}/merge/", "{group}/split/"])
def test_decisions_are_for_staff(client: Client, path: str) -> None:
    rosa = web_records.person("rosa")
    group = error_group(rosa)
    client.force_login(rosa)
    data = {"state": "ignored", "group": group.pk, "all": "1"}
    answer = client.post("/triage/" + path.format(group=group.public_id), data)
    assert answer.status_code == 403
    group.refresh_from_db()
    assert group.state == "new"


def test_the_crash_list_leads_here(client: Client, sam: Any) -> None:
    assert client.get("/crashes/").headers["Location"] == "/triage/"
    there = client.get("/crashes/?exception=NameError").headers["Location"]
    assert there == "/triage/samples/?exception=NameError"


def test_a_group_is_counted_and_leads_to_its_samples(client: Client, sam: Any) -> None:
    group = error_group(sam, n=2)
    shown = page(client, "/triage/")
    assert "NameError: message of a error, while loading" in shown
    # Each of six samples is a sixth of its submission's pass@1.
    assert '<td role="cell" class="num" data-label="points">100.00</td>' in shown
    samples = page(client, f"/triage/samples/?group={group.public_id}")
    assert samples.count("/Tidepool-") == 6


def test_private_submissions_have_nothing_at_stake(client: Client, sam: Any) -> None:
    error_group(sam, private=True)
    assert 'data-label="points">0.00</td>' in page(client, "/triage/")


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ("", 8),
        ("kind=exception", 1),
        ("kind=assertion", 3),
        ("task=Tidepool/0", 4),
        ("model=Quillfish 8B", 8),
        ("model=Nobody", 0),
        ("worker=w1-77&tier=bwrap&python=3.11.7", 8),
        ("benchmark=nothing", 0),
        ("q=nameerror", 1),
        ("state=ignored", 0),
        ("assignee=nobody", 8),
        ("sort=models", 8),
        ("sort=nonsense", 8),
    ],
)
def test_filters(client: Client, sam: Any, query: str, groups: int) -> None:
    web_records.submission(web_records.benchmark(), sam, n=5)
    shown = page(client, f"/triage/?{query}")
    assert shown.count('name="group"') == groups
    assert groups or "No group matches these filters." in shown


def test_a_decision_comes_back_to_the_same_list_and_is_written_down(
    client: Client, sam: Any
) -> None:
    group = error_group(sam)
    data = {"group": group.pk, "state": "known_model_failure", "assignee": "sam", "note": "habit"}
    answer = client.post("/triage/decide/?kind=exception&sort=models", data)
    assert answer.headers["Location"] == "/triage/?kind=exception&sort=models"
    group.refresh_from_db()
    assert (group.state, group.assignee) == ("known_model_failure", sam)
    written = GroupEvent.objects.order_by("pk").values_list("kind", "before", "after", "note")
    assert list(written) == [
        ("state", "new", "known model failure", "habit"),
        ("assigned", "nobody", "sam", "habit"),
    ]
    assert {event.by for event in GroupEvent.objects.all()} == {sam}


def test_all_that_match_are_counted_before_they_change(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, n=5)
    asked = client.post("/triage/decide/?kind=assertion", {"all": "1", "state": "ignored"})
    text = asked.content.decode()
    assert "Change 3 groups?" in text
    assert not CrashGroup.objects.exclude(state="new").exists()
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))
    answer = client.post("/triage/decide/", hidden)
    assert answer.headers["Location"] == "/triage/?kind=assertion"
    assert CrashGroup.objects.filter(state="ignored", kind="assertion").count() == 3
    assert CrashGroup.objects.filter(state="ignored").count() == 3


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"state": "escalating"},
        {"state": "nonsense"},
        {"assignee": "rosa"},
        {"state": "ignored", "ignored_until": "-1"},
    ],
)
def test_what_cannot_be_decided_is_refused(client: Client, sam: Any, data: Any) -> None:
    group = error_group(sam)
    web_records.person("rosa")
    for url in ("/triage/decide/", f"/triage/{group.public_id}/decide/"):
        answer = client.post(url, data | {"group": group.pk})
        assert answer.status_code == 422
    group.refresh_from_db()
    assert group.state == "new"
    assert not GroupEvent.objects.exists()


def test_nobody_is_led_off_the_site(client: Client, sam: Any) -> None:
    group = error_group(sam)
    data = {"group": group.pk, "note": "x", "next": "https://elsewhere.example/"}
    assert client.post("/triage/decide/", data).headers["Location"] == "/triage/"


def test_the_queue_is_kept_while_groups_are_worked_on(client: Client, sam: Any) -> None:
    group = error_group(sam)
    queue = page(client, "/triage/?kind=exception")
    address = f"/triage/{group.public_id}/?list=kind%3Dexception"
    assert f'href="{address}"' in queue
    assert 'href="/triage/?kind=exception"' in page(client, address)
    at = f"/triage/{group.public_id}/decide/?list=kind%3Dexception&tab=raw"
    assert client.post(at, {"note": "a"}).headers["Location"] == "/triage/?kind=exception"
    stay = client.post(at, {"note": "a", "stay": "1"}).headers["Location"]
    assert stay == f"/triage/{group.public_id}/?list=kind%3Dexception&tab=raw"


@pytest.mark.parametrize(
    ("tab", "text"),
    [
        ("code", "Program that ran"),
        ("raw", "Ties go to the first"),
        ("targets", "secret argument"),
        ("output", "best so far: 2"),
        ("run", "python -m grading.engine"),
        ("history", "All attempts of this sample"),
        ("notes", "None yet."),
    ],
)
def test_a_sample_is_shown_part_by_part(client: Client, sam: Any, tab: str, text: str) -> None:
    group = error_group(sam)
    shown = page(client, f"/triage/{group.public_id}/?tab={tab}")
    assert text in shown
    assert "Sample 1 of 6" in shown


def test_samples_are_walked_one_model_after_the_other(client: Client, sam: Any) -> None:
    version = web_records.benchmark()
    for model in ("Petrel 9B", "Gannet 22B"):
        web_records.submission(version, sam, erring, model=model)
    url = f"/triage/{CrashGroup.objects.get().public_id}/"
    first, second = page(client, url), page(client, f"{url}?sample=2")
    assert "Tidepool/0 · 0, Gannet 22B" in first and 'href="?sample=2"' in first
    assert "Tidepool/0 · 0, Petrel 9B" in second
    assert "Sample 12 of 12" in page(client, f"{url}?sample=99")
    assert "Sample 1 of 12" in page(client, f"{url}?sample=x")


def test_hostile_text_stays_text(client: Client, sam: Any) -> None:
    told = {
        "exception": '"><script>alert(1)</script>',
        "message": "\u202e<b>'\"",
        "phase": "import",
    }
    web_records.submission(
        web_records.benchmark(),
        sam,
        lambda *_: verdict(Outcome.ERROR, failure=Failure(**told), detail="<script>"),
        text="<script>\ud800\0",
    )
    group = CrashGroup.objects.get()
    for url in ("/triage/", f"/triage/{group.public_id}/?tab=raw", "/triage/samples/"):
        shown = page(client, url)
        assert "<script>alert" not in shown and "\u202e" not in shown


def test_a_platform_failure_has_a_page_without_a_run(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, lambda *_: "no sandbox <b>")
    group = CrashGroup.objects.get()
    for tab in ("code", "targets", "output", "run", "history"):
        shown = page(client, f"/triage/{group.public_id}/?tab={tab}")
        assert "no sandbox &lt;b&gt;" in shown
    assert "Platform?" in shown


def test_merging_is_by_alias_and_can_be_undone(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, n=5)
    error, syntax = (CrashGroup.objects.get(kind=kind) for kind in ("exception", "syntax"))
    client.post(
        f"/triage/{error.public_id}/merge/", {"into": syntax.public_id, "note": "one cause"}
    )
    assert Sample.objects.filter(fingerprint__group=syntax).count() == 6
    web_records.submission(web_records.benchmark("other"), sam, erring, n=1, model="Later model")
    assert Sample.objects.filter(fingerprint__group=syntax).count() == 9
    assert "This group was merged into another." in page(client, f"/triage/{error.public_id}/")
    moved = syntax.fingerprints.get(kind="exception")
    client.post(f"/triage/{syntax.public_id}/split/", {"fingerprint": moved.value})
    own = CrashGroup.objects.get(fingerprints=moved)
    assert own not in (error, syntax)
    assert Sample.objects.filter(fingerprint__group=own).count() == 6
    kinds = list(syntax.events.order_by("pk").values_list("kind", "note"))
    assert kinds == [("merged", "one cause"), ("split", "")]


def test_an_emptied_group_leads_to_where_its_failures_went(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, n=5)
    groups = {kind: CrashGroup.objects.get(kind=kind) for kind in ("exception", "syntax")}
    error, syntax = (f"/triage/{one.public_id}/" for one in groups.values())
    client.post(f"{error}merge/", {"into": groups["syntax"].public_id})
    assert f'href="{syntax}"' in page(client, error)
    client.post(f"{syntax}merge/", {"into": groups["exception"].public_id})
    assert f'href="{error}"' in page(client, syntax)
    assert "was merged into another" not in page(client, error)
    assert list(groups["exception"].merged.all()) == [groups["syntax"]]


@pytest.mark.parametrize("into", ["", "nothing", "{itself}"])
def test_a_merge_with_nothing_changes_nothing(client: Client, sam: Any, into: str) -> None:
    group = error_group(sam)
    client.post(f"/triage/{group.public_id}/merge/", {"into": into.format(itself=group.public_id)})
    assert group.fingerprints.count() == 1
    assert not GroupEvent.objects.exists()


@pytest.mark.parametrize("tasks", [3, 9])
def test_the_number_of_queries_does_not_grow(
    client: Client, sam: Any, tasks: int, django_assert_max_num_queries: Any
) -> None:
    web_records.submission(web_records.benchmark(tasks=tasks), sam, n=5)
    group = CrashGroup.objects.get(kind="exception")
    with django_assert_max_num_queries(18):
        client.get("/triage/")
    with django_assert_max_num_queries(28):
        client.get(f"/triage/{group.public_id}/")


def test_without_failures_the_page_says_so(client: Client, sam: Any) -> None:
    assert "Nothing waits for a decision." in page(client, "/triage/")


def test_signs_of_a_trick_are_shown_and_found(client: Client, sam: Any) -> None:
    def judge(task: Any, index: int) -> Any:
        tricks = [Trick.OWN_COMPARISON] if (task.position, index) == (0, 0) else []
        outcome = Outcome.ASSERTION_FAIL if tricks else Outcome.ERROR
        return verdict(outcome, tricks=tricks)

    made = web_records.submission(web_records.benchmark(), sam, judge)
    assert "own comparison" not in page(client, "/triage/samples/")
    shown = page(client, "/triage/samples/?review=1")
    assert "1 sample match" in shown and '<span class="tag warn">own comparison</span>' in shown
    none = page(client, "/triage/samples/?review=1&outcome=error")
    assert "No failed sample matches" in none
    address = f"/s/{made.public_id}/Tidepool-0/0/"
    assert "<span>own comparison</span>" in page(client, address)
    client.logout()
    assert "own comparison" not in page(client, address)


def test_a_grader_bug_is_told_on_the_page_of_its_task(client: Client, sam: Any) -> None:
    web_records.submission(web_records.benchmark(), sam, lambda *_: verdict(Outcome.ASSERTION_FAIL))
    assert "Under review" not in page(client, "/b/tidepool/tasks/Tidepool-0/")
    group = CrashGroup.objects.get(title__startswith="Tidepool/0")
    client.post(f"/triage/{group.public_id}/decide/", {"state": "grader_bug"})
    client.logout()
    shown = page(client, "/b/tidepool/tasks/Tidepool-0/")
    assert "Under review" in shown and "target 3 raises IndexError" in shown
    # What a program said stays with those who may see it.
    assert " · message of" in group.title and "message of" not in shown
    assert "Under review" not in page(client, "/b/tidepool/tasks/Tidepool-1/")


def test_the_queue_is_filtered_by_flags_of_tasks_and_counts_each_sample_once(
    client: Client, sam: Any
) -> None:
    version = web_records.benchmark(tasks=2)
    web_records.submission(version, sam, lambda task, index: verdict(Outcome.ASSERTION_FAIL))
    TaskFlag.objects.replace(version, {"Tidepool-1": ["suspect", "flaky"]})
    flagged = triage.queue_page(triage.Filters(flag="suspect"), "1").object_list
    assert [(row.title.partition(":")[0], row.samples) for row in flagged] == [("Tidepool/1", 2)]
    assert len(triage.queue_page(triage.Filters(), "1").object_list) == 2
    shown = page(client, "/triage/?flag=suspect")
    assert '<option value="suspect" selected>' in shown
    assert "Tidepool/0" not in shown
