"""Who may grade which samples, and what happens to a chunk whose worker is lost."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import redis
from django.db import connection, transaction
from django.utils import timezone

from evalsite import queueing
from grading import chunks, verdicts
from grading.models import Attempt, Chunk, Sample, Submission
from tests.grading.pipeline_records import first_lease, stored_submission, verdict

pytestmark = pytest.mark.django_db


def states(submission: Submission) -> list[str]:
    return list(submission.chunks.order_by("position").values_list("state", flat=True))


def expire(lease: chunks.Lease) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Chunk.objects.filter(pk=lease.chunk_id).update(lease_until=past)


def test_only_a_few_chunks_of_a_submission_are_in_the_queue() -> None:
    submission = stored_submission(tasks=1, per_task=chunks.IN_QUEUE + 3, per_chunk=1)
    chunks.start(submission)
    assert states(submission) == ["queued"] * chunks.IN_QUEUE + ["waiting"] * 3
    assert chunks.top_up(submission.pk) == 0
    lease = chunks.take(submission.chunks.order_by("position")[0].pk, "w0-1")
    assert lease is not None
    sample_id = chunks.queued_samples(lease)[0]
    assert chunks.begin(lease, sample_id)
    assert verdicts.record(sample_id, lease.token, verdict(), lease.worker)
    chunks.finish(lease)
    assert states(submission) == ["done"] + ["queued"] * chunks.IN_QUEUE + ["waiting"] * 2


@pytest.mark.parametrize(
    ("samples", "each"), [(0, 20), (164, 20), (400, 20), (1_000, 50), (1_640, 80), (50_000, 80)]
)
def test_a_small_submission_has_chunks_for_many_workers_and_a_large_one_few(
    samples: int, each: int
) -> None:
    assert chunks.samples_each(samples) == each


@pytest.mark.broker
@pytest.mark.django_db(transaction=True)
def test_an_upload_that_is_rolled_back_leaves_no_job(broker_url: str) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        chunks.start(stored_submission())
        raise ZeroDivisionError
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == set()
    with redis.Redis.from_url(broker_url) as client:
        assert not client.keys("rq:job:*")
    with transaction.atomic():
        submission = stored_submission()
        chunks.start(submission)
    expected = set(submission.chunks.values_list("pk", flat=True))
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == expected


def test_a_chunk_is_taken_once() -> None:
    submission = stored_submission()
    chunk = submission.chunks.order_by("position")[0]
    assert chunks.take(chunk.pk, "w0-1") is None  # waiting: nobody rang for it
    chunks.ring(chunk.pk)
    lease = chunks.take(chunk.pk, "w0-1")
    assert lease is not None
    assert chunks.take(chunk.pk, "w1-2") is None
    expire(lease)
    assert chunks.take(chunk.pk, "w1-2") is None  # the sweep has to see the loss first
    chunk.refresh_from_db()
    assert (chunk.worker, chunk.tries) == ("w0-1", 1)
    assert chunks.take(10**9, "w0-1") is None


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_that_ring_one_gets_the_chunk() -> None:
    chunk = stored_submission().chunks.order_by("position")[0]
    chunks.ring(chunk.pk)

    def take(number: int) -> chunks.Lease | None:
        try:
            return chunks.take(chunk.pk, f"w{number}-1")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(take, range(8)))
    assert sum(lease is not None for lease in leases) == 1


def test_a_lease_is_renewed_by_its_holder_only() -> None:
    submission = stored_submission()
    lease = first_lease(submission)
    expire(lease)
    assert chunks.renew(lease)
    chunk = Chunk.objects.get(pk=lease.chunk_id)
    assert chunk.lease_until is not None and chunk.lease_until > timezone.now()
    submission.refresh_from_db()
    assert submission.heartbeat_at is not None
    expire(lease)
    assert chunks.recover(lease.chunk_id)
    assert not chunks.renew(lease)
    assert not chunks.begin(lease, submission.samples.all()[0].pk)


def test_a_running_lease_is_not_recovered() -> None:
    lease = first_lease(stored_submission())
    assert not chunks.recover(lease.chunk_id)
    assert chunks.renew(lease)


def test_a_lost_workers_chunk_is_cut_into_single_samples() -> None:
    submission = stored_submission(tasks=1, per_task=5, per_chunk=5)
    lease = first_lease(submission)
    done, in_flight, *rest = chunks.queued_samples(lease)
    assert chunks.begin(lease, done)
    assert verdicts.record(done, lease.token, verdict(), lease.worker)
    assert chunks.begin(lease, in_flight)
    expire(lease)
    assert chunks.recover(lease.chunk_id)
    lost = Sample.objects.get(pk=in_flight)
    assert (lost.state, lost.losses, lost.started_at) == ("queued", 1, None)
    assert lost.platform_failure == "Worker w0-1 was lost while it ran this sample."
    spared = Sample.objects.filter(pk__in=rest)
    assert {(sample.state, sample.losses) for sample in spared} == {("queued", 0)}
    queued = Sample.objects.filter(submission=submission, state="queued")
    assert queued.count() == queued.values("chunk").distinct().count() == 4
    assert Chunk.objects.get(pk=lease.chunk_id).state == "done"
    assert states(submission) == ["done"] + ["queued"] * 4
    # What the lost worker still says does not count: it is graded again.
    assert not verdicts.record(in_flight, lease.token, verdict(), lease.worker)


def test_a_sample_that_takes_its_worker_along_three_times_is_given_up() -> None:
    submission = stored_submission(tasks=1, per_task=1)
    (sample,) = submission.samples.all()
    for loss in (1, 2, 3):
        chunk_id = Sample.objects.get(pk=sample.pk).chunk_id
        assert chunk_id is not None
        chunks.ring(chunk_id)
        lease = chunks.take(chunk_id, f"w0-{loss}")
        assert lease is not None
        assert chunks.begin(lease, sample.pk)
        expire(lease)
        assert chunks.recover(lease.chunk_id)
        sample.refresh_from_db()
        assert sample.losses == loss
    assert sample.state == "platform_failed"
    assert sample.platform_failure == "Worker w0-3 was lost while it ran this sample."
    assert not Attempt.objects.exists()
    submission.refresh_from_db()
    assert (submission.state, states(submission)) == ("done", ["done"])


def test_a_chunk_given_back_early_is_queued_again_without_a_loss() -> None:
    submission = stored_submission(tasks=1, per_task=3, per_chunk=3)
    lease = first_lease(submission)
    first = chunks.queued_samples(lease)[0]
    assert chunks.begin(lease, first)
    assert verdicts.record(first, lease.token, verdict(), lease.worker)
    chunks.finish(lease)
    assert states(submission) == ["queued"]
    again = chunks.take(lease.chunk_id, "w1-2")
    assert again is not None
    assert len(chunks.queued_samples(again)) == 2
    assert not submission.samples.filter(losses__gt=0).exists()
    chunks.finish(lease)  # the first holder, once more
    assert states(submission) == ["running"]


def test_a_held_chunk_stays_queued_and_says_why() -> None:
    submission = stored_submission(tasks=1, per_task=2, per_chunk=2)
    chunks.hold(first_lease(submission), "Held: no sandbox")
    assert states(submission) == ["queued"]
    samples = submission.samples.all()
    assert {(s.state, s.losses, s.platform_failure) for s in samples} == {
        ("queued", 0, "Held: no sandbox")
    }


def test_a_cancelled_submission_keeps_its_verdicts_and_runs_no_more() -> None:
    submission = stored_submission(tasks=1, per_task=6, per_chunk=3)
    lease = first_lease(submission)
    done, in_flight, _ = chunks.queued_samples(lease)
    assert chunks.begin(lease, done)
    assert verdicts.record(done, lease.token, verdict(), lease.worker)
    assert chunks.begin(lease, in_flight)
    assert chunks.cancel_submission(submission) == 5
    assert not verdicts.record(in_flight, lease.token, verdict(), lease.worker)
    assert chunks.queued_samples(lease) == []
    chunks.finish(lease)
    submission.refresh_from_db()
    assert (submission.state, states(submission)) == ("cancelled", ["done", "done"])
    assert submission.finished_at is not None
    assert Attempt.objects.count() == 1


def test_a_small_submission_does_not_wait_for_a_huge_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bells: deque[int] = deque()
    monkeypatch.setattr(queueing, "enqueue", lambda path, chunk_id: bells.append(chunk_id))
    huge = stored_submission(tasks=1, per_task=200, per_chunk=1)
    chunks.start(huge)
    small = stored_submission(tasks=1, per_task=10, per_chunk=5)
    chunks.start(small)
    while Submission.objects.get(pk=small.pk).state == "grading":
        lease = chunks.take(bells.popleft(), "w0-1")
        assert lease is not None
        for sample_id in chunks.queued_samples(lease):
            assert chunks.begin(lease, sample_id)
            assert verdicts.record(sample_id, lease.token, verdict(), lease.worker)
        chunks.finish(lease)
    # It waited for what was in the queue before it, and for no more.
    assert huge.samples.filter(state="done").count() <= chunks.IN_QUEUE + 1
    assert Submission.objects.get(pk=huge.pk).state == "grading"
