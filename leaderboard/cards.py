"""What a model's page shows: its submissions, and its tasks one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F
from django.http import Http404

from grading.models import BenchmarkVersion, LanguageModel, Submission, Task, TaskScore
from grading.permissions import Viewer, visible_submissions
from leaderboard.rows import Row, representing, rows_of, task_counts


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task of a submission; ``fraction`` None: it has no graded sample."""

    task_id: str
    slug: str
    n: int
    c: int
    fraction: float | None
    outcomes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Card:
    """A model: ``rows`` newest first, ``shown`` the one whose ``tasks`` are listed.

    ``public``: public ids of the rows that anybody may see; ``representing``: of those that stand
    for the model on a board. ``version``: that of ``shown``.
    """

    model: LanguageModel
    rows: tuple[Row, ...]
    public: frozenset[str]
    representing: frozenset[str]
    shown: Row
    version: BenchmarkVersion
    tasks: tuple[TaskLine, ...]

    @property
    def fractions(self) -> list[float | None]:
        return [task.fraction for task in self.tasks]


def card(slug: str, viewer: Viewer, public_id: str = "") -> Card:
    """The page of a model of which ``viewer`` may see at least one submission, else Http404.

    ``public_id`` picks the submission whose tasks are listed; by default the newest one that
    represents the model, else the newest.
    """
    submissions = list(
        visible_submissions(viewer)
        .filter(language_model__slug=slug)
        .select_related("language_model", "version__benchmark")
        .order_by("-created_at", "-pk")
    )
    if not submissions:
        raise Http404("no such model")
    scores = TaskScore.objects.filter(submission__in=[one.pk for one in submissions])
    rows = rows_of(submissions, scores, task_counts({one.version_id for one in submissions}))
    public = frozenset(
        one.public_id for one in submissions if one.visibility == Submission.Visibility.PUBLIC
    )
    standing = _representing([row for row in rows if row.public_id in public])
    wanted = [row for row in rows if row.public_id == public_id]
    shown = (wanted or [row for row in rows if row.public_id in standing] or rows)[0]
    submission = submissions[rows.index(shown)]
    return Card(
        model=submission.language_model,
        rows=tuple(rows),
        public=public,
        representing=standing,
        shown=shown,
        version=submission.version,
        tasks=tuple(task_lines(submission)),
    )


def successor(slug: str, viewer: Viewer) -> LanguageModel | None:
    """The model that the one with this slug was merged into, if ``viewer`` may see it."""
    seen = visible_submissions(viewer).order_by().values("language_model")
    return LanguageModel.objects.filter(merged__slug=slug, pk__in=seen).first()


def lowest_first(tasks: Sequence[TaskLine]) -> list[TaskLine]:
    """By fraction, tasks without a graded sample last."""
    return sorted(tasks, key=lambda task: 2.0 if task.fraction is None else task.fraction)


def _representing(rows: list[Row]) -> frozenset[str]:
    """Of public rows those on the board of each version the model was run on."""
    kept = [row for row in rows if row.state != Submission.State.CANCELLED]
    versions = {(row.benchmark_slug, row.version) for row in kept}
    chosen = [
        representing(row for row in kept if (row.benchmark_slug, row.version) == version)
        for version in versions
    ]
    return frozenset(row.public_id for rows_ in chosen for row in rows_)


def task_lines(submission: Submission) -> list[TaskLine]:
    """Every task of the submission's version, in order."""
    return task_lines_of(submission.version_id, [submission.public_id])[0]


def task_lines_of(version_id: int, public_ids: Sequence[str]) -> list[list[TaskLine]]:
    """Every task of a version, in order, for each of its submissions; in two queries."""
    scores = TaskScore.objects.filter(submission__public_id__in=set(public_ids))
    named = scores.annotate(public_id=F("submission__public_id"))
    held = {(one.public_id, one.task_id): one for one in named}
    tasks = Task.objects.filter(version=version_id).order_by("position")
    read = list(tasks.values_list("pk", "task_id", "slug"))
    return [
        [_task(task_id, slug, held.get((public_id, pk))) for pk, task_id, slug in read]
        for public_id in public_ids
    ]


def _task(task_id: str, slug: str, score: TaskScore | None) -> TaskLine:
    if score is None or not score.n:
        return TaskLine(task_id, slug, 0, 0, None, {})
    outcomes = {
        "pass": score.c,
        "assertion_fail": score.assertion_fail,
        "error": score.error,
        "timeout": score.timeout,
        "syntax_error": score.syntax_error,
    }
    return TaskLine(task_id, slug, score.n, score.c, score.fraction_sum / score.n, outcomes)
