"""Places on a board, and what tests say about them. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from statistics import median

from leaderboard.multiple import holm
from leaderboard.precision import LEVEL, smallest_difference
from leaderboard.statistics import paired_all

# With fewer tasks the test finds next to nothing and its interval says little.
LEAST_TASKS = 10


@dataclass(frozen=True, slots=True)
class Standing:
    """Best and worst place, 1-based: significantly ``better`` than so many models, ``worse`` than.

    ``level``: the others, which the tests do not separate from this one.
    """

    low: int
    high: int
    better: int
    worse: int
    level: int


@dataclass(frozen=True, slots=True)
class Standings:
    """Every model of a board against every other.

    ``names`` in the order given; ``adjusted`` Holm's p-values of their pairs in the order of
    `itertools.combinations`; ``better`` pairs (winner, loser) of names; ``smallest`` the median
    over pairs of the difference that the benchmark is likely to find, None where unknown or 0.
    """

    names: tuple[str, ...] = ()
    adjusted: tuple[float, ...] = ()
    better: frozenset[tuple[str, str]] = frozenset()
    smallest: float | None = None

    def of(self) -> dict[str, Standing]:
        """Each model's standing by name."""
        places = {name: i for i, name in enumerate(self.names)}
        pairs = [(places[winner], places[loser]) for winner, loser in self.better]
        ranges = rank_ranges(len(self.names), pairs)
        return {
            name: _standing(*held, len(self.names))
            for name, held in zip(self.names, ranges, strict=True)
        }

    def level(self, a: str, b: str) -> bool:
        """Whether no test separates the two."""
        return (a, b) not in self.better and (b, a) not in self.better

    def adjusted_p(self, a: str, b: str) -> float | None:
        """Holm's p-value of a pair; None where one is not on the board."""
        if a == b or a not in self.names or b not in self.names:
            return None
        i, j = sorted((self.names.index(a), self.names.index(b)))
        return self.adjusted[i * (2 * len(self.names) - i - 1) // 2 + j - i - 1]


def standings(models: Mapping[str, Sequence[float]]) -> Standings:
    """Test all pairs of models with a value per task, all for the same tasks in the same order.

    Paired plus-two t, Holm over all pairs at 5 %: the leader was picked by the data, so a family
    of its comparisons alone would be too small. Below `LEAST_TASKS` tasks nothing is tested.
    """
    names = tuple(models)
    tasks = min(map(len, models.values()), default=0)
    if tasks < LEAST_TASKS:
        return Standings(names, (1.0,) * (len(names) * (len(names) - 1) // 2))
    tested = paired_all(list(models.values()))
    adjusted = holm([p for p, _ in tested])
    scores = {name: fsum(values) for name, values in models.items()}
    return Standings(
        names=names,
        adjusted=tuple(adjusted),
        better=frozenset(
            (a, b) if scores[a] > scores[b] else (b, a)
            for (a, b), p in zip(combinations(names, 2), adjusted, strict=True)
            if p < LEVEL
        ),
        smallest=_smallest([sd for _, sd in tested if sd is not None], tasks),
    )


def _smallest(spreads: Sequence[float], tasks: int) -> float | None:
    return (smallest_difference(median(spreads), tasks) or None) if spreads else None


def rank_ranges(models: int, better: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """[1 + number significantly better, ``models`` - number significantly worse] of each model.

    ``better``: pairs (winner, loser) of indexes, each once.
    """
    lows, highs = [1] * models, [models] * models
    for winner, loser in better:
        lows[loser] += 1
        highs[winner] -= 1
    return list(zip(lows, highs, strict=True))


def _standing(low: int, high: int, models: int) -> Standing:
    return Standing(low, high, better=models - high, worse=low - 1, level=high - low)


def competition_ranks(values: Sequence[float | None]) -> list[int | None]:
    """Rank of each value, highest first: equal values share one and the next is skipped.

    A missing value takes no rank: ``[0.5, None, 0.9, 0.5]`` gives ``[2, None, 1, 2]``.
    """
    known = sorted((value for value in values if value is not None), reverse=True)
    first = {value: place for place, value in reversed(list(enumerate(known, start=1)))}
    return [None if value is None else first[value] for value in values]
