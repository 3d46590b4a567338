"""Exact tests of two models on the same tasks, by counting. Standard library only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

# A sum of this many distinct values takes a fraction of a second; beyond it there is no p.
MOST_SUMS = 20_000


@dataclass(frozen=True, slots=True)
class TwoByTwo:
    """Numbers of tasks by who solves them."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def mcnemar_p(self) -> float:
        return mcnemar_p(self.only_a, self.only_b)


def two_by_two(tasks: Iterable[tuple[bool, bool]]) -> TwoByTwo:
    """Count tasks, given for each whether a and whether b solves it."""
    seen = list(tasks)
    return TwoByTwo(
        both=seen.count((True, True)),
        only_a=seen.count((True, False)),
        only_b=seen.count((False, True)),
        neither=seen.count((False, False)),
    )


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided exact McNemar test: were the tasks only one of them solves a fair coin's throws?

    p = min(1, 2 sum_{j <= min(b, c)} C(b + c, j) / 2^(b + c)), and 1 where both solve the same
    tasks (McNemar 1947, with the binomial in place of chi square). Correctly rounded. For one
    sample per task; with more, their tasks are not just solved or not.
    """
    if min(only_a, only_b) < 0:
        raise ValueError(f"only_a={only_a}, only_b={only_b}: counts are needed")
    throws = only_a + only_b
    ways = tail = 1
    for j in range(min(only_a, only_b)):
        ways = ways * (throws - j) // (j + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**throws)


def sign_flip_p(differences: Sequence[Fraction]) -> float | None:
    """Share of all 2^M choices of signs whose sum is as far from 0 as that of ``differences``.

    The exact two-sided permutation test of a paired mean (Fisher 1935, "The Design of
    Experiments"): without a difference between the models each sign is a coin's
    throw. Sums are counted instead of choices enumerated; None where they are too many.
    """
    scale = lcm(*(value.denominator for value in differences))
    steps = [abs(int(value * scale)) for value in differences if value]
    if sum(steps) > MOST_SUMS:
        return None
    observed = abs(int(sum(differences) * scale))
    ways = _signed_sums(steps)
    extreme = sum(times for total, times in ways.items() if abs(total) >= observed)
    return extreme / 2 ** len(steps)


def _signed_sums(steps: Sequence[int]) -> dict[int, int]:
    """In how many ways signs give each sum."""
    ways = {0: 1}
    for step in steps:
        following: dict[int, int] = defaultdict(int)
        for total, times in ways.items():
            following[total + step] += times
            following[total - step] += times
        ways = following
    return ways
