"""The percentile bootstrap over tasks: a cross-check beside the interval, never the interval.

It has zero width where all tasks score alike, and covers too seldom near 0 and 100 %. Standard
library only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from leaderboard.statistics import LEVEL, Interval

DRAWS = 1000
SEED = 0


def percentile_bootstrap(
    values: Sequence[float], draws: int = DRAWS, seed: int = SEED, level: float = LEVEL
) -> Interval | None:
    """Interval for the mean over tasks from ``draws`` resamples of the tasks; None without tasks.

    The same values and seed always give the same interval (Efron 1979).
    """
    if not values:
        return None
    dice = random.Random(seed)
    size = len(values)
    means = [sum(dice.choices(values, k=size)) / size for _ in range(draws)]
    return percentile_interval(means, level)


def percentile_interval(means: Sequence[float], level: float = LEVEL) -> Interval:
    """The middle ``level`` of resampled means, at least one, ends interpolated linearly."""
    ordered = sorted(means)
    return Interval(_quantile(ordered, (1 - level) / 2), _quantile(ordered, (1 + level) / 2))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
