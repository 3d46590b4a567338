"""The triage queue: groups of failures, what to filter them by, and what is at stake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.core.paginator import Page
from django.db.models import Count, Exists, FloatField, Max, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Cast, Coalesce

from grading import triage
from grading.models import CrashGroup, Sample
from grading.permissions import Action, people_who_may
from grading.queries import evidence
from grading.queries.paging import page_of
from grading.suggestions import Suggestion

PER_PAGE = 25
KINDS = (
    *("assertion", "exception", "syntax", "denied import", "timeout"),
    *("signal", "exit", "ended", "platform"),
)
OUTCOMES = {
    "assertion": "assertion_fail",
    "syntax": "syntax_error",
    "timeout": "timeout",
    "platform": "platform",
}
SORTS = {
    "stake": ("-stake", "-samples"),
    "newest": ("-first_seen_at",),
    "samples": ("-samples",),
    "models": ("-models", "-samples"),
}
# Fields of a sample by the name of their filter.
_OF_SAMPLE = {
    "benchmark": "task__version__benchmark__slug",
    "task": "task__task_id",
    # One row for each sample still: a task has a flag once.
    "flag": "task__flags__name",
    "model": "submission__language_model__name",
    "submission": "submission__public_id",
    "worker": "current_attempt__worker",
    "tier": "current_attempt__tier",
    "python": "current_attempt__python",
}
OPEN_STATES = "open"
ANY_STATE = "all"
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty means any; ``state`` empty means open. ``assignee`` is a user name or `NOBODY`.

    ``flag``: of the tasks, by the task audit.
    """

    q: str = ""
    state: str = ""
    kind: str = ""
    benchmark: str = ""
    task: str = ""
    flag: str = ""
    model: str = ""
    submission: str = ""
    worker: str = ""
    tier: str = ""
    python: str = ""
    assignee: str = ""
    sort: str = ""

    def query(self, **changes: str) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        return urlencode({name: value for name, value in values.items() if value})

    @property
    def active(self) -> bool:
        return bool(replace(self, sort="").query())

    @property
    def rare(self) -> bool:
        """Whether one of the filters is set that stand behind *more*."""
        names = ("submission", "worker", "tier", "python", "assignee")
        return any(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class Row:
    """One group. ``stake`` in points of pass@1, summed over public submissions; counts are of
    the samples that the filters let through."""

    pk: int
    public_id: str
    title: str
    kind: str
    outcome: str
    state: CrashGroup.State
    assignee: str
    samples: int
    models: int
    tasks: int
    stake: float
    last_at: datetime | None
    suggestion: Suggestion | None


def groups(filters: Filters) -> QuerySet[CrashGroup]:
    """The groups that match, with their counts, in the order asked for."""
    held = _held(filters)
    of = "fingerprints__samples"
    found = _matching(filters)
    if filters.state != ANY_STATE or held:
        # Before the counting, so that a page's total needs none of it.
        found = found.filter(Exists(_samples(filters).filter(fingerprint__group=OuterRef("pk"))))
    found = found.annotate(
        samples=Count(of, filter=held),
        models=Count(f"{of}__submission__language_model", filter=held, distinct=True),
        tasks=Count(f"{of}__task__task_id", filter=held, distinct=True),
        last_at=Max(f"{of}__current_attempt__created_at", filter=held),
        stake=Coalesce(
            Sum(
                100.0 / Cast(f"{of}__submission__sample_count", FloatField()),
                filter=held
                & Q(
                    **{
                        f"{of}__submission__visibility": "public",
                        f"{of}__current_attempt__isnull": False,
                    }
                ),
            ),
            0.0,
        ),
    )
    return found.order_by(*SORTS.get(filters.sort, SORTS["stake"]), "pk")


def _matching(filters: Filters) -> QuerySet[CrashGroup]:
    found = CrashGroup.objects.all()
    if not filters.state or filters.state == OPEN_STATES:
        found = found.filter(state__in=triage.OPEN)
    elif filters.state != ANY_STATE:
        found = found.filter(state=filters.state)
    if filters.kind:
        found = found.filter(kind=filters.kind)
    if filters.q:
        found = found.filter(Q(title__icontains=filters.q) | Q(public_id=filters.q))
    if filters.assignee == NOBODY:
        found = found.filter(assignee=None)
    elif filters.assignee:
        found = found.filter(assignee__username=filters.assignee)
    return found


def _held(filters: Filters) -> Q:
    """The condition on samples, as seen from a group."""
    held = Q()
    for name, path in _OF_SAMPLE.items():
        if value := getattr(filters, name):
            held &= Q(**{f"fingerprints__samples__{path}": value})
    return held


def _samples(filters: Filters) -> QuerySet[Sample]:
    """The samples that the filters let through."""
    chosen = {path: getattr(filters, name) for name, path in _OF_SAMPLE.items()}
    return Sample.objects.filter(**{path: value for path, value in chosen.items() if value})


def queue_page(filters: Filters, number: str) -> Page[Row]:
    """One page with suggestions; the number of queries does not depend on its length."""
    return page_of(groups(filters).select_related("assignee"), PER_PAGE, number, rows)


def rows(found: QuerySet[Any]) -> list[Row]:
    """Groups with their counts as lines of the queue, each with its suggestion."""
    shown = list(found)
    hints = evidence.suggestions(shown)
    return [
        Row(
            pk=group.pk,
            public_id=group.public_id,
            title=group.title,
            kind=group.kind,
            outcome=OUTCOMES.get(group.kind, "error"),
            state=CrashGroup.State(group.state),
            assignee=group.assignee.get_username() if group.assignee else "",
            samples=group.samples,
            models=group.models,
            tasks=group.tasks,
            stake=group.stake,
            last_at=group.last_at,
            suggestion=hints.get(group.pk),
        )
        for group in shown
    ]


def assignable() -> QuerySet[User]:
    """People who may work on groups."""
    return people_who_may(Action.TRIAGE).order_by("username")
