"""What the task pages read: the tasks of a version, and how models did on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404

from grading.models import BenchmarkVersion, CrashGroup, Submission, Task, TaskScore
from grading.permissions import Viewer, visible_submissions
from grading.queries.paging import page_of
from grading.queries.submissions import score_counts

TASKS_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in the list; ``n`` samples of visible finished submissions, ``c`` of them pass."""

    task_id: str
    slug: str
    entry_point: str
    target_count: int
    status: str
    reference_outcome: str
    n: int
    c: int
    fraction: float | None


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One submission's score on the task."""

    model: str
    model_slug: str
    submission: str
    n: int
    c: int
    fraction: float
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Reference:
    """What the reference solution came to at import; ``failing`` target numbers from 1."""

    outcome: str
    passed: int
    total: int
    wall_s: float | None
    detail: str
    failing: list[int]


def task_page(version: BenchmarkVersion, user: Viewer, number: str) -> Page[TaskLine]:
    """Tasks in their order, with the sums over finished submissions the viewer may see."""
    tasks = Task.objects.filter(version=version).order_by("position")
    return page_of(tasks, TASKS_PER_PAGE, number, lambda shown: _lines(shown, user))


def _lines(tasks: QuerySet[Task], user: Viewer) -> list[TaskLine]:
    scores = (
        TaskScore.objects.filter(task=OuterRef("pk"), submission__in=_finished(user))
        .order_by()
        .values("task")
    )
    summed = tasks.annotate(
        n_all=Coalesce(Subquery(scores.annotate(x=Sum("n")).values("x")), 0),
        c_all=Coalesce(Subquery(scores.annotate(x=Sum("c")).values("x")), 0),
        fraction_all=Subquery(scores.annotate(x=Sum("fraction_sum")).values("x")),
    ).defer("prompt", "setup", "reference", "few_shot_examples", "metadata")
    return [_line(task) for task in summed]


def _line(task: Any) -> TaskLine:
    verdict = task.reference_verdict or {}
    return TaskLine(
        task_id=task.task_id,
        slug=task.slug,
        entry_point=", ".join(task.entry_points),
        target_count=len(task.targets),
        status=task.status,
        reference_outcome=verdict.get("outcome", ""),
        n=task.n_all,
        c=task.c_all,
        fraction=task.fraction_all / task.n_all if task.n_all else None,
    )


def _finished(user: Viewer) -> QuerySet[Submission]:
    return visible_submissions(user).filter(state=Submission.State.DONE)


def task_or_404(version: BenchmarkVersion, slug: str) -> Task:
    return get_object_or_404(Task, version=version, slug=slug)


def under_review(task: Task) -> list[CrashGroup]:
    """The grader bugs that samples of this task have met."""
    bugs = CrashGroup.objects.filter(state=CrashGroup.State.GRADER_BUG)
    bugs = bugs.filter(fingerprints__samples__task=task).distinct()
    return list(bugs.select_related("fixed_in_version__benchmark"))


def model_lines(task: Task, user: Viewer) -> list[ModelLine]:
    """Every finished submission the viewer may see, best mean fraction first; one query."""
    scores = (
        TaskScore.objects.filter(task=task, n__gt=0, submission__in=_finished(user))
        .annotate(
            model=F("submission__language_model__name"),
            model_slug=F("submission__language_model__slug"),
            public_id=F("submission__public_id"),
        )
        .order_by("model", "-submission__created_at")
    )
    lines = [
        ModelLine(
            score.model,
            score.model_slug,
            score.public_id,
            score.n,
            score.c,
            score.fraction_sum / score.n,
            score_counts(score),
        )
        for score in scores
    ]
    return sorted(lines, key=lambda line: -line.fraction)


def reference(task: Task) -> Reference | None:
    verdict = task.reference_verdict
    if not verdict:
        return None
    return Reference(
        outcome=verdict["outcome"],
        passed=verdict["passed"],
        total=verdict["total"],
        wall_s=verdict.get("wall_s"),
        detail=verdict.get("detail", ""),
        failing=[row["index"] + 1 for row in verdict.get("targets", []) if not row["true"]],
    )


@dataclass(frozen=True, slots=True)
class VersionCounts:
    tasks: int
    suspect: int


def version_counts(version: BenchmarkVersion) -> VersionCounts:
    found = Task.objects.filter(version=version).aggregate(
        tasks=Count("pk"), suspect=Count("pk", filter=Q(status=Task.Status.SUSPECT))
    )
    return VersionCounts(found["tasks"], found["suspect"])
