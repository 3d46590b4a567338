"""What the submission pages read: how far it is, what came out, and its samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Substr

from grading.engine.outcome import Outcome
from grading.engine.passk import mean_fraction, mean_pass_at_k
from grading.models import Addition, Sample, Submission, TaskScore
from grading.queries import peers
from grading.queries.paging import page_of

SHOWN_K = (1, 5, 10, 100)
SAMPLES_PER_PAGE = 50
TASKS_PER_PAGE = 50
DETAIL_CHARS = 160


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in a list. ``outcome`` is empty while it has none."""

    task_id: str
    task_slug: str
    index: int
    state: str
    outcome: str
    passed: int | None
    total: int | None
    wall_s: float | None
    graded_at: datetime | None
    detail: str
    fault: str


@dataclass(frozen=True, slots=True)
class PassAtK:
    """``value`` None has a ``reason``."""

    k: int
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A submission's score on one task; ``fraction`` None where no sample is graded."""

    task_id: str
    slug: str
    n: int
    c: int
    fraction: float | None
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RunFact:
    """Conditions that ``samples`` of the submission were graded under."""

    tier: str
    python: str
    grader_version: int
    samples: int


@dataclass(frozen=True, slots=True)
class Result:
    """A submission's figures. ``tasks`` holds only tasks that have a graded sample."""

    tasks: list[TaskRow]
    task_count: int
    failed: int
    cancelled: int
    facts: list[RunFact] = field(default_factory=list)
    sealed_share: float | None = None

    @property
    def counts(self) -> dict[str, int]:
        return dict(sum((Counter(task.counts) for task in self.tasks), Counter()))

    @property
    def samples(self) -> int:
        return sum(task.n for task in self.tasks)

    @property
    def n_min(self) -> int:
        return min((task.n for task in self.tasks), default=0)

    @property
    def n_max(self) -> int:
        return max((task.n for task in self.tasks), default=0)

    @property
    def solved(self) -> int:
        return sum(task.c > 0 for task in self.tasks)

    @property
    def never(self) -> int:
        return len(self.tasks) - self.solved

    @property
    def complete(self) -> bool:
        return len(self.tasks) == self.task_count

    @property
    def pass_at_1(self) -> float | None:
        return mean_pass_at_k([(task.n, task.c) for task in self.tasks], 1)

    @property
    def mean_fraction(self) -> float | None:
        return mean_fraction((task.n, task.n * (task.fraction or 0)) for task in self.tasks)

    @property
    def pass_at_k(self) -> list[PassAtK]:
        """For k = 1 and every shown k that some task has samples for."""
        shown = [k for k in SHOWN_K if k == 1 or k <= self.n_max]
        return [self._pass_at(k) for k in shown]

    def _pass_at(self, k: int) -> PassAtK:
        value = mean_pass_at_k([(task.n, task.c) for task in self.tasks], k)
        if value is not None:
            return PassAtK(k, value)
        if not self.tasks:
            return PassAtK(k, None, "no sample is graded")
        return PassAtK(k, None, f"needs {k} samples on every task, one has {self.n_min}")


def sample_states(submission: Submission) -> dict[str, int]:
    state = Sample.State
    return Sample.objects.filter(submission=submission).aggregate(
        done=Count("pk", filter=Q(state=state.DONE)),
        queued=Count("pk", filter=Q(state=state.QUEUED)),
        cancelled=Count("pk", filter=Q(state=state.CANCELLED)),
        failed=Count("pk", filter=Q(state=state.PLATFORM_FAILED)),
        faulted=Count("pk", filter=Q(state=state.QUEUED) & ~Q(platform_failure="")),
    )


def additions(submission: Submission) -> list[Addition]:
    """Files added to it later, with who added them; at most one query."""
    return list(submission.additions.select_related("by")) if submission.added_at else []


def outcome_counts(scores: QuerySet[TaskScore]) -> dict[str, int]:
    """Samples per outcome, summed over task scores; one query."""
    sums = scores.aggregate(
        **{
            Outcome.PASS.value: Sum("c"),
            Outcome.ASSERTION_FAIL.value: Sum("assertion_fail"),
            Outcome.ERROR.value: Sum("error"),
            Outcome.TIMEOUT.value: Sum("timeout"),
            Outcome.SYNTAX_ERROR.value: Sum("syntax_error"),
        }
    )
    return {outcome: number or 0 for outcome, number in sums.items()}


def score_counts(score: TaskScore) -> dict[str, int]:
    return {
        Outcome.PASS.value: score.c,
        Outcome.ASSERTION_FAIL.value: score.assertion_fail,
        Outcome.ERROR.value: score.error,
        Outcome.TIMEOUT.value: score.timeout,
        Outcome.SYNTAX_ERROR.value: score.syntax_error,
    }


