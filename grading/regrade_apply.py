"""Applying a regrade: the only way in which its attempts become verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from grading import regrade_carry, regrades, verdicts
from grading.models import (
    Attempt,
    BenchmarkVersion,
    ChangeLogEntry,
    Regrade,
    RegradeRun,
    Sample,
    Submission,
    Task,
)
from grading.regrade_results import Result, results

BATCH = 1_000
# The bulk of an attempt, which has no part in what applying it changes.
_NOT_LOOKED_AT = [f"text__{name}" for name in ("stdout", "stderr", "limits")]


class NotReady(Exception):
    """The regrade still runs, or was decided on already."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Counts of samples: ``applied``, ``changed`` among them; ``kept`` have their old verdict."""

    applied: int
    changed: int
    kept: int


@transaction.atomic
def apply(regrade: Regrade, by: User, chosen: Collection[int] | None = None) -> Applied:
    """Make the attempts of a regrade the verdicts of its samples, in one transaction.

    Of all samples, or of those ``chosen`` by id (a regrade for another version is applied whole,
    see :mod:`grading.regrade_carry`). Samples without a verdict to rely on keep their
    old one: flaky, failed by the platform, or decided otherwise since. Task scores are derived
    anew and a line is written to the change log of each version concerned. Raises `NotReady`,
    `regrades.NotAllowed`.
    """
    if why := regrades.refusal(by, regrade):
        raise regrades.NotAllowed(why)
    ready = Regrade.objects.select_for_update().filter(pk=regrade.pk, state=Regrade.State.READY)
    if ready.first() is None:
        raise NotReady("It still runs, or was decided on already.")
    samples = Sample.objects.filter(regrade_runs__regrade=regrade).distinct()
    # Held before the results are read: no other decision comes between.
    list(Sample.objects.select_for_update().filter(pk__in=samples.values("pk")).order_by("pk"))
    found = results(regrade)
    wanted = [one for one in found if one.after and (chosen is None or one.sample_id in chosen)]
    if regrade.target is None:
        _replace(wanted)
    else:
        wanted = [one for one in found if one.runs]
        regrade_carry.carry(regrade, found)
        _point_to(regrade.target, regrade, by, wanted)
    _write_down(regrade, by, wanted)
    ids = [one.sample_id for one in wanted]
    for start in range(0, len(ids), BATCH):
        part = RegradeRun.objects.filter(regrade=regrade, sample__in=ids[start : start + BATCH])
        part.update(applied=True)
    ready.update(state=Regrade.State.APPLIED, decided_by=by, decided_at=timezone.now())
    changed = sum(one.changed for one in wanted)
    return Applied(len(wanted), changed, len(found) - len(wanted))


def _replace(wanted: list[Result]) -> None:
    attempts = Attempt.objects.select_related("text", "sample").defer(*_NOT_LOOKED_AT)
    for start in range(0, len(wanted), BATCH):
        part = [one.after.attempt_id for one in wanted[start : start + BATCH] if one.after]
        verdicts.make_current([(one.sample, one) for one in attempts.in_bulk(part).values()])
    touched: dict[int, set[int]] = defaultdict(set)
    for result in wanted:
        touched[result.submission_id].add(result.task_id)
    for submission_id in sorted(touched):
        verdicts.recompute(submission_id, touched[submission_id])
    # Boards look anew where a verdict was recorded.
    Submission.objects.filter(pk__in=touched).update(heartbeat_at=timezone.now())


def _write_down(regrade: Regrade, by: User, wanted: list[Result]) -> None:
    versions = dict(
        Task.objects.filter(pk__in={one.task_id for one in wanted}).values_list("pk", "version_id")
    )
    regraded = Counter(versions[one.task_id] for one in wanted)
    changed = Counter(versions[one.task_id] for one in wanted if one.changed)
    for version_id, count in regraded.items():
        ChangeLogEntry.objects.create(
            version_id=version_id,
            regrade=regrade,
            what=_sentence(count, changed[version_id], regrade.target is not None),
            reason=regrade.reason,
            by=by,
        )


def _point_to(target: BenchmarkVersion, regrade: Regrade, by: User, wanted: list[Result]) -> None:
    """Say on the boards that stay as they are which tasks were put right, and where."""
    samples = Sample.objects.filter(pk__in=[one.sample_id for one in wanted]).order_by()
    names: dict[int, list[str]] = defaultdict(list)
    for version_id, task_id in samples.values_list("task__version", "task__task_id").distinct():
        names[version_id].append(task_id)
    for version_id, tasks in names.items():
        ChangeLogEntry.objects.create(
            version_id=version_id,
            regrade=regrade,
            what=f"Put right in version {target.number}: {', '.join(sorted(tasks))}"[:300],
            reason=regrade.reason,
            by=by,
        )


def _sentence(count: int, changed: int, carried: bool) -> str:
    samples = f"{count:,} sample{'' if count == 1 else 's'}"
    if carried:
        return f"{samples} of changed tasks graded anew, the rest taken over from before"
    return f"{samples} regraded, {changed:,} with another verdict"
