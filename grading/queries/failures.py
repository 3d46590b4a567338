"""The list of failed samples behind triage, and what to filter it by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.db.models.functions import Substr

from grading.engine.outcome import Outcome
from grading.models import Sample
from grading.queries.paging import page_of
from grading.queries.submissions import PLATFORM

CRASH_OUTCOMES = [Outcome.ERROR.value, Outcome.TIMEOUT.value, Outcome.SYNTAX_ERROR.value]
PER_PAGE = 50
DETAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty means any. ``group``, ``task``, ``model``, ``submission``: public id, task id, model
    name, public id. Without a group, misses are left out unless they are asked for.

    ``review`` not empty: only samples with signs of a trick, whatever their outcome.
    """

    group: str = ""
    outcome: str = ""
    exception: str = ""
    task: str = ""
    model: str = ""
    submission: str = ""
    review: str = ""

    def query(self, **changes: str) -> str:
        """Query string of these filters with ``changes``."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        return urlencode({name: value for name, value in values.items() if value})

    @property
    def active(self) -> bool:
        return bool(self.query())


@dataclass(frozen=True, slots=True)
class Crash:
    """One crashed sample; ``outcome`` is ``platform`` for a failure of the platform."""

    submission: str
    model: str
    benchmark: str
    task_id: str
    task_slug: str
    index: int
    outcome: str
    phase: str
    exception: str
    detail: str
    worker: str
    tier: str
    tricks: tuple[str, ...]
    at: datetime | None


def _filtered(filters: Filters) -> QuerySet[Sample]:
    samples = _of_outcome(filters)
    if filters.group:
        samples = samples.filter(fingerprint__group__public_id=filters.group)
    if filters.exception:
        samples = samples.filter(current_attempt__exception=filters.exception)
    if filters.task:
        samples = samples.filter(task__task_id=filters.task)
    if filters.model:
        samples = samples.filter(submission__language_model__name__iexact=filters.model)
    if filters.submission:
        samples = samples.filter(submission__public_id=filters.submission)
    return samples


def _of_outcome(filters: Filters) -> QuerySet[Sample]:
    """The samples by how they ended."""
    samples = Sample.objects.all()
    if filters.review:
        samples = samples.filter(current_attempt__isnull=False).exclude(current_attempt__tricks=[])
    if filters.outcome == PLATFORM:
        return samples.filter(state=Sample.State.PLATFORM_FAILED)
    if filters.outcome:
        return samples.filter(current_attempt__outcome=filters.outcome)
    if filters.review or filters.group:
        return samples
    crashed = Q(current_attempt__outcome__in=CRASH_OUTCOMES)
    return samples.filter(crashed | Q(state=Sample.State.PLATFORM_FAILED))


def crash_page(filters: Filters, number: str) -> Page[Crash]:
    """Newest first; two queries."""
    ordered = _filtered(filters).order_by("-current_attempt_id", "-pk")
    return page_of(ordered, PER_PAGE, number, crashes)


def crashes(samples: QuerySet[Sample]) -> list[Crash]:
    """The samples as lines of the list; one query."""
    found = samples.values_list(
        "submission__public_id",
        "submission__language_model__name",
        "submission__version__benchmark__title",
        "task__task_id",
        "task__slug",
        "index",
        "current_attempt__outcome",
        "current_attempt__failure_phase",
        "current_attempt__exception",
        Substr("current_attempt__detail", 1, DETAIL_CHARS),
        "current_attempt__worker",
        "current_attempt__tier",
        "current_attempt__tricks",
        "current_attempt__created_at",
        Substr("platform_failure", 1, DETAIL_CHARS),
    )
    return [_crash(row) for row in found]


def _crash(row: tuple[Any, ...]) -> Crash:
    *place, outcome, phase, exception, detail, worker, tier, tricks, at, fault = row
    said = detail if outcome else fault
    words = [word or "" for word in (phase, exception, said, worker, tier)]
    return Crash(*[*place, outcome or PLATFORM, *words, tuple(tricks or ()), at])
