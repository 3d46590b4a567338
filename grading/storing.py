"""Storing what an upload holds: samples, chunks and texts, a bounded batch at a time.

A new submission is a draft until all of it is there: in the state ``storing`` no query but the
sweep's sees it, and no batch keeps the database's write lock for long. What a crash leaves of a
draft goes with the next sweep after `ABANDONED_AFTER`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import transaction
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


@transaction.atomic
def begin(model_name: str, **fields: Any) -> Submission:
    """A draft for the language model of this name, without any sample."""
    return Submission.everything.create(
        language_model=language_models.named_or_new(model_name),
        state=Submission.State.STORING,
        heartbeat_at=timezone.now(),
        **fields,
    )


def fill(submission: Submission, reading: Reading, first: dict[int, int] | None = None) -> None:
    """Rows for everything that ``reading`` found.

    ``first``: for samples that are added, the index of each task's first one, by primary key (0
    for tasks not in it); they are then numbered on from there in the order of the file's own
    numbers, which a new submission keeps.
    """
    keys = _store_samples(submission, reading.places, reading.table, first)
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
        _beat(submission)


def publish(draft: Submission) -> None:
    """Let everybody see it. Raises `Submission.DoesNotExist` where the sweep has removed it."""
    now = timezone.now()
    changed = Submission.everything.filter(pk=draft.pk, state=Submission.State.STORING).update(
        state=Submission.State.GRADING, created_at=now, heartbeat_at=None
    )
    if not changed:
        raise Submission.DoesNotExist
    draft.refresh_from_db()


def discard(draft: Submission) -> None:
    """Remove what is stored of a draft, a batch at a time."""
    samples = Sample.objects.filter(submission=draft).order_by()
    while ids := list(samples.values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            Generation.objects.filter(sample__in=ids).delete()
            samples.filter(pk__in=ids).delete()
    life.delete(draft)


def remove_abandoned() -> int:
    """Discard drafts whose web process ended while it stored them; returns how many."""
    due = timezone.now() - ABANDONED_AFTER
    drafts = Submission.everything.filter(state=Submission.State.STORING, heartbeat_at__lt=due)
    for draft in drafts:
        discard(draft)
    return len(drafts)


def _beat(submission: Submission) -> None:
    Submission.everything.filter(pk=submission.pk).update(heartbeat_at=timezone.now())


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
    submission: Submission, places: Places, table: TaskTable, first: dict[int, int] | None
) -> PlaceKeys:
    """Chunks and samples. Each chunk holds the same sample of many tasks, so that the first
    results say something about all of them."""
    size = chunks.samples_each(len(places))
    made = _store_chunks(submission, -(-len(places) // size))
    keys = PlaceKeys(len(table))
    order = iter(places)
    added = [0] * len(table)
    for start in range(0, len(places), BATCH):
        batch: list[Place] = list(islice(order, BATCH))
        rows = []
        for offset, place in enumerate(batch):
            task_id = table.primary_keys[place.task]
            index = place.sample
            if first is not None:
                index = first.get(task_id, 0) + added[place.task]
                added[place.task] += 1
            chunk_id = made[(start + offset) // size]
            rows.append(
                Sample(submission=submission, chunk_id=chunk_id, task_id=task_id, index=index)
            )
        for place, row in zip(batch, Sample.objects.bulk_create(rows), strict=True):
            keys.add(place, row.pk)
        _beat(submission)
    return keys


def _store_chunks(submission: Submission, count: int) -> list[int]:
    """Waiting chunks behind those there are; their primary keys."""
    before = chunks.next_position(submission.pk)
    made: list[int] = []
    for start in range(0, count, BATCH):
        positions = range(before + start, before + min(start + BATCH, count))
        rows = Chunk.objects.bulk_create(
            Chunk(submission=submission, position=position) for position in positions
        )
        made += [row.pk for row in rows]
    return made
