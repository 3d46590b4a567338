"""Plus-two t: the interval beside a score and the paired test of two models.

Standard library only. Tasks are the sampling unit: a value per task already holds the noise of its
few samples (Miller 2024, "Adding Error Bars to Evals").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from operator import mul

LEVEL = 0.95
# Terms of the series only get smaller; those below this share of their sum no longer change it.
NEGLIGIBLE = 1e-20


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end: within 0..1 for a score, within -1..1 for a difference."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models on the same ``tasks``: ``difference`` is mean a minus mean b.

    ``p`` is two-sided; ``sd`` the standard deviation of the differences, None for one task.
    """

    tasks: int
    difference: float
    interval: Interval
    p: float
    sd: float | None


def plus_two_t(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Interval for the mean over tasks, given one value in 0..1 per task; None without tasks.

    One solved and one failed pseudo-task are added, then Student's t with M + 1 degrees of
    freedom is used and the result clipped. It keeps its coverage where all or no tasks are
    solved, which the plain normal interval does not. (It adds one success and one failure, as
    Agresti and Caffo do for proportions.)
    """
    if not values:
        return None
    count = len(values) + 2
    mean = (math.fsum(values) + 1) / count
    squares = math.fsum((value - mean) ** 2 for value in values) + mean**2 + (1 - mean) ** 2
    half = t_quantile((1 + level) / 2, count - 1) * math.sqrt(squares / ((count - 1) * count))
    return Interval(max(0.0, mean - half), min(1.0, mean + half))


def paired(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> Paired:
    """Compare two models by their values per task, in the same order of tasks.

    With d = a - b and the pseudo-differences +1 and -1 added: m = sum d / (M + 2),
    SS = sum d^2 + 2 - (M + 2) m^2, se^2 = SS / ((M + 1)(M + 2)), t = m / se with M + 1 degrees of
    freedom. Interval and p come from the same t, so they never disagree; the interval is clipped.
    (The pairs' form of adding one success and one failure: Agresti and Min 2005, Bonett and Price
    2012.) Raises ValueError unless both have the same number of values, at least one.
    """
    if len(a) != len(b) or not a:
        raise ValueError(f"{len(a)} and {len(b)} values: as many of both, at least 1, are needed")
    tasks = len(a)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    total = math.fsum(differences)
    squares = math.fsum(value * value for value in differences)
    mean, error = _shrunk(total, squares, tasks)
    half = t_quantile((1 + level) / 2, tasks + 1) * error
    return Paired(
        tasks=tasks,
        difference=total / tasks,
        interval=Interval(max(-1.0, mean - half), min(1.0, mean + half)),
        p=t_two_sided(mean / error, tasks + 1),
        sd=_spread(total, squares, tasks),
    )


def paired_all(models: Sequence[Sequence[float]]) -> list[tuple[float, float | None]]:
    """``p`` and ``sd`` of `paired` for every pair, in the order of `itertools.combinations`.

    All models have a value for the same tasks, at least one. Only sums of products are taken per
    pair, sum (x - y)^2 = sum x^2 + sum y^2 - 2 sum xy: the pseudo-differences keep that stable.
    """
    totals = [math.fsum(values) for values in models]
    squares = [_product(values, values) for values in models]
    return [
        _pair(
            totals[i] - totals[j],
            max(0.0, squares[i] + squares[j] - 2 * _product(models[i], models[j])),
            len(models[i]),
        )
        for i, j in combinations(range(len(models)), 2)
    ]


def _pair(total: float, squares: float, tasks: int) -> tuple[float, float | None]:
    mean, error = _shrunk(total, squares, tasks)
    return t_two_sided(mean / error, tasks + 1), _spread(total, squares, tasks)


def _product(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(mul, a, b))


def _shrunk(total: float, squares: float, tasks: int) -> tuple[float, float]:
    """Mean of the differences with the pseudo-differences among them, and its standard error."""
    count = tasks + 2
    mean = total / count
    return mean, math.sqrt((squares + 2 - count * mean * mean) / ((count - 1) * count))


def _spread(total: float, squares: float, tasks: int) -> float | None:
    if tasks < 2:
        return None
    return math.sqrt(max(0.0, squares - total * total / tasks) / (tasks - 1))


def t_two_sided(t: float, df: int) -> float:
    """P(|T| >= |t|) for Student's t with whole ``df`` >= 1, to an absolute error of about 1e-14."""
    if df < 1:
        raise ValueError(f"df={df}: at least 1 is needed")
    return max(0.0, 1 - _central(math.atan(abs(t) / math.sqrt(df)), df))


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: int) -> float:
    """Quantile of Student's t for a probability in 0.5..1 (exclusive) and whole ``df`` >= 1."""
    if not 0.5 <= probability < 1 or df < 1:
        raise ValueError(f"probability={probability}, df={df}: 0.5 <= p < 1, df >= 1 are needed")
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        angle = (low + high) / 2
        if _central(angle, df) < 2 * probability - 1:
            low = angle
        else:
            high = angle
    return math.sqrt(df) * math.tan(low)


def _central(angle: float, df: int) -> float:
    """P(|T| <= sqrt(df) tan(angle)): the finite series of Abramowitz and Stegun 26.7.3, 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = 0.0
    for i in range(2 + odd, df + 1, 2):
        total += term
        term *= cosine * cosine * (i - 1) / i
        if term < NEGLIGIBLE * total:
            break
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
