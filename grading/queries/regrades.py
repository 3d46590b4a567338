"""What the regrade pages read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Case, Count, IntegerField, Q, QuerySet, When
from django.shortcuts import get_object_or_404

from grading.engine.outcome import Outcome
from grading.models import BenchmarkVersion, Regrade, RegradeRun, Sample
from grading.regrade_results import PLATFORM, Result, Verdict
from grading.regrades import OPEN

PER_PAGE = 25
SAMPLES_PER_PAGE = 100
OUTCOMES = (*(outcome.value for outcome in Outcome), PLATFORM)


@dataclass(frozen=True, slots=True)
class Progress:
    """Runs of a regrade."""

    done: int
    of: int
    failed: int


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """``cells``: (new outcome, samples, whether it is the old one) in the order of `OUTCOMES`."""

    before: str
    cells: list[tuple[str, int, bool]]


@dataclass(frozen=True, slots=True)
class SampleLine:
    """A sample worth a look. ``why``: changed, flaky, failed by the platform or moved.

    ``runs``: each with the number of its attempt.
    """

    sample_id: int
    submission: str
    model: str
    task_id: str
    task_slug: str
    index: int
    before: Verdict | None
    runs: list[tuple[Verdict, int]]
    why: str
    applicable: bool


def regrade_page(number: str) -> Page[Any]:
    """Open ones first, then the newest; with counts of samples and runs."""
    open_first = Case(When(state__in=OPEN, then=0), default=1, output_field=IntegerField())
    rows = counted().annotate(order=open_first).order_by("order", "-created_at")
    return Paginator(rows, PER_PAGE).get_page(number)


def counted() -> QuerySet[Any]:
    """Regrades with how many samples they run, and runs in all and done."""
    return _regrades().annotate(
        samples=Count("runs__sample", distinct=True),
        runs_all=Count("runs", distinct=True),
        runs_done=Count("runs", filter=Q(runs__state=RegradeRun.State.DONE), distinct=True),
    )


def regrade_or_404(public_id: str) -> Regrade:
    return get_object_or_404(_regrades(), public_id=public_id)


def _regrades() -> QuerySet[Regrade]:
    return Regrade.objects.select_related("asked_by", "decided_by", "target__benchmark")


def progress(regrade: Regrade) -> Progress:
    states = Counter(dict(regrade.runs.order_by().values_list("state").annotate(n=Count("pk"))))
    failed = states[RegradeRun.State.PLATFORM_FAILED]
    return Progress(states[RegradeRun.State.DONE] + failed, states.total(), failed)


def versions_of(regrade: Regrade) -> QuerySet[BenchmarkVersion]:
    """Benchmark versions whose boards a regrade concerns."""
    versions = BenchmarkVersion.objects.filter(tasks__samples__regrade_runs__regrade=regrade)
    return versions.distinct().select_related("benchmark")


def matrix_rows(matrix: Counter[tuple[str, str]]) -> list[MatrixRow]:
    """Old outcomes that are there by new ones."""
    return [
        MatrixRow(old, [(new, matrix[old, new], new == old) for new in OUTCOMES])
        for old in OUTCOMES
        if any(matrix[old, new] for new in OUTCOMES)
    ]


def sample_page(found: Sequence[Result], carried: bool, number: str) -> Page[SampleLine]:
    """Samples whose verdict would change, or that could not be decided; two queries."""
    page: Page = Paginator(telling(found), SAMPLES_PER_PAGE).get_page(number)
    page.object_list = sample_lines(page.object_list, carried)
    return page


def telling(found: Iterable[Result]) -> list[Result]:
    """Those of samples worth a look, in order of their ids."""
    return [one for one in found if _why(one)]


def sample_lines(found: Iterable[Result], carried: bool) -> list[SampleLine]:
    """Results as lines of the list; two queries."""
    shown = {one.sample_id: one for one in found}
    samples = Sample.objects.filter(pk__in=shown).select_related(
        "task", "submission__language_model"
    )
    numbers = dict(
        RegradeRun.objects.filter(
            attempt__in=[x.attempt_id for y in shown.values() for x in y.runs]
        )
        .order_by()
        .values_list("attempt_id", "attempt__number")
    )
    lines = {row.pk: _line(row, shown[row.pk], numbers, carried) for row in samples}
    return [lines[pk] for pk in shown]


def _why(found: Result) -> str:
    if found.missing:
        return ""
    if found.failed:
        return "platform failure"
    if found.flaky:
        return "flaky"
    if found.moved:
        return "decided otherwise meanwhile"
    return "changed" if found.changed else ""


def _line(sample: Sample, found: Result, numbers: dict[int, int], carried: bool) -> SampleLine:
    return SampleLine(
        sample_id=sample.pk,
        submission=sample.submission.public_id,
        model=sample.submission.language_model.name,
        task_id=sample.task.task_id,
        task_slug=sample.task.slug,
        index=sample.index,
        before=found.before,
        runs=[(run, numbers[run.attempt_id]) for run in found.runs],
        why=_why(found),
        applicable=found.after is not None and not carried,
    )
