"""Storing an upload in batches: nobody sees half of it, and nothing of a crash stays."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from evalsite import queueing
from grading import storing, sweep, uploads
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


def test_nobody_sees_an_upload_that_is_being_stored(
    version: BenchmarkVersion,
    rosa: User,
    client: Client,
    small_batches: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.force_login(rosa)
    seen = []
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
    made = accept(version, rosa).submission
    assert set(seen) == {(404, 0, 0, 0)}
    assert len(seen) == 12
    assert client.get(f"/s/{made.public_id}/").status_code == 200
    assert Sample.objects.filter(submission=made, chunk__state="queued").count() == 12


@pytest.fixture
def crashed(
    version: BenchmarkVersion, rosa: User, small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Submission]:
    """What an upload left behind whose process ended in the middle of it."""
    beats = iter(range(100))

    def crash(draft: Submission) -> None:
        if next(beats) == 8:
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(storing, "_beat", crash)
        patched.setattr(storing, "discard", lambda _: None)
        with pytest.raises(Crash):
            accept(version, rosa)
    yield Submission.everything.get()


def test_what_a_crash_left_goes_with_the_sweep(crashed: Submission) -> None:
    assert Generation.objects.count() == 6
    sweep.sweep_once()
    assert Submission.everything.count() == 1, "it may still be at work"
    old = timezone.now() - storing.ABANDONED_AFTER - timedelta(seconds=1)
    Submission.everything.update(heartbeat_at=old)
    sweep.sweep_once()
    assert rows() == 0


def test_the_file_can_be_sent_again_after_a_crash(
    crashed: Submission, version: BenchmarkVersion, rosa: User
) -> None:
    again = accept(version, rosa)
    assert again.created
    assert again.submission.pk != crashed.pk
    assert Submission.objects.get().samples.count() == 12


def test_a_draft_that_was_removed_is_never_published(
    version: BenchmarkVersion, rosa: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = storing.publish

    def late(draft: Submission) -> None:
        Submission.everything.update(heartbeat_at=timezone.now() - timedelta(days=1))
        storing.remove_abandoned()
        publish(draft)

    monkeypatch.setattr(storing, "publish", late)
    with pytest.raises(Submission.DoesNotExist):
        accept(version, rosa)
    assert rows() == 0


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
