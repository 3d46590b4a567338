"""Win rates, a detail beside the scores: they depend on who else was run. Standard library only."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import permutations

# Score by task; a task without a value is absent.
Scores = Mapping[Hashable, float]


def pairwise(models: Mapping[str, Scores]) -> dict[str, float | None]:
    """Mean over opponents and common tasks of a win (1) or a tie (1/2); 1/2 is average.

    A tie is half a win, as in HELM since its fix: a task nobody solves is then no win for all.
    None where a model shares no task with another.
    """
    halves, meetings = dict.fromkeys(models, 0), dict.fromkeys(models, 0)
    for a, b in permutations(models, 2):
        for task in models[a].keys() & models[b].keys():
            mine, other = models[a][task], models[b][task]
            halves[a] += 2 * (mine > other) + (mine == other)
            meetings[a] += 2
    return {name: halves[name] / met if met else None for name, met in meetings.items()}
