"""Storing what an upload holds: samples, chunks and texts, a bounded batch at a time.

What is stored is a draft until all of it is there: in the state ``storing`` no query but the
sweep's sees it, and no batch keeps the database's write lock for long. Then it is published as a
submission, or joins one there is. What a crash leaves of a draft goes with the sweeps after
`ABANDONED_AFTER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone

from grading import chunks, language_models, life
from grading.engine.jsonl import Problem
from grading.intake.places import Place, PlaceKeys, Places
from grading.intake.reading import Found, Reading
from grading.intake.task_table import TaskTable
from grading.models import Chunk, Generation, Sample, Submission

BATCH = 1_000
BATCH_CHARS = 4 * 1024**2
# A draft that grew in the meantime is alive; no batch takes nearly as long.
ABANDONED_AFTER = timedelta(minutes=10)


@contextmanager
def draft(model_name: str, **fields: Any) -> Iterator[Submission]:
    """A draft for the language model of this name, without any sample.

    It is removed at the end unless it was published or joined a submission.
    """
    made = _begin(model_name, **fields)
    try:
        yield made
    finally:
        if _draft(made).update(state=Submission.State.REMOVING):
            life.remove(made)


@transaction.atomic
def _begin(model_name: str, **fields: Any) -> Submission:
    return Submission.everything.create(
        language_model=language_models.named_or_new(model_name),
        state=Submission.State.STORING,
        heartbeat_at=timezone.now(),
        **fields,
    )


def fill(draft: Submission, reading: Reading, renumber: bool = False) -> None:
    """Rows for everything that ``reading`` found.

    Samples keep the file's own numbers, or with ``renumber`` are numbered from 0 within each task,
    in the order of those.
    """
    keys = _store_samples(draft, reading.places, reading.table, renumber)
    found = (item for item in reading if not isinstance(item, Problem))
    for batch in _batches(found):
        Generation.objects.bulk_create(
            Generation(
                sample_id=keys[item.place],
                format=item.format.value,
                peer_passed=item.passed,
                text=item.text,
                extra=item.extra,
            )
            for item in batch
        )
        _beat(draft)


def publish(draft: Submission) -> None:
    """Let everybody see it. Raises `Submission.DoesNotExist` where the sweep removes it."""
    now = timezone.now()
    changed = _draft(draft).update(
        state=Submission.State.GRADING, created_at=now, heartbeat_at=None
    )
    if not changed:
        raise Submission.DoesNotExist
    draft.refresh_from_db()


def join(draft: Submission, submission: Submission) -> None:
    """Make all of a renumbered draft the submission's, behind what that has; the draft is gone.

    Call it in a transaction that holds the submission's lock. Rows are changed, never copied, in a
    tenth of the time that storing them took. Raises `Submission.DoesNotExist` where the sweep
    removes the draft.
    """
    if not _draft(draft).update(heartbeat_at=timezone.now()):
        raise Submission.DoesNotExist
    position = chunks.next_position(submission.pk)
    own_chunks = Chunk.objects.filter(submission=draft)
    own_chunks.update(submission=submission, position=F("position") + position)
    samples = Sample.objects.filter(submission=draft).order_by()
    for task, index in next_indexes(submission).items():
        samples.filter(task=task).update(submission=submission, index=F("index") + index)
    samples.update(submission=submission)
    # By its key: should the transaction fail, the draft still knows what to remove.
    _draft(draft).delete()


def next_indexes(submission: Submission) -> dict[int, int]:
    """The number its next sample gets, by task with a sample."""
    samples = Sample.objects.filter(submission=submission).order_by()
    return {task: last + 1 for task, last in samples.values_list("task").annotate(Max("index"))}


def remove_abandoned() -> None:
    """Go on removing what nobody stores or removes any more, a batch of each a sweep."""
    silent = Q(heartbeat_at__lt=timezone.now() - ABANDONED_AFTER)
    states = Submission.State
    Submission.everything.filter(silent, state=states.STORING).update(state=states.REMOVING)
    for hidden in Submission.everything.filter(silent, state=states.REMOVING):
        life.remove_some(hidden)


def _draft(draft: Submission) -> QuerySet[Submission]:
    """The draft's row, unless the sweep has taken it for abandoned."""
    return Submission.everything.filter(pk=draft.pk, state=Submission.State.STORING)


def _beat(draft: Submission) -> None:
    _draft(draft).update(heartbeat_at=timezone.now())


def _batches(found: Iterator[Found]) -> Iterator[list[Found]]:
    """Up to `BATCH` samples of together not much more than `BATCH_CHARS`."""
    batch, chars = list[Found](), 0
    for item in found:
        batch.append(item)
        chars += len(item.text)
        if len(batch) == BATCH or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _store_samples(
    draft: Submission, places: Places, table: TaskTable, renumber: bool
) -> PlaceKeys:
    """Chunks and samples. Each chunk holds the same sample of many tasks, so that the first
    results say something about all of them."""
    size = chunks.samples_each(len(places))
    made = _store_chunks(draft, -(-len(places) // size))
    keys = PlaceKeys(len(table))
    order = iter(places)
    stored = [0] * len(table)
    for start in range(0, len(places), BATCH):
        batch: list[Place] = list(islice(order, BATCH))
        rows = []
        for offset, place in enumerate(batch):
            task_id = table.primary_keys[place.task]
            index = stored[place.task] if renumber else place.sample
            stored[place.task] += 1
            chunk_id = made[(start + offset) // size]
            rows.append(Sample(submission=draft, chunk_id=chunk_id, task_id=task_id, index=index))
        for place, row in zip(batch, Sample.objects.bulk_create(rows), strict=True):
            keys.add(place, row.pk)
        _beat(draft)
    return keys


def _store_chunks(draft: Submission, count: int) -> list[int]:
    """Waiting chunks; their primary keys."""
    made: list[int] = []
    for start in range(0, count, BATCH):
        positions = range(start, min(start + BATCH, count))
        rows = Chunk.objects.bulk_create(
            Chunk(submission=draft, position=position) for position in positions
        )
        made += [row.pk for row in rows]
    return made
