"""The page of one crash group: how it is spread, and its samples one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.shortcuts import get_object_or_404

from grading.models import CrashGroup, Fingerprint, GroupEvent, Sample
from grading.permissions import visible_submissions
from grading.queries import evidence
from grading.queries.samples import SampleView, sample_view
from grading.suggestions import Suggestion, suggest

SPREAD_ROWS = 12
SPREAD_COLUMNS = 8
LEVELS = 5
EVENTS_SHOWN = 100
SIMILAR_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """``level`` 0 to 5 is the shade."""

    task: str
    samples: int
    level: int


@dataclass(frozen=True, slots=True)
class SpreadRow:
    model: str
    samples: int
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Spread:
    """Samples by model and task: the most frequent of each; ``models`` and ``tasks`` there are."""

    columns: list[str]
    rows: list[SpreadRow]
    models: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Share:
    name: str
    samples: int


@dataclass(frozen=True, slots=True)
class Place:
    """The sample shown: its number from 1 and its neighbours', 0 where there is none."""

    number: int
    of: int
    submission: str
    task_slug: str
    index: int

    @property
    def previous(self) -> int:
        return self.number - 1

    @property
    def next(self) -> int:
        return self.number + 1 if self.number < self.of else 0


@dataclass(frozen=True, slots=True)
class GroupView:
    """Everything on the page but the sample; ``shares``: worker, tier, Python in turn."""

    group: CrashGroup
    samples: int
    suggestion: Suggestion | None
    reference: str
    fingerprints: list[Fingerprint]
    spread: Spread
    shares: list[tuple[str, list[Share]]]
    events: list[GroupEvent]
    similar: list[CrashGroup]


def group_or_404(public_id: str) -> CrashGroup:
    rows = CrashGroup.objects.select_related(
        "assignee", "fixed_in_version__benchmark", "merged_into"
    )
    return get_object_or_404(rows, public_id=public_id)


def group_view(group: CrashGroup) -> GroupView:
    """Under thirty queries, whatever the size of the group."""
    samples = Sample.objects.filter(fingerprint__group=group)
    facts = next((found for _, found in evidence.evidence_of([group])), None)
    fingerprints = list(group.fingerprints.all())
    return GroupView(
        group=group,
        samples=facts.samples if facts else 0,
        suggestion=suggest(facts) if facts else None,
        reference=facts.reference if facts else "",
        fingerprints=fingerprints,
        spread=_spread(samples),
        shares=[
            ("Worker", _shares(samples, "current_attempt__worker")),
            ("Tier", _shares(samples, "current_attempt__tier")),
            ("Python", _shares(samples, "current_attempt__python")),
        ],
        events=list(group.events.select_related("by")[:EVENTS_SHOWN]),
        similar=_similar(group, fingerprints),
    )


def _shares(samples: QuerySet[Sample], path: str) -> list[Share]:
    rows = samples.values_list(path).annotate(n=Count("pk")).order_by("-n", path)
    return [Share(name or "none", n) for name, n in rows[:SPREAD_ROWS]]


def _spread(samples: QuerySet[Sample]) -> Spread:
    counts = (
        samples.values_list("submission__language_model__name", "task__task_id")
        .annotate(n=Count("pk"))
        .order_by()
    )
    cells: Counter[tuple[str, str]] = Counter()
    models: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for model, task, n in counts:
        cells[model, task] += n
        models[model] += n
        tasks[task] += n
    columns = [task for task, _ in tasks.most_common(SPREAD_COLUMNS)]
    most = max(cells.values(), default=1)
    rows = [
        SpreadRow(model, n, _cells(cells, model, columns, most))
        for model, n in models.most_common(SPREAD_ROWS)
    ]
    return Spread(columns, rows, len(models), len(tasks))


def _cells(
    counts: Counter[tuple[str, str]], model: str, columns: Sequence[str], most: int
) -> list[Cell]:
    found = [(task, counts[model, task]) for task in columns]
    return [Cell(task, n, -(-LEVELS * n // most)) for task, n in found]


def _similar(group: CrashGroup, fingerprints: Sequence[Fingerprint]) -> list[CrashGroup]:
    """Groups of the same kind and type, to merge with."""
    mine = dict(tuple(part) for one in fingerprints for part in one.parts)
    others = CrashGroup.objects.filter(kind=group.kind, fingerprints__isnull=False)
    if exception := mine.get("type"):
        others = others.filter(title__contains=exception)
    if task := mine.get("task"):
        others = others.filter(title__startswith=f"{task}:")
    return list(others.exclude(pk=group.pk).distinct()[:SIMILAR_SHOWN])


def shown_sample(group: CrashGroup, number: str, user: User) -> tuple[Place, SampleView] | None:
    """Sample ``number`` of the group, counted from 1, one of each model first; None of none."""
    ordered = _one_of_each_model_first(Sample.objects.filter(fingerprint__group=group))
    of = ordered.count()
    if not of:
        return None
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    at = min(max(wanted, 1), of)
    pk = ordered.values_list("pk", flat=True)[at - 1]
    sample = Sample.objects.select_related(
        "task__version__benchmark", "generation", "submission__version__benchmark"
    ).get(pk=pk)
    place = Place(at, of, sample.submission.public_id, sample.task.slug, sample.index)
    return place, sample_view(sample, True, visible_submissions(user))


def _one_of_each_model_first(samples: QuerySet[Sample]) -> QuerySet[Any]:
    model = "submission__language_model"
    turn = Window(RowNumber(), partition_by=[F(model)], order_by=[F("pk").asc()])
    return samples.annotate(turn=turn).order_by("turn", f"{model}__name", "pk")
