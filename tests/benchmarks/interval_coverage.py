"""Simulate how often the shipped interval holds the true score: at least 93 % in the worst cell.

.venv/bin/python tests/benchmarks/interval_coverage.py [BOARDS_PER_CELL]

A cell is a population of tasks, a number of tasks and of samples per task. A board draws each
task's true pass rate from the population and then its samples; the true score is the population's
mean. The percentile bootstrap stands beside it as what is not shipped.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from leaderboard.bootstrap import percentile_bootstrap
from leaderboard.statistics import Interval, plus_two_t

LEAST = 0.93
BOOTSTRAP_BOARDS = 200
BOOTSTRAP_DRAWS = 200


@dataclass(frozen=True)
class Population:
    """``draw`` gives a task's true pass rate; ``mean`` is what the interval should hold."""

    name: str
    mean: float
    draw: Callable[[random.Random], float]


def beta(name: str, a: float, b: float) -> Population:
    return Population(name, a / (a + b), lambda dice: dice.betavariate(a, b))


POPULATIONS = (
    beta("middling, all alike", 6, 6),
    beta("middling, all or nothing", 0.3, 0.3),
    beta("weak", 0.3, 1.7),
    beta("strong", 1.6, 0.3),
    beta("saturated", 1.9, 0.06),
    Population("saturated, some unsolvable", 0.97, lambda dice: float(dice.random() < 0.97)),
)
TASKS = (10, 20, 50, 164)
SAMPLES = (1, 5)


def board(population: Population, tasks: int, samples: int, dice: random.Random) -> list[float]:
    rates = [population.draw(dice) for _ in range(tasks)]
    return [sum(dice.random() < rate for _ in range(samples)) / samples for rate in rates]


def holds(interval: Interval | None, mean: float) -> bool:
    return interval is not None and interval.low <= mean <= interval.high


def cell(population: Population, tasks: int, samples: int, boards: int) -> tuple[float, float]:
    """Coverage of plus-two t and of the percentile bootstrap, which gets fewer boards."""
    dice = random.Random(f"{population.name}/{tasks}/{samples}")
    held = sum(
        holds(plus_two_t(board(population, tasks, samples, dice)), population.mean)
        for _ in range(boards)
    )
    few = min(boards, BOOTSTRAP_BOARDS)
    strapped = sum(
        holds(
            percentile_bootstrap(board(population, tasks, samples, dice), BOOTSTRAP_DRAWS),
            population.mean,
        )
        for _ in range(few)
    )
    return held / boards, strapped / few


def main() -> None:
    boards = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    print(f"{'population':28}{'tasks':>6}{'n':>4}{'plus-two t':>12}{'bootstrap':>11}")
    worst = worst_strapped = 1.0
    for population in POPULATIONS:
        for tasks in TASKS:
            for samples in SAMPLES:
                ours, other = cell(population, tasks, samples, boards)
                worst, worst_strapped = min(worst, ours), min(worst_strapped, other)
                print(f"{population.name:28}{tasks:6}{samples:4}{ours:12.1%}{other:11.1%}")
    print(f"worst cell: plus-two t {worst:.1%}, bootstrap {worst_strapped:.1%}")
    if worst < LEAST:
        sys.exit(f"plus-two t covers less than {LEAST:.0%}")


if __name__ == "__main__":
    main()
