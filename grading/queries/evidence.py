"""How the samples of groups are spread, counted for :mod:`grading.suggestions`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from grading.models import (
    Attempt,
    CrashGroup,
    Fingerprint,
    Sample,
    Submission,
    Task,
    TaskFlag,
    TaskScore,
)
from grading.suggestions import Evidence, Suggestion, suggest

GROUP = "fingerprint__group"


def suggestions(groups: Sequence[CrashGroup]) -> dict[int, Suggestion]:
    """The suggestion for each group that has one, by primary key."""
    found = ((group.pk, suggest(facts)) for group, facts in evidence_of(groups))
    return {pk: hint for pk, hint in found if hint is not None}


def evidence_of(groups: Sequence[CrashGroup]) -> list[tuple[CrashGroup, Evidence]]:
    """What there is to know of each group that has samples; nine queries for all."""
    ids = [group.pk for group in groups]
    samples = Sample.objects.filter(fingerprint__group__in=ids)
    counts = _counts(samples)
    workers = _most(samples, "current_attempt__worker")
    models = _most(samples, "submission__language_model__name")
    tasks = _tasks_of(samples)
    targets = _targets_of(ids)
    references = _references(tasks)
    passes = _passes(tasks)
    flags = _flags(tasks)
    all_workers = Attempt.objects.aggregate(n=Count("worker", distinct=True))["n"]
    all_models = Submission.objects.aggregate(n=Count("language_model", distinct=True))["n"]
    return [
        (
            group,
            Evidence(
                kind=group.kind,
                title=group.title,
                **counts[group.pk],
                passes=sum(passes.get(task, 0) for task in tasks[group.pk]),
                reference=_reference(
                    [references[task] for task in tasks[group.pk] if task in references],
                    targets.get(group.pk, set()),
                ),
                flags=frozenset().union(*(flags[task] for task in tasks[group.pk])),
                worker=workers[group.pk],
                workers=all_workers,
                model=models[group.pk],
                graded_models=all_models,
            ),
        )
        for group in groups
        if group.pk in counts
    ]


def _counts(samples: QuerySet[Sample]) -> dict[int, dict[str, int]]:
    attempt = "current_attempt"
    # Whoever misses the only target of a task meets no other: that says nothing.
    one_missed = Q(
        **{f"{attempt}__total": F(f"{attempt}__passed") + 1, f"{attempt}__passed__gt": 0}
    )
    rows = (
        samples.values(GROUP)
        .annotate(
            n=Count("pk"),
            of_models=Count("submission__language_model", distinct=True),
            near=Count("pk", filter=one_missed),
            starved=Count("pk", filter=Q(**{f"{attempt}__starved": True})),
        )
        .order_by()
    )
    return {
        row[GROUP]: {
            "samples": row["n"],
            "models": row["of_models"],
            "near": row["near"],
            "starved": row["starved"],
        }
        for row in rows
    }


def _most(samples: QuerySet[Sample], path: str) -> dict[int, tuple[str, int]]:
    """The most frequent value of each group and how often it is there."""
    rows = samples.values_list(GROUP, path).annotate(n=Count("pk")).order_by("n")
    most: dict[int, tuple[str, int]] = defaultdict(lambda: ("", 0))
    most.update({group: (name or "", n) for group, name, n in rows})
    return most


def _tasks_of(samples: QuerySet[Sample]) -> dict[int, set[int]]:
    """Tasks of the groups that mean something for one task only."""
    scoped = samples.filter(fingerprint__kind__in=["assertion", "timeout"])
    found: dict[int, set[int]] = defaultdict(set)
    for group, task in scoped.order_by().values_list(GROUP, "task_id").distinct():
        found[group].add(task)
    return found


def _targets_of(group_ids: Iterable[int]) -> dict[int, set[int]]:
    """Indexes of the targets that the assertion groups miss."""
    found: dict[int, set[int]] = defaultdict(set)
    rows = Fingerprint.objects.filter(group__in=group_ids, kind="assertion")
    for group, parts in rows.values_list("group_id", "parts"):
        word, _, number = dict(parts).get("where", "").partition(" ")
        if word == "target" and number.isdigit():
            found[group].add(int(number) - 1)
    return found


def _references(tasks: dict[int, set[int]]) -> dict[int, Any]:
    wanted = set().union(*tasks.values())
    graded = Task.objects.filter(pk__in=wanted).exclude(reference_verdict=None)
    return dict(graded.values_list("pk", "reference_verdict"))


def _flags(tasks: dict[int, set[int]]) -> dict[int, set[str]]:
    wanted = set().union(*tasks.values())
    found: dict[int, set[str]] = defaultdict(set)
    for task, name in TaskFlag.objects.filter(task__in=wanted).values_list("task_id", "name"):
        found[task].add(name)
    return found


def _passes(tasks: dict[int, set[int]]) -> dict[int, int]:
    wanted = set().union(*tasks.values())
    rows = TaskScore.objects.filter(task__in=wanted).order_by().values_list("task_id")
    return dict(rows.annotate(Sum("c")))


def _reference(verdicts: Sequence[dict[str, Any]], targets: set[int]) -> str:
    """How the reference solutions of a group's tasks came out."""
    if not verdicts:
        return ""
    failed = [verdict for verdict in verdicts if verdict["outcome"] != "pass"]
    missed = {row["index"] for verdict in failed for row in verdict["targets"] if not row["true"]}
    if targets & missed:
        return "misses"
    return "fails" if failed else "passes"
