"""Uploads: check a whole file first, then store it, all of it or nothing.

The file is read twice and never held: the first reading makes the report, the second stores the
texts. What is kept out is kept out by the same code both times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction

from grading import chunks, language_models, quotas, storing
from grading.engine.jsonl import Problem
from grading.intake.fields import AS_DETECTED, Choices
from grading.intake.report import Preview, UploadReport, checked
from grading.intake.task_table import TaskTable
from grading.models import BenchmarkVersion, Submission

__all__ = [
    "Accepted",
    "Preview",
    "UploadRejected",
    "UploadReport",
    "accept",
    "check",
    "earlier",
    "intake_of",
    "report_text",
]


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
) -> Accepted:
    """Store the file's samples and start grading; where storing fails, nothing was stored.

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
    if same := earlier(report, version, model_name, uploader):
        return Accepted(same, created=False)
    person = cast(User, uploader)
    left_out = {"lines_left_out": report.problem_count} if report.problem_count else {}
    with transaction.atomic():
        quotas.require(person, report.samples)
    with storing.draft(
        model_name,
        version=version,
        uploader_id=uploader.pk,
        visibility=visibility,
        settings=(settings or {}) | left_out,
        file_name=file_name[:255],
        file_hash=report.file_hash,
        intake=intake_of(report),
        sample_count=report.samples,
    ) as draft:
        storing.fill(draft, checking.reading)
        with transaction.atomic():
            if same := earlier(report, version, model_name, uploader):
                return Accepted(same, created=False)
            quotas.require(person, report.samples)
            storing.publish(draft)
            chunks.start(draft)
    return Accepted(draft, created=True)


def earlier(
    report: UploadReport, version: BenchmarkVersion, model_name: str, uploader: AbstractBaseUser
) -> Submission | None:
    """The submission that ``uploader`` made of the same file, read in the same way."""
    same = Submission.objects.filter(
        version=version,
        language_model=language_models.named(model_name),
        uploader_id=uploader.pk,
        file_hash=report.file_hash,
    ).exclude(state=Submission.State.CANCELLED)
    taken_for = intake_of(report)
    return next((row for row in same if row.intake == taken_for), None)


def intake_of(report: UploadReport) -> dict[str, Any]:
    """What a file was taken for, as it is kept with its samples."""
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
