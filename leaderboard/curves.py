"""What more tries would bring, and what failures cost: one submission's tasks looked at closer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from grading.engine.outcome import Outcome
from grading.engine.passk import mean_pass_at_k, pass_at_k
from leaderboard.bootstrap import percentile_bootstrap
from leaderboard.cards import TaskLine
from leaderboard.statistics import Interval, plus_two_t

MOST_POINTS = 24


@dataclass(frozen=True, slots=True)
class Point:
    """pass@k with its interval."""

    k: int
    value: float
    interval: Interval


def curve(tasks: Sequence[TaskLine]) -> list[Point]:
    """pass@k for k from 1 to the fewest samples of a graded task, evenly spread over their logs."""
    counts = [(task.n, task.c) for task in tasks if task.n]
    least = min((n for n, _ in counts), default=0)
    points = []
    for k in sorted({round(least ** (i / MOST_POINTS)) for i in range(MOST_POINTS + 1)} - {0}):
        values = [value for n, c in counts if (value := pass_at_k(n, c, k)) is not None]
        score, held = mean_pass_at_k(counts, k), plus_two_t(values)
        if score is not None and held is not None:
            points.append(Point(k, score, held))
    return points


def cross_check(tasks: Sequence[TaskLine]) -> Interval | None:
    """The percentile bootstrap of pass@1 over the graded tasks."""
    return percentile_bootstrap([task.c / task.n for task in tasks if task.n])


def lost(tasks: Sequence[TaskLine]) -> dict[str, float]:
    """By outcome what it takes from pass@1, 0..1, the most first; with pass@1 they make 1."""
    graded = [task for task in tasks if task.n]
    shares = {
        outcome.value: fmean(task.outcomes[outcome.value] / task.n for task in graded)
        for outcome in Outcome
        if graded and outcome is not Outcome.PASS
    }
    return dict(sorted(((k, v) for k, v in shares.items() if v), key=lambda one: -one[1]))
