"""What one submission came to: the figures of a board row, from counts per task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from grading.engine.outcome import Outcome
from grading.engine.passk import (
    Counts,
    TimeoutPolicy,
    counts_under,
    mean_pass_at_k,
    pass_at_k,
)
from leaderboard.statistics import Interval, plus_two_t

KS = (1, 5, 10, 100)


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks of one submission alike in n, c and timeouts; these three are per task.

    ``fraction_sum`` and ``outcomes`` are sums over all samples of all ``tasks`` of the group.
    """

    n: int
    c: int
    timed_out: int
    tasks: int
    fraction_sum: float
    outcomes: dict[Outcome, int]


@dataclass(frozen=True, slots=True)
class Figures:
    """Scores are 0..1 and cover the tasks with at least one graded sample.

    ``pass_at`` has every k of `KS`; None where a covered task has fewer than k samples
    (``short[k]`` such tasks). ``full_coverage`` holds whatever the timeout policy leaves out.
    ``interval`` belongs to ``pass_at[score]``, and so do the others to their k.
    """

    tasks: int
    covered: int
    full_coverage: bool
    n_min: int
    n_max: int
    solved: int
    score: int
    pass_at: dict[int, float | None]
    short: dict[int, int]
    intervals: dict[int, Interval | None]
    mean_fraction: float | None
    outcomes: dict[Outcome, int]

    @property
    def interval(self) -> Interval | None:
        return self.intervals[self.score]

    def why_missing(self, k: int) -> str:
        """Why ``pass_at[k]`` is None, in words; empty where it has a value."""
        if self.pass_at[k] is not None:
            return ""
        if not self.covered:
            return "no graded sample"
        if self.short[k] < self.covered:
            return f"needs {k} samples on every task; {self.short[k]} of {self.covered} have fewer"
        return f"needs {k} samples on every task, this run has {self.n_max}"


def figures(
    groups: Sequence[Group], tasks: int, score: int = 1, timeouts: TimeoutPolicy = "zero"
) -> Figures:
    """Figures of one submission on a version of ``tasks`` tasks; ``score``: a k of `KS`."""
    counted = [(one, counts_under(timeouts, one.n, one.c, one.timed_out)) for one in groups]
    counted = [(group, counts) for group, counts in counted if counts[0]]
    alike: Counter[Counts | None] = Counter()
    for group, counts in counted:
        alike[counts] += group.tasks
    sizes = [n for _, (n, _) in counted]
    pass_at = {k: mean_pass_at_k(alike, k) for k in KS}
    return Figures(
        tasks=tasks,
        covered=alike.total(),
        full_coverage=0 < tasks == sum(group.tasks for group in groups if group.n),
        n_min=min(sizes, default=0),
        n_max=max(sizes, default=0),
        solved=sum(group.tasks for group, (_, c) in counted if c),
        score=score,
        pass_at=pass_at,
        short={k: sum(group.tasks for group, (n, _) in counted if n < k) for k in KS},
        intervals={k: None if pass_at[k] is None else _interval(alike, k) for k in KS},
        mean_fraction=_mean_fraction(counted),
        outcomes={outcome: sum(group.outcomes[outcome] for group in groups) for outcome in Outcome},
    )


def _interval(alike: Mapping[Counts | None, int], k: int) -> Interval | None:
    values: list[float] = []
    for counts, tasks in alike.items():
        value = None if counts is None else pass_at_k(*counts, k)
        if value is not None:
            values += [value] * tasks
    return plus_two_t(values)


def _mean_fraction(counted: Sequence[tuple[Group, Counts]]) -> float | None:
    """The tasks of a group share n, so the mean over tasks needs only the sum of each group."""
    tasks = sum(group.tasks for group, _ in counted)
    return fsum(group.fraction_sum / n for group, (n, _) in counted) / tasks if tasks else None
