"""Regrades: which samples, why, and that nobody asks for the same twice.

A regrade runs samples again in the shadow: attempts are stored beside the verdicts, and no figure
changes until somebody applies them (:mod:`grading.regrade_apply`). How they are run:
:mod:`grading.regrade_runs`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from grading import regrade_runs
from grading.models import BenchmarkVersion, Regrade, RegradeRun, Sample, Task
from grading.permissions import Action, may, roles_for

MOST_REPEATS = 10
BATCH = 1_000
OPEN = (Regrade.State.RUNNING, Regrade.State.READY)


class NothingToRegrade(Exception):
    """No sample is left to run; the message says why."""


class NotAllowed(Exception):
    """This person may not decide on this regrade; the message says why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples, all of these together; at least one is needed.

    ``group`` and ``submission`` are public ids, ``benchmark`` a slug, ``version`` its number,
    ``task`` a task id, ``grader_below`` a grader version: older verdicts only.
    """

    group: str = ""
    submission: str = ""
    benchmark: str = ""
    version: int | None = None
    task: str = ""
    model: str = ""
    outcome: str = ""
    worker: str = ""
    grader_below: int | None = None

    def chosen(self) -> dict[str, str | int]:
        """What is set, by name."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}

    def samples(self) -> QuerySet[Sample]:
        """Samples with a verdict or given up by the platform. Raises ValueError for no choice."""
        chosen = self.chosen()
        if not chosen:
            raise ValueError("choose what to regrade: everything is never meant")
        found = Sample.objects.filter(state__in=[Sample.State.DONE, Sample.State.PLATFORM_FAILED])
        return found.filter(**{_FIELDS[name]: value for name, value in chosen.items()})


_FIELDS = {
    "group": "fingerprint__group__public_id",
    "submission": "submission__public_id",
    "benchmark": "task__version__benchmark__slug",
    "version": "task__version__number",
    "task": "task__task_id",
    "model": "submission__language_model__name",
    "outcome": "current_attempt__outcome",
    "worker": "current_attempt__worker",
    "grader_below": "current_attempt__grader_version__lt",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a regrade would come to.

    ``tasks``: by sample the task it is run against; ``left_out``: how many samples are in other
    open regrades, by their public ids.
    """

    tasks: dict[int, int]
    left_out: dict[str, int]


def plan(selection: Selection, target: BenchmarkVersion | None = None) -> Plan:
    """What there is to run. Against ``target`` only tasks whose content differs are.

    Raises ValueError for an empty selection.
    """
    samples = selection.samples()
    if target is None:
        tasks = dict(samples.values_list("pk", "task_id"))
    else:
        tasks = dict(_changed(samples, target))
    busy = RegradeRun.objects.filter(regrade__state__in=OPEN, sample__in=samples)
    if target is not None:
        busy = busy.filter(regrade__target=target)
    held = {
        sample: public_id
        for sample, public_id in busy.values_list("sample_id", "regrade__public_id").distinct()
        if sample in tasks
    }
    free = {sample: task for sample, task in tasks.items() if sample not in held}
    return Plan(free, dict(Counter(held.values())))


def _changed(samples: QuerySet[Sample], target: BenchmarkVersion) -> Iterator[tuple[int, int]]:
    """Samples of other versions of the benchmark whose task is another one in ``target``."""
    there = {
        task_id: (pk, content)
        for pk, task_id, content in Task.objects.filter(version=target).values_list(
            "pk", "task_id", "content_hash"
        )
    }
    others = samples.filter(task__version__benchmark=target.benchmark_id)
    rows = others.exclude(task__version=target)
    for sample, task_id, content in rows.values_list("pk", "task__task_id", "task__content_hash"):
        task, now = there.get(task_id, (0, content))
        if now != content:
            yield sample, task


@transaction.atomic
def ask(
    selection: Selection,
    reason: str,
    by: User,
    repeats: int = 1,
    target: BenchmarkVersion | None = None,
) -> Regrade:
    """Start a regrade; or join the open one that runs all of these samples already.

    Samples that another open regrade runs are left out and named on this one. Raises ValueError
    for an empty selection, no reason or a number of repeats out of range; `NothingToRegrade`.
    """
    if not reason.strip():
        raise ValueError("say why: a regrade needs a reason")
    if not 1 <= repeats <= MOST_REPEATS:
        raise ValueError(f"repeats: 1 to {MOST_REPEATS}")
    found = plan(selection, target)
    if not found.tasks:
        return _join(found, reason, by)
    regrade = Regrade.objects.create(
        reason=reason.strip(),
        selection=selection.chosen(),
        repeats=repeats,
        target=target,
        left_out=found.left_out,
        asked_by=by,
    )
    _store_runs(regrade, found.tasks)
    regrade_runs.ring(regrade)
    return regrade


def _join(found: Plan, reason: str, by: User) -> Regrade:
    if not found.left_out:
        raise NothingToRegrade("No graded sample matches, or no task differs.")
    if len(found.left_out) > 1:
        names = ", ".join(sorted(found.left_out))
        raise NothingToRegrade(f"All of these samples are in open regrades: {names}.")
    regrade = Regrade.objects.select_for_update().get(public_id=next(iter(found.left_out)))
    regrade.joined.append(
        {"by": by.get_username(), "reason": reason.strip(), "at": timezone.now().isoformat()}
    )
    regrade.save(update_fields=["joined"])
    return regrade


def _store_runs(regrade: Regrade, tasks: dict[int, int]) -> None:
    ids = sorted(tasks)
    for start in range(0, len(ids), BATCH):
        part = Sample.objects.filter(pk__in=ids[start : start + BATCH])
        before = dict(part.values_list("pk", "current_attempt_id"))
        RegradeRun.objects.bulk_create(
            RegradeRun(
                regrade=regrade,
                sample_id=sample,
                task_id=tasks[sample],
                repeat=repeat,
                before_id=before[sample],
            )
            for sample in ids[start : start + BATCH]
            for repeat in range(regrade.repeats)
        )


def refusal(user: User, regrade: Regrade) -> str:
    """Why this person may not decide on a regrade; empty where they may.

    Who is graded has no say: not on a regrade that somebody else asked for.
    """
    if not may(user, Action.REGRADE):
        return f"Regrades are decided on by a {roles_for(Action.REGRADE)}."
    graded = Q(submission__uploader=user, regrade_runs__regrade=regrade)
    if regrade.asked_by_id != user.pk and Sample.objects.filter(graded).exists():
        return "It grades your own submission, and somebody else asked for it."
    return ""


@transaction.atomic
def cancel(regrade: Regrade, by: User) -> bool:
    """End a regrade without effect; its attempts stay. False where it was decided already.

    Raises `NotAllowed`.
    """
    if why := refusal(by, regrade):
        raise NotAllowed(why)
    ended = Regrade.objects.filter(pk=regrade.pk, state__in=OPEN).update(
        state=Regrade.State.CANCELLED, decided_by=by, decided_at=timezone.now()
    )
    if not ended:
        return False
    states = RegradeRun.State
    left = RegradeRun.objects.filter(regrade=regrade, state__in=[states.QUEUED, states.RUNNING])
    left.update(state=states.CANCELLED, token="", lease_until=None)
    return True
