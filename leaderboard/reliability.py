"""What to expect when a model is asked again: one run's tasks, by repeated samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import TypeVar

from django.db.models import Count

from grading.engine.outcome import Outcome
from grading.engine.passk import Counts, mean_pass_at_k
from grading.models import Sample
from leaderboard.cards import TaskLine
from leaderboard.draws import best_at_k, g_pass_at_k, pass_hat_k
from leaderboard.precision import VarianceSplit, variance_split

One = TypeVar("One", bound=Hashable)
KS = (2, 5, 10, 100)
# Other outcomes score 0 whatever held before.
SCORED = (Outcome.PASS, Outcome.ASSERTION_FAIL)


@dataclass(frozen=True, slots=True)
class Draws:
    """Means over tasks of what k samples of one task come to, 0..1.

    ``any``, ``half`` and ``all`` of the k pass, half being at least ``at_least``; ``best`` is the
    best fraction among them, None where the stored samples do not cover every task.
    """

    k: int
    at_least: int
    any: float
    half: float
    all: float
    best: float | None


@dataclass(frozen=True, slots=True)
class Reliability:
    """``draws``: none where a task has one sample only, as ``split`` is None then."""

    draws: tuple[Draws, ...]
    split: VarianceSplit | None

    @property
    def rerun_se(self) -> float | None:
        """Standard error of pass@1 when only the samples are drawn again."""
        return self.split.rerun_se_squared**0.5 if self.split else None


def reliability(public_id: str, tasks: Sequence[TaskLine]) -> Reliability:
    """Of one submission's graded tasks, in one query."""
    counts = [(task.n, task.c) for task in tasks if task.n]
    least = min((n for n, _ in counts), default=0)
    if least < 2:
        return Reliability((), None)
    fractions = _fractions(public_id)
    return Reliability(
        tuple(_draws(k, counts, fractions) for k in KS if k <= least), variance_split(counts)
    )


def _draws(
    k: int, counts: Sequence[Counts], fractions: Sequence[tuple[tuple[Fraction, int], ...]]
) -> Draws:
    at_least = (k + 1) // 2
    return Draws(
        k,
        at_least,
        any=mean_pass_at_k(counts, k) or 0.0,
        half=_mean(counts, lambda one: g_pass_at_k(one[0], one[1], k, at_least)) or 0.0,
        all=_mean(counts, lambda one: pass_hat_k(one[0], one[1], k)) or 0.0,
        best=_mean(fractions, lambda held: best_at_k(_spread(held), k))
        if len(fractions) == len(counts)
        else None,
    )


def _mean(tasks: Sequence[One], value: Callable[[One], float | None]) -> float | None:
    """Over tasks, each distinct one computed once; None where one has no value."""
    alike = Counter(tasks)
    found = [(value(one), times) for one, times in alike.items()]
    if not found or any(one is None for one, _ in found):
        return None
    return fsum(one * times for one, times in found if one is not None) / alike.total()


def _spread(held: Sequence[tuple[Fraction, int]]) -> list[Fraction]:
    return [value for value, times in held for _ in range(times)]


def _fractions(public_id: str) -> list[tuple[tuple[Fraction, int], ...]]:
    """By task the fractions of its graded samples and how many have each, ascending."""
    graded = Sample.objects.filter(
        submission__public_id=public_id, current_attempt__isnull=False
    ).order_by()
    read = graded.values_list(
        "task_id", "current_attempt__outcome", "current_attempt__passed", "current_attempt__total"
    ).annotate(samples=Count("pk"))
    held: dict[int, Counter[Fraction]] = defaultdict(Counter)
    for task, outcome, passed, total, samples in read:
        scored = outcome in SCORED and total
        held[task][Fraction(passed, total) if scored else Fraction(0)] += samples
    return [tuple(sorted(found.items())) for found in held.values()]