def graded_samples(submission: Submission) -> QuerySet[Sample]:
    return Sample.objects.filter(submission=submission, current_attempt__isnull=False)


def rows(samples: QuerySet[Sample]) -> list[Row]:
    """One query, no large text read."""
    found = samples.values_list(
        "task__task_id",
        "task__slug",
        "index",
        "state",
        "current_attempt__outcome",
        "current_attempt__passed",
        "current_attempt__total",
        "current_attempt__wall_s",
        "current_attempt__created_at",
        Substr("current_attempt__detail", 1, DETAIL_CHARS),
        Substr("platform_failure", 1, DETAIL_CHARS),
    )
    return [_row(values) for values in found]


def _row(values: tuple[Any, ...]) -> Row:
    *place, outcome, passed, total, wall_s, at, detail, fault = values
    return Row(*[*place, outcome or "", passed, total, wall_s, at, detail or "", fault or ""])


def result(submission: Submission) -> Result:
    """Figures of a submission, finished or not; five queries."""
    states = sample_states(submission)
    facts, sealed_share = _facts(submission)
    return Result(
        tasks=_task_rows(submission),
        task_count=submission.version.tasks.count(),
        failed=states["failed"],
        cancelled=states["cancelled"],
        facts=facts,
        sealed_share=sealed_share,
    )


def _task_rows(submission: Submission) -> list[TaskRow]:
    scores = (
        TaskScore.objects.filter(submission=submission, n__gt=0)
        .annotate(task_name=F("task__task_id"), task_slug=F("task__slug"))
        .order_by("task__position")
    )
    return [
        TaskRow(
            task_id=score.task_name,
            slug=score.task_slug,
            n=score.n,
            c=score.c,
            fraction=score.fraction_sum / score.n,
            counts=score_counts(score),
        )
        for score in scores
    ]


def _facts(submission: Submission) -> tuple[list[RunFact], float | None]:
    """Conditions by number of samples; share of the targets that were asked which were sealed."""
    # Only here was every target asked.
    asked = Q(current_attempt__outcome__in=[Outcome.PASS.value, Outcome.ASSERTION_FAIL.value])
    groups = (
        graded_samples(submission)
        .values_list(
            "current_attempt__tier",
            "current_attempt__python",
            "current_attempt__grader_version",
        )
        .annotate(
            samples=Count("pk"),
            sealed=Sum("current_attempt__sealed", filter=asked, default=0),
            targets=Sum("current_attempt__total", filter=asked, default=0),
        )
        .order_by("-samples")
    )
    facts, sealed, targets = [], 0, 0
    for *fact, sealed_here, targets_here in groups:
        facts.append(RunFact(*fact))
        sealed, targets = sealed + sealed_here, targets + targets_here
    return facts, sealed / targets if targets else None


TASK_ORDERS = {
    "fraction": lambda row: (row.fraction, row.c),
    "-fraction": lambda row: (-row.fraction, -row.c),
    "passing": lambda row: row.c / row.n,
    "-passing": lambda row: -row.c / row.n,
    "task": lambda row: 0,  # stable: position in the benchmark
}


def task_page(result: Result, order: str, number: str) -> Page[TaskRow]:
    """One page of a result's tasks; an unknown order is the default one."""
    key = TASK_ORDERS.get(order, TASK_ORDERS["fraction"])
    return Paginator(sorted(result.tasks, key=key), TASKS_PER_PAGE).get_page(number)


PLATFORM = "platform"
WAITING = "waiting"
SAMPLE_FILTERS = [outcome.value for outcome in Outcome] + [PLATFORM, WAITING, *peers.DIFFERENCES]


def samples_with(submission: Submission, outcome: str = "") -> QuerySet[Sample]:
    """Its samples, of one outcome if any. ``outcome`` also takes ``platform``, ``waiting`` and
    the ways to differ from another grader's verdict.
    """
    if outcome in peers.DIFFERENCES:
        return peers.with_both_verdicts(submission).filter(peers.DIFFERENCES[outcome])
    samples = Sample.objects.filter(submission=submission)
    if outcome == PLATFORM:
        return samples.filter(state=Sample.State.PLATFORM_FAILED)
    if outcome == WAITING:
        return samples.filter(state=Sample.State.QUEUED)
    return samples.filter(current_attempt__outcome=outcome) if outcome else samples


def sample_page(
    submission: Submission, outcome: str = "", task_slug: str = "", number: str = "1"
) -> Page[Row]:
    """Samples in task order; ``outcome`` as for `samples_with`."""
    samples = samples_with(submission, outcome)
    if task_slug:
        samples = samples.filter(task__slug=task_slug)
    ordered = samples.order_by("task__position", "index")
    return page_of(ordered, SAMPLES_PER_PAGE, number, rows)
