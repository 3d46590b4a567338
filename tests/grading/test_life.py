"""A submission after its upload: shown, hidden, cancelled, withdrawn, deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from grading import chunks, life, storing, verdicts
from grading.engine.outcome import Extraction
from grading.engine.program import Program
from grading.models import Attempt, LanguageModel, Sample, Submission
from tests.grading import web_records
from tests.grading.pipeline_records import first_lease, stored_submission

pytestmark = pytest.mark.django_db


@pytest.fixture
def rosa(client: Client) -> User:
    user = web_records.person("rosa")
    client.force_login(user)
    return user


def url(name: str, made: Submission) -> str:
    return reverse(name, args=[made.public_id])


def sample_url(name: str, made: Submission) -> str:
    return reverse(name, args=[made.public_id, "Tidepool-0", 0])


def test_an_unlisted_submission_is_reached_by_its_link_alone(client: Client, rosa: User) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    client.post(url("submission-visibility", made), {"visibility": "unlisted"})
    stranger = Client()
    assert stranger.get(url("submission", made)).status_code == 200
    assert "Quillfish" not in stranger.get(reverse("board", args=["tidepool"])).content.decode()
    client.post(url("submission-visibility", made), {"visibility": "private"})
    assert stranger.get(url("submission", made)).status_code == 404


def test_hidden_generations_leave_outcomes_to_be_seen(client: Client, rosa: User) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    client.post(
        url("submission-visibility", made), {"visibility": "public", "generations_hidden": "on"}
    )
    stranger = Client()
    page = stranger.get(sample_url("sample", made))
    assert "no text of a generation" in page.content.decode()
    assert "best = items" not in page.content.decode()
    for name in ("sample-generation", "sample-program", "sample-case"):
        assert stranger.get(sample_url(name, made)).status_code == 404
        assert client.get(sample_url(name, made)).status_code == 200
    for name in ("human-eval-results", "evalplus-results"):
        assert stranger.get(url(name, made)).status_code == 404
        assert client.get(url(name, made)).status_code == 200
    assert "detail of" not in stranger.get(url("submission-samples", made)).content.decode()
    api = f"/api/v1/submissions/{made.public_id}"
    assert stranger.get(f"{api}/results/Tidepool-0/0").status_code == 403
    assert "detail of" not in stranger.get(f"{api}/results").content.decode()
    assert "detail of" not in b"".join(stranger.get(f"{api}/results.jsonl")).decode()
    assert "best = items" in client.get(sample_url("sample", made)).content.decode()


def test_who_cancelled_is_on_record(client: Client, rosa: User) -> None:
    made = web_records.submission(web_records.benchmark(), rosa, lambda task, index: None)
    client.post(url("submission-cancel", made))
    page = client.get(url("submission", made)).content.decode()
    assert "by rosa" in page
    made.refresh_from_db()
    assert (made.state, made.cancelled_by) == ("cancelled", rosa)


def test_a_withdrawn_submission_leaves_lists_and_cannot_come_back(
    client: Client, rosa: User
) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    client.post(url("submission-withdraw", made))
    assert "Quillfish" not in client.get(reverse("board", args=["tidepool"])).content.decode()
    assert "Withdrawn at" in Client().get(url("submission", made)).content.decode()
    refused = client.post(url("submission-visibility", made), {"visibility": "public"})
    assert refused.status_code == 422
    made.refresh_from_db()
    assert made.visibility == "unlisted"


def test_withdrawing_stops_what_is_being_graded(client: Client, rosa: User) -> None:
    made = web_records.submission(
        web_records.benchmark(), rosa, lambda task, index: None, private=True
    )
    client.post(url("submission-withdraw", made))
    made.refresh_from_db()
    assert (made.state, made.visibility) == ("cancelled", "private")


def test_deleting_leaves_nothing_behind(client: Client, rosa: User) -> None:
    version = web_records.benchmark()
    before = {model: model.objects.count() for model in apps.get_app_config("grading").get_models()}
    made = web_records.submission(version, rosa)
    refused = client.post(url("submission-delete", made), {"confirm": "yes"})
    assert refused.status_code == 422
    assert (
        client.post(url("submission-delete", made), {"confirm": made.public_id}).status_code == 302
    )
    after = {model: model.objects.count() for model in before}
    # What a crash was grouped by says nothing of whose it was; that a quota was used, nothing of
    # what was sent.
    left = {model.__name__ for model in before if after[model] != before[model]}
    assert left <= {"CrashGroup", "Fingerprint", "GroupEvent", "DeletedUse"}
    assert not LanguageModel.objects.exists()
    assert client.get(url("submission", made)).status_code == 404


def test_deleting_goes_a_batch_at_a_time_and_is_seen_by_nobody(
    client: Client, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    monkeypatch.setattr(life, "REMOVED_AT_ONCE", 2)
    some, left = life.remove_some, []

    def look(hidden: Submission) -> bool:
        left.append(Sample.objects.filter(submission=hidden).count())
        assert client.get(url("submission", made)).status_code == 404
        assert client.get(sample_url("sample", made)).status_code == 404
        for name, arguments in (("account", []), ("board", ["tidepool"]), ("queue", [])):
            page = client.get(reverse(name, args=arguments)).content.decode()
            assert made.public_id not in page
        return some(hidden)

    monkeypatch.setattr(life, "remove_some", look)
    client.post(url("submission-delete", made), {"confirm": made.public_id})
    assert left == [6, 4, 2, 0]
    assert not Submission.everything.exists()


def test_the_sweep_ends_a_deletion_that_a_crash_cut_short(
    client: Client, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    monkeypatch.setattr(life, "REMOVED_AT_ONCE", 2)
    with monkeypatch.context() as patched:
        patched.setattr(life, "remove", life.remove_some)
        life.delete(made)
    assert Sample.objects.count() == 4
    storing.remove_abandoned()
    assert Sample.objects.count() == 4, "it may still be at work"
    old = timezone.now() - storing.ABANDONED_AFTER - timedelta(seconds=1)
    Submission.everything.update(heartbeat_at=old)
    for _ in range(3):
        storing.remove_abandoned()
    assert not Submission.everything.exists()
    assert not LanguageModel.objects.exists()
    assert not Attempt.objects.exists()


def test_a_known_language_model_outlives_its_submission(client: Client, rosa: User) -> None:
    made = web_records.submission(web_records.benchmark(), rosa)
    LanguageModel.objects.update(organisation="Fishery")
    client.post(url("submission-delete", made), {"confirm": made.public_id})
    assert LanguageModel.objects.exists()


def test_verdicts_that_others_share_find_a_new_run(client: Client, rosa: User) -> None:
    version = web_records.benchmark(tasks=1)
    first = web_records.submission(version, rosa, n=1)
    run = Attempt.objects.get()
    other = web_records.submission(version, rosa, lambda task, index: None, n=3)
    lease = chunks.Lease(other.chunks.get().pk, other.pk, web_records.TOKEN, "w1")
    repeat = verdicts.Repeat(run, Program(web_records.PROGRAM, Extraction("whole", None, 0)))
    verdicts.repeat(lease, {sample.pk: repeat for sample in other.samples.all()})
    client.post(url("submission-delete", first), {"confirm": first.public_id})
    heir, *rest = Attempt.objects.order_by("pk")
    assert heir.repeats is None
    assert [attempt.repeats for attempt in rest] == [heir, heir]
    assert heir.text.program == web_records.PROGRAM
    assert {attempt.outcome for attempt in (heir, *rest)} == {run.outcome}


def test_what_a_worker_has_in_hand_of_a_deleted_submission_ends_unrecorded() -> None:
    submission = stored_submission(tasks=1, per_task=2, per_chunk=2)
    lease = first_lease(submission)
    sample_id = chunks.queued_samples(lease)[0]
    assert chunks.begin(lease, sample_id)
    life.delete(submission)
    assert not chunks.renew(lease)
    assert not verdicts.record_platform_failure(sample_id, lease.token, "late")
    assert not verdicts.record(
        sample_id, lease.token, web_records.verdict(web_records.Outcome.PASS), lease.worker
    )
    chunks.finish(lease)
    assert not Sample.objects.exists()
