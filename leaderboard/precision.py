"""How fine a benchmark can tell, and what would make it finer. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist, variance

from grading.engine.passk import Counts

LEVEL = 0.05
POWER = 0.8


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variance over tasks of pass@1: ``within`` is noise of finitely many samples per task.

    ``within_share`` of an interval's square would go with ever more samples; the rest takes more
    tasks. ``rerun_se_squared``: variance of the score when only the samples are drawn again.
    """

    task_variance: float
    se_squared: float
    within: float
    between: float
    within_share: float
    rerun_se_squared: float


def variance_split(tasks: Sequence[Counts]) -> VarianceSplit | None:
    """Split the variance of pass@1 over tasks of n samples, c of them passing.

    within = mean of p (1 - p) / (n - 1) with p = c / n; between = variance - within, at least 0
    (Miller 2024, "Adding Error Bars to Evals"). None for fewer than 2 tasks, or where a task has
    fewer than 2 samples: then the two cannot be told apart.
    """
    if len(tasks) < 2 or any(n < 2 for n, _ in tasks):
        return None
    rates = [Fraction(c, n) for n, c in tasks]
    noise = [p * (1 - p) / (n - 1) for p, (n, _) in zip(rates, tasks, strict=True)]
    total, within = variance(rates), sum(noise) / Fraction(len(tasks))
    return VarianceSplit(
        task_variance=float(total),
        se_squared=float(total / len(tasks)),
        within=float(within),
        between=float(max(Fraction(0), total - within)),
        within_share=float(min(Fraction(1), within / total)) if total else 0.0,
        rerun_se_squared=float(within / len(tasks)),
    )


def smallest_difference(sd: float, tasks: int, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference of two models that a test at ``level`` finds with chance ``power``.

    (z(1 - level / 2) + z(power)) sd / sqrt(tasks), with ``sd`` that of the differences per task
    (Miller 2024).
    """
    return detectable_z(level, power) * sd / sqrt(tasks)


def detectable_z(level: float = LEVEL, power: float = POWER) -> float:
    """Standard errors that a difference must be large: z(1 - level / 2) + z(power)."""
    z = NormalDist().inv_cdf
    return z(1 - level / 2) + z(power)
