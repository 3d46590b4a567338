"""Taking submissions over into another version of their benchmark, with what was regraded for it.

Scores compare only within one version, and a version is frozen: a task that was put right is a task
of the next version. Its board starts with the submissions of the regrade, each as a new submission
of that version: samples of tasks that did not change keep their verdict, those of changed ones get
the regraded one. The old version and its board stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils import timezone

from grading import verdicts
from grading.models import (
    Attempt,
    BenchmarkVersion,
    Generation,
    Regrade,
    Sample,
    Submission,
    Task,
)
from grading.regrade_results import Result

BATCH = 500


def carry(regrade: Regrade, found: Sequence[Result]) -> list[Submission]:
    """Add the regrade's submissions to its target; those already there are left out.

    Call it in a transaction. A changed sample without one reliable verdict is there as a platform
    failure, so that no rank rests on it; a flaky one has its first.
    """
    assert regrade.target is not None
    regraded = {one.sample_id: one.runs[0].attempt_id for one in found if one.runs}
    ids = {one.submission_id for one in found}
    made = []
    for old in Submission.objects.filter(pk__in=ids).order_by("created_at", "pk"):
        if not _is_there(old, regrade.target):
            made.append(_take_over(old, regrade.target, regraded))
    return made


def _is_there(old: Submission, target: BenchmarkVersion) -> bool:
    same = {"language_model": old.language_model_id, "file_hash": old.file_hash}
    return Submission.objects.filter(version=target, uploader=old.uploader_id, **same).exists()


def _take_over(old: Submission, target: BenchmarkVersion, regraded: dict[int, int]) -> Submission:
    tasks = dict(Task.objects.filter(version=target).values_list("task_id", "pk"))
    rows = Sample.objects.filter(submission=old, task__task_id__in=tasks)
    samples = list(rows.select_related("task", "generation").order_by("pk"))
    new = Submission.objects.create(
        version=target,
        language_model_id=old.language_model_id,
        uploader_id=old.uploader_id,
        visibility=old.visibility,
        settings=old.settings | {"taken_over_from": old.public_id},
        file_name=old.file_name,
        file_hash=old.file_hash,
        state=Submission.State.DONE,
        sample_count=len(samples),
        finished_at=timezone.now(),
    )
    for start in range(0, len(samples), BATCH):
        _copy(new, samples[start : start + BATCH], tasks, target, regraded)
    verdicts.recompute(new.pk, {tasks[sample.task.task_id] for sample in samples})
    return new


def _copy(
    new: Submission,
    samples: Sequence[Sample],
    tasks: dict[str, int],
    target: BenchmarkVersion,
    regraded: dict[int, int],
) -> None:
    unchanged = set(Task.objects.filter(version=target).values_list("task_id", "content_hash"))
    copies = Sample.objects.bulk_create(
        Sample(
            submission=new,
            task_id=tasks[old.task.task_id],
            index=old.index,
            state=Sample.State.PLATFORM_FAILED,
            platform_failure="No verdict could be taken over.",
        )
        for old in samples
    )
    Generation.objects.bulk_create(
        Generation(
            sample=copy,
            format=old.generation.format,
            text=old.generation.text,
            extra=old.generation.extra,
        )
        for old, copy in zip(samples, copies, strict=True)
    )
    chosen = {
        copy.pk: _attempt_of(old, unchanged, regraded)
        for old, copy in zip(samples, copies, strict=True)
    }
    _give_verdicts(copies, chosen)


def _attempt_of(
    old: Sample, unchanged: set[tuple[str, str]], regraded: dict[int, int]
) -> int | None:
    if (old.task.task_id, old.task.content_hash) in unchanged:
        return old.current_attempt_id
    return regraded.get(old.pk)


def _give_verdicts(copies: Iterable[Sample], chosen: dict[int, int | None]) -> None:
    known = [pk for pk in chosen.values() if pk is not None]
    runs = Attempt.objects.select_related("text").in_bulk(known)
    verdicts.make_current(
        [
            (sample, verdicts.copy_of(run, sample))
            for sample in copies
            if (run := runs.get(chosen[sample.pk] or 0)) is not None
        ]
    )
