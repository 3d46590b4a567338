"""Storing a file in batches: nobody sees half of it, and nothing of a crash stays."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from evalsite import queueing
from grading import additions, life, storing, sweep, uploads
from grading.models import (
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
)
from grading.permissions import visible_submissions
from tests.grading import web_records

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queueing, "enqueue", lambda *_: None)
    monkeypatch.setattr(queueing, "queued_ids", lambda *_: set())


@pytest.fixture
def version() -> BenchmarkVersion:
    return web_records.benchmark()


@pytest.fixture
def rosa() -> User:
    return web_records.person("rosa")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "BATCH", 2)


def file(samples: int = 4) -> io.BytesIO:
    rows = [
        {"task_id": f"Tidepool/{task}", "generation": web_records.PROGRAM}
        for task in range(3)
        for _ in range(samples)
    ]
    return io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())


def accept(version: BenchmarkVersion, by: User, **more: Any) -> uploads.Accepted:
    return uploads.accept(file(), "file.jsonl", version, "Quillfish 8B", by, **more)


def rows() -> int:
    kinds = (Submission, Chunk, Sample, Generation, LanguageModel)
    return sum(kind._base_manager.count() for kind in kinds)


class Crash(BaseException):
    """The web process ends here, without any clean-up."""


Seen = list[tuple[int, int, int, int]]


@pytest.fixture
def seen(rosa: User, client: Client, small_batches: None, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What its owner sees of a draft after each of its batches."""
    client.force_login(rosa)
    seen: Seen = []
    beat = storing._beat

    def look(draft: Submission) -> None:
        beat(draft)
        assert not connection.in_atomic_block, "a batch holds the lock, not the whole"
        seen.append(
            (
                client.get(f"/s/{draft.public_id}/").status_code,
                visible_submissions(rosa).count(),
                client.get("/queue/").content.count(draft.public_id.encode()),
                client.get("/account/").content.count(draft.public_id.encode()),
            )
        )

    monkeypatch.setattr(storing, "_beat", look)
    return seen


def test_nobody_sees_an_upload_that_is_being_stored(
    version: BenchmarkVersion, rosa: User, client: Client, seen: Seen
) -> None:
    made = accept(version, rosa).submission
    assert set(seen) == {(404, 0, 0, 0)}
    assert len(seen) == 12
    assert client.get(f"/s/{made.public_id}/").status_code == 200
    assert Sample.objects.filter(submission=made, chunk__state="queued").count() == 12


def test_nobody_sees_an_addition_that_is_being_stored(
    version: BenchmarkVersion, rosa: User, seen: Seen
) -> None:
    made = accept(version, rosa).submission
    seen.clear()
    added = additions.add(made, file(2), "more.jsonl", rosa)
    assert added.created
    assert set(seen) == {(404, 1, 0, 0)}
    assert len(seen) == 6
    numbers = list(range(6))
    for task in version.tasks.all():
        mine = Sample.objects.filter(submission=made, task=task).order_by("index")
        assert list(mine.values_list("index", flat=True)) == numbers
    chunks = Chunk.objects.filter(submission=made).order_by("position")
    assert list(chunks.values_list("position", flat=True)) == list(range(len(chunks)))
    assert Sample.objects.filter(chunk__in=chunks).count() == 18
    assert Submission.everything.count() == 1


@contextmanager
def crashing_at(batch: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    beats = iter(range(100))

    def crash(_: Submission) -> None:
        if next(beats) == batch:
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(storing, "_beat", crash)
        patched.setattr(life, "remove", nothing)
        with pytest.raises(Crash):
            yield


@pytest.fixture
def crashed(
    version: BenchmarkVersion, rosa: User, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> Submission:
    """What an upload left behind whose process ended in the middle of it."""
    with crashing_at(8, monkeypatch):
        accept(version, rosa)
    return Submission.everything.get()


def test_what_a_crash_left_goes_with_the_sweep(crashed: Submission) -> None:
    assert Generation.objects.count() == 6
    sweep.sweep_once()
    assert Submission.everything.count() == 1, "it may still be at work"
    silence()
    sweep.sweep_once()
    assert rows() == 0


def test_the_file_can_be_sent_again_after_a_crash(
    crashed: Submission, version: BenchmarkVersion, rosa: User
) -> None:
    again = accept(version, rosa)
    assert again.created
    assert again.submission.pk != crashed.pk
    assert Submission.objects.get().samples.count() == 12


def test_an_addition_can_be_sent_again_after_a_crash(
    version: BenchmarkVersion, rosa: User, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = accept(version, rosa).submission
    before = rows()
    with crashing_at(4, monkeypatch):
        additions.add(made, file(2), "more.jsonl", rosa)
    made.refresh_from_db()
    assert (made.sample_count, made.samples.count()) == (12, 12)
    assert additions.add(made, file(2), "more.jsonl", rosa).created
    assert made.samples.count() == 18
    silence()
    sweep.sweep_once()
    added = {Chunk: 1, Sample: 6, Generation: 6}
    assert rows() == before + sum(added.values())


def silence() -> None:
    old = timezone.now() - storing.ABANDONED_AFTER - timedelta(seconds=1)
    hidden = Submission.everything.filter(state__in=["storing", "removing"])
    hidden.update(heartbeat_at=old)


@pytest.mark.parametrize("removed", ["whole", "in part", "not yet"])
@pytest.mark.parametrize("ending", ["publish", "join"])
def test_a_draft_that_the_sweep_removes_is_never_seen(
    ending: str,
    removed: str,
    version: BenchmarkVersion,
    rosa: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its process slept for long, and wakes when the sweep has taken it for dead."""
    made = accept(version, rosa).submission
    before = rows()
    end = getattr(storing, ending)

    def late(draft: Submission, *rest: Any) -> None:
        silence()
        with monkeypatch.context() as patched:
            if removed != "whole":
                patched.setattr(life, "remove_some", some if removed == "in part" else nothing)
            storing.remove_abandoned()
        storing._beat(draft)
        end(draft, *rest)

    monkeypatch.setattr(storing, ending, late)
    with pytest.raises(Submission.DoesNotExist):
        if ending == "publish":
            uploads.accept(file(2), "file.jsonl", version, "Quillfish 8B", rosa)
        else:
            additions.add(made, file(2), "more.jsonl", rosa)
    silence()
    storing.remove_abandoned()
    made.refresh_from_db()
    assert (rows(), made.sample_count, made.samples.count()) == (before, 12, 12)


def some(draft: Submission) -> None:
    Generation.objects.filter(sample__submission=draft).delete()


def nothing(_: Submission) -> None:
    pass


def test_the_same_file_sent_twice_at_once_is_one_submission(
    version: BenchmarkVersion, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, first = storing.fill, []

    def overtaken(*arguments: Any) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(queueing, "enqueue", lambda *_: None)
        first.append(accept(version, rosa))
        fill(*arguments)

    monkeypatch.setattr(storing, "fill", overtaken)
    second = accept(version, rosa)
    assert (first[0].created, second.created) == (True, False)
    assert second.submission == first[0].submission
    assert Submission.everything.count() == 1
    assert Sample.objects.count() == 12
