"""Uploads: check a whole file first, then store it in one transaction.

The file is read twice and never held: the first reading makes the report, the second stores the
texts. Bad lines are kept out by the same code both times.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils.text import slugify

from grading import chunks
from grading.engine.jsonl import ProblemLog
from grading.models import (
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
)
from grading.upload_reading import GoodLines, Preview, Reading, UploadReport, read

__all__ = [
    "Accepted",
    "Preview",
    "UploadRejected",
    "UploadReport",
    "accept",
    "accept_once",
    "check",
    "language_model",
]

BATCH = 1_000


class UploadRejected(Exception):
    """The file is not taken, and nothing was stored."""

    def __init__(self, report: UploadReport) -> None:
        self.report = report
        super().__init__(_message(report))


def _message(report: UploadReport) -> str:
    count = "1 problem" if report.problem_count == 1 else f"{report.problem_count:,} problems"
    lines = [f"{report.file_name}: {count}, {report.samples:,} samples usable; nothing was stored."]
    for problem in report.problems:
        place = f"line {problem.line}" if problem.line else "file"
        about = f" {problem.field}" if problem.field else ""
        lines.append(f"  {place}:{about} {problem.rule}: {problem.detail}")
    if report.problem_count > len(report.problems):
        lines.append(f"  and {report.problem_count - len(report.problems):,} more")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Accepted:
    """``created`` is False where the same upload was there already."""

    submission: Submission
    created: bool


def check(stream: BinaryIO, file_name: str, version: BenchmarkVersion) -> UploadReport:
    """Read the whole file and report; stores nothing and never raises for its content."""
    return read(stream, file_name, version).report()


def accept(
    stream: BinaryIO,
    file_name: str,
    version: BenchmarkVersion,
    model_name: str,
    uploader: AbstractBaseUser,
    settings: dict[str, Any] | None = None,
    visibility: str = Submission.Visibility.PUBLIC,
    good_lines_only: bool = False,
) -> Submission:
    """The submission of `accept_once`, whether it is new or not."""
    return accept_once(
        stream, file_name, version, model_name, uploader, settings, visibility, good_lines_only
    ).submission


def accept_once(
    stream: BinaryIO,
    file_name: str,
    version: BenchmarkVersion,
    model_name: str,
    uploader: AbstractBaseUser,
    settings: dict[str, Any] | None = None,
    visibility: str = Submission.Visibility.PUBLIC,
    good_lines_only: bool = False,
) -> Accepted:
    """Store the file's samples and start grading, all in one transaction.

    ``stream`` is seekable. The same bytes for the same version and model from the same uploader
    are the same submission. Raises `UploadRejected`, with nothing stored, where a line is bad
    (with ``good_lines_only``: where no line is good or the file cannot be read to its end).
    """
    reading = read(stream, file_name, version)
    reading.check_model_name(model_name)
    report = reading.report()
    if not (report.ok or (good_lines_only and report.usable and reading.names_a_model)):
        raise UploadRejected(report)
    with transaction.atomic():
        model = language_model(model_name)
        same = Submission.objects.filter(
            version=version,
            language_model=model,
            uploader_id=uploader.pk,
            file_hash=report.file_hash,
        ).exclude(state=Submission.State.CANCELLED)
        if earlier := same.first():
            return Accepted(earlier, created=False)
        left_out = {"lines_left_out": report.problem_count} if report.problem_count else {}
        submission = Submission.objects.create(
            version=version,
            language_model=model,
            uploader_id=uploader.pk,
            visibility=visibility,
            settings=(settings or {}) | left_out,
            file_name=file_name[:255],
            file_hash=report.file_hash,
            sample_count=report.samples,
        )
        _store(stream, submission, reading)
        chunks.start(submission)
    return Accepted(submission, created=True)


def language_model(name: str) -> LanguageModel:
    """The language model of this name, made on first use; its slug is unique and never empty."""
    name = name.strip()
    found = LanguageModel.objects.filter(name=name).first()
    return found or LanguageModel.objects.create(name=name, slug=_free_slug(name))


def _free_slug(name: str) -> str:
    stem = slugify(name)[:100]
    if not re.search("[a-z0-9]", stem):
        stem = f"model-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    slug, again = stem, 2
    while LanguageModel.objects.filter(slug=slug).exists():
        slug, again = f"{stem}-{again}", again + 1
    return slug


def _store(stream: BinaryIO, submission: Submission, reading: Reading) -> None:
    """Rows for every sample; each chunk holds the same sample of many tasks, so that the first
    results say something about all of them."""
    position = {task_id: place for place, task_id in enumerate(reading.tasks)}
    order = sorted(reading.samples, key=lambda sample: (sample[1], position[sample[0]]))
    keys = _store_samples(submission, order, reading.primary_keys)
    batch: list[Generation] = []
    for _, line, index in GoodLines(stream, reading.tasks, ProblemLog()):
        batch.append(
            Generation(
                sample_id=keys[line.task_id, index],
                format=line.format.value,
                text=line.text,
                extra=line.extra,
            )
        )
        if len(batch) == BATCH:
            Generation.objects.bulk_create(batch)
            batch.clear()
    Generation.objects.bulk_create(batch)


def _store_samples(
    submission: Submission, order: list[tuple[str, int]], task_keys: dict[str, int]
) -> dict[tuple[str, int], int]:
    """Chunks and samples; returns the key of each sample."""
    size = chunks.CHUNK_SAMPLES
    count = -(-len(order) // size)
    made = Chunk.objects.bulk_create(
        [Chunk(submission=submission, position=place) for place in range(count)], batch_size=BATCH
    )
    rows = Sample.objects.bulk_create(
        [
            Sample(
                submission=submission,
                chunk=made[place // size],
                task_id=task_keys[task_id],
                index=index,
            )
            for place, (task_id, index) in enumerate(order)
        ],
        batch_size=BATCH,
    )
    return {key: row.pk for key, row in zip(order, rows, strict=True)}
