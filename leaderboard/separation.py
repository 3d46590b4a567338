"""How far two runs are from being told apart, and what it would take. Standard library only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, fsum

from grading.engine.passk import Counts
from leaderboard.draws import rerun_variance
from leaderboard.precision import LEVEL, detectable_z, smallest_difference
from leaderboard.statistics import Paired
from leaderboard.win_rate import pairwise


@dataclass(frozen=True, slots=True)
class Separation:
    """``win_rate`` of a over b on the common tasks, ties half.

    ``smallest``: the true difference one test is likely to find on these tasks. The rest answers
    how to find one as large as that seen: with ``tasks`` like these, or with ``samples`` per task
    of each on these. They are None where the difference is found already, or is none;
    ``samples`` also where no number is enough or, with ``noise`` None, where that is unknown.
    """

    win_rate: float
    smallest: float
    noise: float | None = None
    tasks: int | None = None
    samples: int | None = None


def separation(found: Paired, a: Sequence[Counts], b: Sequence[Counts]) -> Separation:
    """Of the same tasks in the same order, at least two."""
    if found.sd is None:
        raise ValueError("one task: at least 2 are needed")
    rate = pairwise({"a": _rates(a), "b": _rates(b)})["a"]
    noise = _noise(a, b)
    open_ = found.p >= LEVEL and found.difference != 0
    return Separation(
        win_rate=0.5 if rate is None else rate,
        smallest=smallest_difference(found.sd, found.tasks),
        noise=None if noise is None else noise[0],
        tasks=tasks_needed(found.sd, found.difference) if open_ else None,
        samples=samples_needed(found.sd**2, *noise, found.difference, found.tasks)
        if open_ and noise
        else None,
    )


def _rates(side: Sequence[Counts]) -> Mapping[Hashable, float]:
    return {place: c / n for place, (n, c) in enumerate(side)}


def tasks_needed(sd: float, difference: float) -> int:
    """Tasks with which `smallest_difference` is at most ``difference``: (z sd / difference)^2."""
    return max(1, ceil((detectable_z() * sd / difference) ** 2))


def samples_needed(
    variance: float, noise: float, per_sample: float, difference: float, tasks: int
) -> int | None:
    """Samples per task of both with which the same tasks show ``difference``; None: no number.

    ``variance`` of the differences per task holds ``noise`` of few samples, which m samples make
    ``per_sample`` / m: sd^2 = variance - noise + per_sample / m (Miller 2024). m is the least with
    z sd / sqrt(tasks) <= difference.
    """
    left = tasks * (difference / detectable_z()) ** 2 - max(0.0, variance - noise)
    return max(1, ceil(per_sample / left)) if left > 0 else None


def _noise(a: Sequence[Counts], b: Sequence[Counts]) -> tuple[float, float] | None:
    """Mean over tasks of the variance that a new draw of the samples brings: of all n, of one."""
    pairs = [[(n, rerun_variance(n, c, 1)) for n, c in pair] for pair in zip(a, b, strict=True)]
    known = [(n, value) for pair in pairs for n, value in pair if value is not None]
    if len(known) < 2 * len(pairs):
        return None
    return (
        fsum(value for _, value in known) / len(pairs),
        fsum(n * value for n, value in known) / len(pairs),
    )
