"""Adding samples to a submission: numbering, twice the same file, races, and what undoes it."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from grading import additions, chunks, life, quotas, storing, tokens, uploads, verdicts
from grading.accounts.roles import Role
from grading.engine.outcome import Outcome
from grading.intake import caps
from grading.models import (
    Addition,
    Attempt,
    BenchmarkVersion,
    Chunk,
    Generation,
    Sample,
    Submission,
    TaskScore,
)
from grading.queries import progress as progress_queries
from tests.grading import web_records

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_broker")]


@pytest.fixture
def version() -> BenchmarkVersion:
    return web_records.benchmark()


@pytest.fixture
def rosa(client: Client) -> User:
    person = web_records.person("rosa")
    client.force_login(person)
    return person


@pytest.fixture
def done(version: BenchmarkVersion, rosa: User) -> Submission:
    """Two samples of each of the three tasks, all graded."""
    return web_records.submission(version, rosa)


def file(*tasks: int, **more: Any) -> bytes:
    rows = [
        {"task_id": f"Tidepool/{task}", "generation": f"# {n}\n{web_records.PROGRAM}"} | more
        for n, task in enumerate(tasks)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def add(to: Submission, content: bytes, **more: Any) -> uploads.Accepted:
    return additions.add(to, io.BytesIO(content), "more.jsonl", to.uploader, **more)


def indexes(of: Submission) -> list[tuple[int, int, str]]:
    rows = Sample.objects.filter(submission=of).order_by("task__position", "index")
    return list(rows.values_list("task__position", "index", "state"))


def grade(submission: Submission, outcome: Outcome = Outcome.PASS) -> int:
    """Grade all that is queued, as a worker does; how many samples that was."""
    graded = 0
    while queued := Chunk.objects.filter(submission=submission, state="queued").first():
        lease = chunks.take(queued.pk, "w1-77")
        assert lease is not None
        for pk in chunks.queued_samples(lease):
            graded += verdicts.record(pk, lease.token, web_records.verdict(outcome), "w1-77")
        chunks.finish(lease)
    return graded


def test_new_samples_get_the_next_indexes_and_only_they_are_graded(done: Submission) -> None:
    before = set(Attempt.objects.values_list("pk", flat=True))
    added = add(done, file(0, 2, 0, 0))
    assert added.created
    assert added.submission.state == "grading"
    assert added.submission.sample_count == 10
    assert added.submission.finished_at is None
    assert [row for row in indexes(done) if row[2] == "queued"] == [
        (0, 2, "queued"),
        (0, 3, "queued"),
        (0, 4, "queued"),
        (2, 2, "queued"),
    ]
    texts = Generation.objects.filter(sample__submission=done, sample__task__position=0)
    assert [text[:3] for text in texts.order_by("sample__index").values_list("text", flat=True)][
        2:
    ] == ["# 0", "# 2", "# 3"]
    assert grade(done) == 4
    done.refresh_from_db()
    assert (done.state, done.finished_at is None) == ("done", False)
    assert len(set(Attempt.objects.values_list("pk", flat=True)) - before) == 4
    counts = TaskScore.objects.filter(submission=done).order_by("task__position")
    assert list(counts.values_list("n", flat=True)) == [5, 2, 3]
    one = Addition.objects.get()
    assert (one.sample_count, one.by, one.reopened) == (4, done.uploader, True)


def test_the_file_s_own_numbers_give_the_order(done: Submission) -> None:
    rows = [
        {"task_id": "Tidepool/1", "generation": f"# {sample}", "sample": sample}
        for sample in (7, 0, 3)
    ]
    add(done, "".join(json.dumps(row) + "\n" for row in rows).encode())
    found = Generation.objects.filter(sample__task__position=1).order_by("sample__index")
    assert list(found.values_list("text", flat=True))[2:] == ["# 0", "# 3", "# 7"]
    assert indexes(done)[4:7] == [(1, 2, "queued"), (1, 3, "queued"), (1, 4, "queued")]


def test_a_run_with_missing_tasks_becomes_complete(version: BenchmarkVersion, rosa: User) -> None:
    made = uploads.accept(
        io.BytesIO(file(0, 1)), "part.jsonl", version, "Quillfish 8B", rosa
    ).submission
    grade(made)
    report, after = additions.check(io.BytesIO(file(2)), "rest.jsonl", made)
    assert (report.samples, report.missing_count) == (1, 2)
    assert (after.samples, after.tasks_covered, after.missing_count) == (3, 3, 0)
    assert (after.n_min, after.n_max) == (1, 1)
    assert add(made, file(2)).created
    grade(made)
    assert TaskScore.objects.filter(submission=made, n=1).count() == 3


def test_the_same_file_is_added_once(version: BenchmarkVersion, rosa: User) -> None:
    made = uploads.accept(
        io.BytesIO(file(0, 1)), "part.jsonl", version, "Quillfish 8B", rosa
    ).submission
    assert not add(made, file(0, 1)).created, "it is the submission's own file"
    assert add(made, file(2)).created
    again = add(made, file(2))
    assert (again.created, again.submission.sample_count) == (False, 3)
    assert additions.check(io.BytesIO(file(2)), "more.jsonl", made)[1].known
    read_otherwise = additions.Choices(reading="completion")
    assert add(made, file(2), choices=read_otherwise).created


def test_bad_files_and_bad_lines(done: Submission) -> None:
    content = file(0) + b'{"task_id": "Tidepool/99", "generation": ""}\n'
    with pytest.raises(uploads.UploadRejected, match="unknown task"):
        add(done, content)
    done.refresh_from_db()
    assert (done.state, done.sample_count) == ("done", 6)
    assert add(done, content, good_lines_only=True).created
    assert Addition.objects.get().lines_left_out == 1


def withdrawn(made: Submission) -> None:
    life.withdraw(made)


def cancelled(made: Submission) -> None:
    Submission.objects.filter(pk=made.pk).update(state="cancelled")


def deleted(made: Submission) -> None:
    life.delete(Submission.objects.get(pk=made.pk))


@pytest.mark.parametrize("ended", [withdrawn, cancelled, deleted])
def test_nothing_is_added_to_what_has_ended(done: Submission, ended: Any) -> None:
    ended(done)
    with pytest.raises(additions.Refused, match=ended.__name__):
        add(done, file(0))
    assert not Addition.objects.exists()
    assert not Sample.objects.filter(state="queued").exists()


def test_a_task_has_only_so_many_samples(done: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caps, "MAX_SAMPLE_INDEX", 3)
    assert add(done, file(0, 0)).created
    with pytest.raises(additions.Refused, match="Tidepool/0 would have 5 samples"):
        add(done, file(0))


def test_a_failure_while_adding_leaves_all_as_it_was(
    done: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Submission) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(chunks, "start", fail)
    before = indexes(done)
    with pytest.raises(OSError, match="no broker"):
        add(done, file(0, 1, 2))
    done.refresh_from_db()
    assert (done.state, done.sample_count, indexes(done)) == ("done", 6, before)
    assert Chunk.objects.filter(submission=done).count() == 1
    assert Generation.objects.count() == 6


# --- races ----------------------------------------------------------------------------------------


def running(version: BenchmarkVersion, rosa: User) -> tuple[Submission, chunks.Lease]:
    """A submission with one sample, and the worker that grades it."""
    made = uploads.accept(
        io.BytesIO(file(0)), "one.jsonl", version, "Quillfish 8B", rosa
    ).submission
    lease = chunks.take(made.chunks.get().pk, "w1-77")
    assert lease is not None
    return made, lease


def decide(lease: chunks.Lease) -> None:
    for pk in chunks.queued_samples(lease):
        assert verdicts.record(pk, lease.token, web_records.verdict(Outcome.PASS), "w1-77")


def test_adding_while_it_is_graded(version: BenchmarkVersion, rosa: User) -> None:
    made, lease = running(version, rosa)
    add(made, file(1, 2))
    assert not Addition.objects.get().reopened
    decide(lease)
    chunks.finish(lease)
    made.refresh_from_db()
    assert made.state == "grading", "what was added is not graded yet"
    assert grade(made) == 2
    made.refresh_from_db()
    assert (made.state, made.sample_count) == ("done", 3)


def test_adding_just_after_the_last_verdict(
    version: BenchmarkVersion, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was checked while the submission ran, and it closed before the file was stored."""
    made, lease = running(version, rosa)
    locked = additions._locked

    def late(submission: Submission) -> Submission:
        decide(lease)
        chunks.finish(lease)
        assert Submission.objects.get(pk=made.pk).state == "done"
        return locked(submission)

    monkeypatch.setattr(additions, "_locked", late)
    assert add(made, file(1)).submission.state == "grading"
    assert Addition.objects.get().reopened
    assert grade(made) == 1
    assert Submission.objects.get(pk=made.pk).state == "done"


