"""The interval shown beside a score: plus-two t, standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper end, both within 0..1."""

    low: float
    high: float


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
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
