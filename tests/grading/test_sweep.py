"""What the sweep finds and mends; the broker is real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from django.core.management import call_command
from pytest_django import Settings

from evalsite import queueing
from grading import chunks, references, sweep
from grading.models import Chunk, Sample, Submission
from tests.grading.pipeline_records import (
    age_chunks,
    first_lease,
    stored_submission,
    stored_version,
)

pytestmark = [pytest.mark.broker, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def client(broker_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(broker_url) as client:
        yield client


def queued() -> set[int]:
    return set(Chunk.objects.filter(state="queued").values_list("pk", flat=True))


def test_a_healthy_queue_is_left_alone(client: redis.Redis) -> None:
    chunks.start(stored_submission())
    age_chunks()
    before = client.lrange("rq:queue:grade", 0, -1)
    swept = sweep.sweep_once()
    assert swept == sweep.Swept(0, 0, 0, 0) and not swept.repaired
    assert client.lrange("rq:queue:grade", 0, -1) == before


def test_an_emptied_broker_loses_nothing(client: redis.Redis) -> None:
    chunks.start(stored_submission())
    expected = queued()
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == expected != set()
    client.flushall()
    assert sweep.sweep_once().rung == 0  # too fresh: they may be on their way
    age_chunks()
    assert sweep.sweep_once().rung == len(expected)
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == expected
    age_chunks()
    assert sweep.sweep_once().rung == 0


def test_one_lost_doorbell_is_rung_again(client: redis.Redis) -> None:
    chunks.start(stored_submission())
    client.lpop("rq:queue:grade")
    age_chunks()
    assert sweep.sweep_once().rung == 1
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == queued()


def test_a_lost_worker_is_noticed(client: redis.Redis) -> None:
    submission = stored_submission(tasks=1, per_task=4, per_chunk=4)
    lease = first_lease(submission)
    sample_id = chunks.queued_samples(lease)[0]
    assert chunks.begin(lease, sample_id)
    assert sweep.sweep_once().recovered == 0
    age_chunks()
    assert sweep.sweep_once().recovered == 1
    assert Sample.objects.get(pk=sample_id).losses == 1
    assert len(queued()) == 4
    assert queueing.queued_ids(queueing.GRADE_CHUNK) >= queued()


def test_waiting_chunks_of_a_submission_that_nobody_started_are_queued(
    client: redis.Redis,
) -> None:
    submission = stored_submission()
    assert sweep.sweep_once().rung == submission.chunks.count()
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == queued() != set()


def test_samples_whose_chunk_was_deleted_are_adopted(client: redis.Redis) -> None:
    submission = stored_submission(tasks=1, per_task=3, per_chunk=3)
    submission.chunks.all().delete()
    assert sweep.sweep_once().adopted == 3
    samples = submission.samples.select_related("chunk")
    assert len({sample.chunk_id for sample in samples}) == 3
    assert queueing.queued_ids(queueing.GRADE_CHUNK) == queued()
    assert sweep.sweep_once().adopted == 0


def test_reference_solutions_that_were_asked_for_are_not_forgotten(client: redis.Redis) -> None:
    version = stored_version(tasks=1)
    assert sweep.sweep_once().rung == 0
    references.ask(version)
    assert sweep.sweep_once().rung == 0
    client.flushall()
    assert sweep.sweep_once().rung == 1
    assert queueing.queued_ids(queueing.GRADE_REFERENCES) == {version.pk}
    client.delete("rq:queue:grade")
    client.zadd("rq:wip:grade", {f"grade_references-{version.pk}-abc:1": 4e9})
    assert sweep.sweep_once().rung == 0  # a worker has it
    client.flushall()
    references.answered(version)
    assert sweep.sweep_once().rung == 0


def test_a_finished_submission_is_closed(client: redis.Redis) -> None:
    submission = stored_submission()
    submission.samples.update(state=Sample.State.PLATFORM_FAILED)
    assert sweep.sweep_once().closed == 1
    submission.refresh_from_db()
    assert submission.state == Submission.State.DONE and submission.finished_at is not None


def test_a_broker_that_is_away_does_not_stop_the_sweep(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    lease = first_lease(stored_submission())
    age_chunks()
    assert sweep.sweep_once().recovered == 1
    assert Chunk.objects.get(pk=lease.chunk_id).state == "done"
    age_chunks()
    sweep.sweep_once()
    assert "the broker does not answer" in caplog.text


def test_the_command_sweeps_once_and_says_what_it_did(
    client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_submission()
    call_command("sweep", "--once")
    assert "2 missing jobs enqueued" in capsys.readouterr().out