def test_closing_waits_for_what_is_being_added(
    version: BenchmarkVersion, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker found nothing left, and waits for the lock that the adding holds."""
    made, lease = running(version, rosa)
    decide(lease)
    lock = chunks._lock_submission

    def after_the_adding(pk: int) -> None:
        monkeypatch.setattr(chunks, "_lock_submission", lock)
        add(made, file(1))
        lock(pk)

    monkeypatch.setattr(chunks, "_lock_submission", after_the_adding)
    assert not chunks.close_if_graded(made.pk)
    assert Submission.objects.get(pk=made.pk).state == "grading"


def test_cancelling_stops_what_was_added_at_that_moment(
    version: BenchmarkVersion, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = running(version, rosa)
    lock = chunks._lock_submission

    def after_the_adding(pk: int) -> None:
        monkeypatch.setattr(chunks, "_lock_submission", lock)
        add(made, file(1, 2))
        lock(pk)

    monkeypatch.setattr(chunks, "_lock_submission", after_the_adding)
    assert chunks.cancel_submission(made) == 3
    assert {state for _, _, state in indexes(made)} == {"cancelled"}


def test_withdrawing_stops_what_was_added_meanwhile(done: Submission) -> None:
    """The page was loaded before, when nothing was being graded."""
    add(done, file(0))
    assert done.state == "done"
    life.withdraw(done)
    assert not Sample.objects.filter(state="queued").exists()
    assert not Submission.objects.filter(state="grading").exists()


def test_the_second_of_two_equal_files_at_once_adds_nothing(
    done: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = additions._locked

    def overtaken(submission: Submission) -> Submission:
        monkeypatch.setattr(additions, "_locked", locked)
        assert add(done, file(0, 1)).created
        return locked(submission)

    monkeypatch.setattr(additions, "_locked", overtaken)
    assert not add(done, file(0, 1)).created
    assert Submission.objects.get().sample_count == 8


# --- while it runs --------------------------------------------------------------------------------


def test_cancelling_takes_away_what_was_added_and_not_graded(done: Submission) -> None:
    add(done, file(0, 1, 2))
    lease = chunks.take(Chunk.objects.get(state="queued").pk, "w1-77")
    assert lease is not None
    first, *rest = chunks.queued_samples(lease)
    assert verdicts.record(first, lease.token, web_records.verdict(Outcome.PASS), "w1-77")
    assert chunks.cancel_submission(done) == 2
    done.refresh_from_db()
    assert (done.state, done.sample_count, done.cancelled_by) == ("done", 7, None)
    assert done.finished_at is not None
    assert Addition.objects.get().sample_count == 1
    assert not verdicts.record(rest[0], lease.token, web_records.verdict(Outcome.PASS), "w1-77")
    assert list(TaskScore.objects.order_by("task__position").values_list("n", flat=True)) == [
        3,
        2,
        2,
    ]


def test_the_forecast_counts_from_the_adding(done: Submission) -> None:
    """An old run's verdicts say nothing of how fast the new samples go."""
    Attempt.objects.update(created_at=timezone.now() - timedelta(days=30))
    Submission.objects.update(heartbeat_at=timezone.now() - timedelta(days=30))
    found = progress_queries.progress(add(done, file(0, 1)).submission)
    assert (found.rate, found.silent, found.left) == (None, False, 2)


def test_an_old_submission_waits_behind_younger_ones(
    done: Submission, version: BenchmarkVersion, rosa: User, client: Client
) -> None:
    uploads.accept(io.BytesIO(file(1)), "b.jsonl", version, "Kea 1B", rosa)
    again = add(done, file(0, 1)).submission
    assert progress_queries.progress(again).ahead_samples == 1
    page = client.get("/queue/").content.decode()
    assert page.index("Kea 1B") < page.index("Quillfish 8B")


# --- page -----------------------------------------------------------------------------------------


def send(client: Client, to: Submission, content: bytes = b"", **fields: Any) -> Any:
    if content:
        upload = io.BytesIO(content)
        upload.name = "more.jsonl"
        fields["file"] = upload
    return client.post(f"/s/{to.public_id}/add/", fields)


def test_the_page_reports_first_and_adds_when_told(client: Client, done: Submission) -> None:
    assert f"/s/{done.public_id}/add/" in client.get(f"/s/{done.public_id}/").content.decode()
    checked = send(client, done, file(0, 1))
    page = checked.content.decode()
    assert checked.status_code == 200
    assert "With this file the submission has 8 samples" in page
    assert "2 to 3 for each of 3 of 3 tasks" in page
    assert "takes no rank" not in page
    assert "no sample</strong>, such as" not in page
    assert Submission.objects.get().sample_count == 6
    staged = checked.context["staged"].token
    report = client.get(f"/submit/{staged}/report.json?{checked.context['query']}").json()
    assert report["after"]["samples"] == 8
    queued = send(client, done, do="queue", staged=staged)
    assert queued.headers["Location"] == f"/s/{done.public_id}/"
    live = client.get(f"/s/{done.public_id}/").content.decode()
    assert "Samples were added to a graded submission" in live
    grade(done)
    page = client.get(f"/s/{done.public_id}/").content.decode()
    assert "2 from more.jsonl" in page
    again = client.get(send(client, done, file(0, 1), do="queue").headers["Location"])
    assert "nothing was added" in again.content.decode()


def test_the_page_names_bad_lines_and_takes_the_good_ones(client: Client, done: Submission) -> None:
    content = file(0) + b'{"task_id": "Tidepool/99", "generation": ""}\n'
    refused = send(client, done, content, do="queue")
    assert (refused.status_code, "unknown task" in refused.content.decode()) == (422, True)
    token, query = refused.context["staged"].token, refused.context["query"]
    table = b"".join(client.get(f"/submit/{token}/errors.csv?{query}")).decode()
    assert "Tidepool/99" in table
    send(client, done, staged=token, good_lines_only="1")
    assert Submission.objects.get().sample_count == 7


def test_the_page_says_what_is_missing(client: Client, done: Submission) -> None:
    answer = send(client, done)
    assert (answer.status_code, "Choose a file." in answer.content.decode()) == (422, True)
    gone = send(client, done, staged="0" * 32)
    assert "no longer kept" in gone.content.decode()


def test_the_page_says_why_nothing_can_be_added(client: Client, done: Submission) -> None:
    life.withdraw(done)
    answer = client.get(f"/s/{done.public_id}/add/", follow=True)
    assert "It is withdrawn, so nothing can be added" in answer.content.decode()
    assert "/add/" not in answer.content.decode()


def test_a_task_that_is_full_is_told_on_the_page(
    client: Client, done: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caps, "MAX_SAMPLE_INDEX", 1)
    answer = send(client, done, file(0), do="queue")
    assert answer.status_code == 422
    assert "Tidepool/0 would have 3 samples" in answer.content.decode()


def test_adding_is_for_the_owner_and_admins(client: Client, done: Submission) -> None:
    for name, role, status in (
        ("stranger", None, 403),
        ("maintainer", Role.MAINTAINER, 403),
        ("admin", Role.ADMIN, 200),
    ):
        client.force_login(web_records.person(name, role=role))
        assert send(client, done, file(0)).status_code == status, name


def test_the_report_of_another_s_file_is_not_to_be_had(client: Client, done: Submission) -> None:
    checked = send(client, done, file(0))
    token, query = checked.context["staged"].token, checked.context["query"]
    client.force_login(web_records.person("stranger"))
    assert client.get(f"/submit/{token}/report.json?{query}").status_code == 404
    for bad in ("", "benchmark=x", "benchmark=99999999", "submission=none"):
        client.force_login(done.uploader)
        assert client.get(f"/submit/{token}/report.json?{bad}").status_code == 404, bad


# --- API ------------------------------------------------------------------------------------------


def call(client: Client, to: Submission, content: bytes, query: str = "", **more: Any) -> Any:
    secret, _ = tokens.make(more.pop("user", to.uploader), "t", ["read", "submit"])
    return client.post(
        f"/api/v1/submissions/{to.public_id}/samples?{query}",
        content,
        content_type="application/octet-stream",
        headers={"Authorization": f"Bearer {secret}"} | more,
    )


def test_samples_are_added_by_the_api(client: Client, done: Submission) -> None:
    dry = call(client, done, file(0, 1), "dry_run=true").json()
    assert (dry["samples"], dry["after"]["samples"], dry["after"]["n_max"]) == (2, 8, 3)
    answer = call(client, done, file(0, 1), "file_name=more.jsonl")
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["samples"]) == ("grading", 8)
    assert answer.headers["Location"].endswith(f"/api/v1/submissions/{done.public_id}")
    assert call(client, done, file(0, 1)).status_code == 200
    bad = call(client, done, b"{}\n")
    assert (bad.status_code, bad.json()["report"]["problem_count"]) == (422, 1)
    assert Submission.objects.get().sample_count == 8


