"""Uploads: check a whole file first, then store it in one transaction.

The file is read twice and never held: the first reading makes the report, the second stores the
texts. What is kept out is kept out by the same code both times.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, cast

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils.text import slugify

from grading import chunks, quotas
from grading.engine.jsonl import Problem
from grading.intake.fields import AS_DETECTED, Choices
from grading.intake.places import Place, PlaceKeys, Places
from grading.intake.reading import Found, Reading
from grading.intake.report import Preview, UploadReport, checked
from grading.intake.task_table import TaskTable
from grading.models import (
    BenchmarkVersion,
    Chunk,
    Generation,
    LanguageModel,
    Sample,
    Submission,
)

__all__ = [
    "Accepted",
    "Preview",
    "UploadRejected",
    "UploadReport",
    "accept",
    "accept_once",
    "check",
    "earlier",
    "language_model",
    "report_text",
]

BATCH = 1_000
BATCH_CHARS = 4 * 1024**2


class UploadRejected(Exception):
    """The file is not taken, and nothing was stored."""

    def __init__(self, report: UploadReport) -> None:
        self.report = report
        super().__init__(report_text(report))


def report_text(report: UploadReport) -> str:
    """A report as lines of plain text: what was found, then the problems."""
    count = "1 problem" if report.problem_count == 1 else f"{report.problem_count:,} problems"
    lines = [f"{report.file_name}: {count}, {report.samples:,} samples usable; nothing was stored."]
    lines += [_problem_text(problem) for problem in report.problems]
    if report.problem_count > len(report.problems):
        lines.append(f"  and {report.problem_count - len(report.problems):,} more")
    if report.samples:
        lines.append(_detected_text(report))
    if report.suspicious:
        share = f"{report.without_code:,} of {report.looked_at:,}"
        lines.append(f"  warning: {share} samples looked at hold no Python")
    return "\n".join(lines)


def _problem_text(problem: Problem) -> str:
    place = f"line {problem.line}" if problem.line else "file"
    member = f"{problem.member} " if problem.member else ""
    about = f" {problem.field}" if problem.field else ""
    return f"  {member}{place}:{about} {problem.rule}: {problem.detail}"


def _detected_text(report: UploadReport) -> str:
    detected = report.detected
    packing = f", {detected.packing}" if detected.packing else ""
    texts = ", ".join(detected.text_fields)
    return (
        f"  read as {detected.layout}{packing}; text in {texts}; tasks by {detected.match} in "
        f"{detected.id_field}; {report.tasks_covered:,} of {report.tasks_total:,} tasks, "
        f"n {report.n_min} to {report.n_max}"
    )


@dataclass(frozen=True, slots=True)
class Accepted:
    """``created`` is False where the same upload was there already."""

    submission: Submission
    created: bool


def check(
    stream: BinaryIO, file_name: str, version: BenchmarkVersion, choices: Choices = AS_DETECTED
) -> UploadReport:
    """Read the whole file and report; stores nothing and never raises for its content."""
    return checked(stream, file_name, TaskTable.of(version), choices).report()


def accept(
    stream: BinaryIO,
    file_name: str,
    version: BenchmarkVersion,
    model_name: str,
    uploader: AbstractBaseUser,
    settings: dict[str, Any] | None = None,
    visibility: str = Submission.Visibility.PUBLIC,
    good_lines_only: bool = False,
    choices: Choices = AS_DETECTED,
) -> Submission:
    """The submission of `accept_once`, whether it is new or not."""
    return accept_once(
        stream,
        file_name,
        version,
        model_name,
        uploader,
        settings,
        visibility,
        good_lines_only,
        choices,
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
    choices: Choices = AS_DETECTED,
) -> Accepted:
    """Store the file's samples and start grading, all in one transaction.

    ``stream`` is seekable. The same bytes for the same version and model from the same uploader,
    read in the same way, are the same submission. Raises `UploadRejected`, with nothing stored,
    where a record is bad (with ``good_lines_only``: where none is good or the file cannot be read
    to its end), and `quotas.QuotaExceeded`.
    """
    checking = checked(stream, file_name, TaskTable.of(version), choices)
    checking.check_model_name(model_name)
    report = checking.report()
    if not (report.ok or (good_lines_only and report.usable and checking.names_a_model)):
        raise UploadRejected(report)
    with transaction.atomic():
        same = earlier(report, version, model_name, uploader)
        if same:
            return Accepted(same, created=False)
        quotas.require(cast(User, uploader), report.samples)
        left_out = {"lines_left_out": report.problem_count} if report.problem_count else {}
        submission = Submission.objects.create(
            version=version,
            language_model=language_model(model_name),
            uploader_id=uploader.pk,
            visibility=visibility,
            settings=(settings or {}) | left_out,
            file_name=file_name[:255],
            file_hash=report.file_hash,
            intake=_intake(report),
            sample_count=report.samples,
        )
        _store(submission, checking.reading)
        chunks.start(submission)
    return Accepted(submission, created=True)


def earlier(
    report: UploadReport, version: BenchmarkVersion, model_name: str, uploader: AbstractBaseUser
) -> Submission | None:
    """The submission that ``uploader`` made of the same file, read in the same way."""
    same = Submission.objects.filter(
        version=version,
        language_model__name=model_name.strip(),
        uploader_id=uploader.pk,
        file_hash=report.file_hash,
    ).exclude(state=Submission.State.CANCELLED)
    taken_for = _intake(report)
    return next((row for row in same if row.intake == taken_for), None)


def _intake(report: UploadReport) -> dict[str, Any]:
    detected = report.detected
    return {
        "layout": detected.layout,
        "packing": detected.packing,
        "match": detected.match,
        "text_fields": detected.text_fields,
        "readings": detected.readings,
        "peer_verdicts": report.peer_verdicts,
        "peer_passes": report.peer_passes,
    }


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


def _store(submission: Submission, reading: Reading) -> None:
    """Rows for everything that ``reading`` found, a batch at a time."""
    keys = _store_samples(submission, reading.places, reading.table)
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


def _store_samples(submission: Submission, places: Places, table: TaskTable) -> PlaceKeys:
    """Chunks and samples. Each chunk holds the same sample of many tasks, so that the first
    results say something about all of them."""
    size = chunks.CHUNK_SAMPLES
    made = _store_chunks(submission, -(-len(places) // size))
    keys = PlaceKeys(len(table))
    order = iter(places)
    for start in range(0, len(places), BATCH):
        batch: list[Place] = list(islice(order, BATCH))
        rows = Sample.objects.bulk_create(
            Sample(
                submission=submission,
                chunk_id=made[(start + offset) // size],
                task_id=table.primary_keys[place.task],
                index=place.sample,
            )
            for offset, place in enumerate(batch)
        )
        for place, row in zip(batch, rows, strict=True):
            keys.add(place, row.pk)
    return keys


def _store_chunks(submission: Submission, count: int) -> list[int]:
    made: list[int] = []
    for start in range(0, count, BATCH):
        positions = range(start, min(start + BATCH, count))
        rows = Chunk.objects.bulk_create(
            Chunk(submission=submission, position=position) for position in positions
        )
        made += [row.pk for row in rows]
    return made
