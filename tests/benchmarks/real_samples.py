"""A fixed selection of real generations, from the reference data beside the checkout."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from agreement import sets

from grading.engine.task import Generation, Task

# Their programs take seconds, or for ever, for more models than those of other tasks.
SLOW = ("HumanEval/129", "HumanEval/39", "MBPP/123", "mbpp_123_amicable_numbers_sum")
# Of the whole selection, so much for each of them.
SLOW_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    group: str
    task: Task
    generation: Generation


def selection(count: int) -> list[Sample]:
    """``count`` samples: some of the slow tasks, then of every set in turn, always the same."""
    everything = sorted(_everything(), key=lambda sample: zlib.crc32(sample.name.encode()))
    chosen = []
    for task_id in SLOW:
        slow = [sample for sample in everything if sample.task.task_id == task_id]
        chosen += slow[: max(1, int(SLOW_SHARE * count))]
    taken = {sample.name for sample in chosen}
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in everything:
        if sample.name not in taken:
            groups[sample.group].append(sample)
    turns = [iter(members) for _, members in sorted(groups.items())]
    while len(chosen) < count and turns:
        for turn in list(turns):
            if (sample := next(turn, None)) is None:
                turns.remove(turn)
            else:
                chosen.append(sample)
    return chosen[:count]


def _everything() -> Iterator[Sample]:
    for case in sets.every_case():
        yield Sample(case.name, case.group, case.task, case.generation)
    for name, task, generation in sets.raw_replies():
        yield Sample(f"reply {name}", "chat replies", task, generation)