def test_the_api_says_why_nothing_can_be_added(client: Client, done: Submission) -> None:
    stranger = web_records.person("stranger")
    assert call(client, done, file(0), user=stranger).status_code == 403
    life.withdraw(done)
    answer = call(client, done, file(0))
    assert answer.status_code == 409
    assert answer.json()["title"] == "nothing can be added"
    assert "withdrawn" in answer.json()["detail"]


def test_a_key_belongs_to_one_submission(
    client: Client, done: Submission, version: BenchmarkVersion
) -> None:
    other = web_records.submission(version, done.uploader, model="Kea 1B")
    key = {"Idempotency-Key": "night 7"}
    assert call(client, done, file(0), **key).status_code == 202
    assert call(client, done, file(0), **key).status_code == 200
    assert call(client, other, file(0), **key).status_code == 422


def test_texts_are_stored_in_one_transaction(
    done: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between two batches leaves nothing, for the transaction was never committed."""
    monkeypatch.setattr(storing, "BATCH", 1)
    beat, beats = storing._beat, []

    def crash(submission: Submission) -> None:
        beats.append(1)
        beat(submission)
        if len(beats) == 4:
            raise SystemExit

    monkeypatch.setattr(storing, "_beat", crash)
    with pytest.raises(SystemExit):
        add(done, file(0, 1, 2))
    assert Generation.objects.count() == Sample.objects.count() == 6


# --- quotas ---------------------------------------------------------------------------------------


def test_what_is_added_to_an_older_submission_is_of_today(
    client: Client, done: Submission, settings: Any
) -> None:
    settings.QUOTA_SAMPLES = 4
    Submission.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert add(done, file(0, 1, 2)).created
    with pytest.raises(quotas.QuotaExceeded, match="1 of 4 left today"):
        add(done, file(0, 1))
    assert Submission.objects.get().sample_count == 9
    answer = send(client, done, file(0, 1), do="queue")
    assert (answer.status_code, "1 of 4 left today" in answer.content.decode()) == (429, True)
    assert "Queue for grading" not in answer.content.decode()
    told = call(client, done, file(0, 1))
    assert (told.status_code, told.json()["title"]) == (429, "quota used up")
    assert not add(done, file(0, 1, 2)).created, "the same file takes nothing"


def test_what_was_added_and_cancelled_unseen_used_nothing(done: Submission, settings: Any) -> None:
    settings.QUOTA_SAMPLES = 3
    Submission.objects.update(created_at=timezone.now() - timedelta(days=2))
    add(done, file(0, 1, 2))
    chunks.cancel_submission(done)
    assert not Addition.objects.exists()
    assert add(done, file(0, 1, 2)).created, "and the file can be added again"
