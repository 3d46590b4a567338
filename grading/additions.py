"""Adding samples to a submission: a further file for the same version, model and settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F
from django.utils import timezone

from grading import chunks, quotas, storing
from grading.intake import caps
from grading.intake.fields import AS_DETECTED, Choices
from grading.intake.places import Places
from grading.intake.report import UploadReport, checked
from grading.intake.task_table import TaskTable
from grading.models import Addition, Sample, Submission
from grading.uploads import Accepted, UploadRejected, intake_of


class Refused(Exception):
    """The submission takes no such samples; the text says why. Nothing was stored."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Samples and tasks of a submission once a file's samples are added to it."""

    samples: int
    tasks_covered: int
    tasks_total: int
    n_min: int
    n_max: int
    known: bool

    @property
    def missing_count(self) -> int:
        return self.tasks_total - self.tasks_covered


def refusal(submission: Submission) -> str:
    """Why nothing can be added to it; empty where something can."""
    if submission.withdrawn_at:
        return "It is withdrawn, so nothing can be added to it. Submit the file anew."
    if submission.state == Submission.State.CANCELLED:
        return "It was cancelled, so nothing can be added to it. Submit the file anew."
    return ""


def check(
    stream: BinaryIO, file_name: str, submission: Submission, choices: Choices = AS_DETECTED
) -> tuple[UploadReport, Outlook]:
    """Read the whole file and report; stores nothing and never raises for its content."""
    table = TaskTable.of(submission.version)
    checking = checked(stream, file_name, table, choices)
    report = checking.report()
    return report, _outlook(submission, report, checking.reading.places, table)


def add(
    submission: Submission,
    stream: BinaryIO,
    file_name: str,
    by: User,
    good_lines_only: bool = False,
    choices: Choices = AS_DETECTED,
) -> Accepted:
    """Store the file's samples, then put them behind those there are and grade them.

    Where storing fails, nothing was stored. They get the next indexes of their tasks, in the order
    of the file's own. The same bytes, read in the same way, are added once: ``created`` is False
    where the submission has them. A finished submission is graded on. Raises `UploadRejected` and
    `quotas.QuotaExceeded` as `uploads.accept` does, and `Refused`.
    """
    table = TaskTable.of(submission.version)
    checking = checked(stream, file_name, table, choices)
    report = checking.report()
    if not (report.ok or (good_lines_only and report.usable)):
        raise UploadRejected(report)
    held, known = _admitted(submission, report, checking.reading.places, table, by)
    if known:
        return Accepted(held, created=False)
    with storing.draft(
        held.language_model.name,
        version=held.version,
        uploader_id=by.pk,
        file_hash=report.file_hash,
        sample_count=report.samples,
    ) as draft:
        storing.fill(draft, checking.reading, renumber=True)
        with transaction.atomic():
            held, known = _admitted(submission, report, checking.reading.places, table, by)
            if known:
                return Accepted(held, created=False)
            storing.join(draft, held)
            _note(held, report, file_name, by)
            _reopen(held, report.samples)
            chunks.start(held)
    held.refresh_from_db()
    return Accepted(held, created=True)


@transaction.atomic
def _admitted(
    submission: Submission, report: UploadReport, places: Places, table: TaskTable, by: User
) -> tuple[Submission, bool]:
    """The submission, locked, and whether it has the file already. Raises what `add` does."""
    held = _locked(submission)
    if _has(held, report):
        return held, True
    quotas.require(by, report.samples)
    _refuse_too_many(storing.next_indexes(held), places, table)
    return held, False


def _locked(submission: Submission) -> Submission:
    """Until the transaction ends it is neither closed nor cancelled nor added to by another."""
    rows = Submission.objects.select_for_update(of=("self",), no_key=True)
    held = rows.select_related("version__benchmark", "language_model").filter(pk=submission.pk)
    found = held.first()
    if found is None:
        raise Refused("It was deleted.")
    if why := refusal(found):
        raise Refused(why)
    return found


def _note(held: Submission, report: UploadReport, file_name: str, by: User) -> None:
    Addition.objects.create(
        submission=held,
        file_name=file_name[:255],
        file_hash=report.file_hash,
        intake=intake_of(report),
        sample_count=report.samples,
        reopened=held.state == Submission.State.DONE,
        lines_left_out=report.problem_count,
        by_id=by.pk,
    )


def _reopen(held: Submission, samples: int) -> None:
    Submission.objects.filter(pk=held.pk).update(
        state=Submission.State.GRADING,
        finished_at=None,
        added_at=timezone.now(),
        heartbeat_at=None,
        sample_count=F("sample_count") + samples,
    )


def _has(submission: Submission, report: UploadReport) -> bool:
    """Whether the same file, read in the same way, is in it."""
    taken_for = intake_of(report)
    if submission.file_hash == report.file_hash and submission.intake == taken_for:
        return True
    same = Addition.objects.filter(submission=submission, file_hash=report.file_hash)
    return any(one.intake == taken_for for one in same)


def _refuse_too_many(first: Mapping[int, int], places: Places, table: TaskTable) -> None:
    most = caps.MAX_SAMPLE_INDEX + 1
    for place, count in enumerate(places.counts()):
        wanted = first.get(table.primary_keys[place], 0) + count
        if wanted > most:
            task_id = table.tasks[place].task_id
            raise Refused(f"{task_id} would have {wanted:,} samples; a task has at most {most:,}.")


def _outlook(
    submission: Submission, report: UploadReport, places: Places, table: TaskTable
) -> Outlook:
    samples = Sample.objects.filter(submission=submission).order_by()
    counts: dict[int, int] = defaultdict(int, samples.values_list("task").annotate(Count("pk")))
    known = _has(submission, report)
    if not known:
        for place, count in enumerate(places.counts()):
            counts[table.primary_keys[place]] += count
    held = [count for count in counts.values() if count]
    return Outlook(
        samples=sum(held),
        tasks_covered=len(held),
        tasks_total=len(table),
        n_min=min(held, default=0),
        n_max=max(held, default=0),
        known=known,
    )


def as_dict(report: UploadReport, outlook: Outlook) -> dict[str, Any]:
    """The report's JSON, with what the submission would hold under ``after``."""
    after = {
        "samples": outlook.samples,
        "tasks_covered": outlook.tasks_covered,
        "n_min": outlook.n_min,
        "n_max": outlook.n_max,
        "known": outlook.known,
    }
    return report.as_dict() | {"after": after}
