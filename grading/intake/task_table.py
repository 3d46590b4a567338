"""Which task of a version an upload means: by id, by number, by prompt or by place."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from grading.benchmarks import engine_task
from grading.engine import source
from grading.engine.task import Task
from grading.models import BenchmarkVersion
from grading.models import Task as TaskRow

_NAME_AND_NUMBER = re.compile(
    r"([A-Za-z][A-Za-z-]*)[/_. :-]+([0-9]{1,9})(?![0-9])(?:_.*)?", re.DOTALL
)
_NUMBER = re.compile(r"[0-9]{1,9}")

Key = TypeVar("Key", bound=Hashable)


class Match(StrEnum):
    """How a record's value is compared with a version's tasks."""

    ID = "id"  # equal ids
    NUMBER = "number"  # 7, HumanEval_7 and humaneval-7 are HumanEval/7
    PROMPT = "prompt"  # the same prompt, or one that ends in the same function
    POSITION = "position"  # place in the benchmark, from 0


@dataclass(frozen=True)
class TaskTable:
    """The tasks of a version in their order; ``primary_keys`` in the same order."""

    tasks: tuple[Task, ...]
    primary_keys: tuple[int, ...] = ()
    # Verdicts on extra tests count where those tests are the benchmark's.
    is_plus: bool = False

    @classmethod
    def of(cls, version: BenchmarkVersion) -> TaskTable:
        rows = TaskRow.objects.filter(version=version).select_related("version__benchmark")
        rows = rows.order_by("position").defer("reference", "reference_verdict", "metadata")
        found = [(engine_task(row), row.pk) for row in rows]
        names = (version.benchmark.slug.lower(), version.benchmark.title.lower())
        return cls(
            tuple(task for task, _ in found),
            tuple(key for _, key in found),
            any("plus" in name or name.endswith("+") for name in names),
        )

    def __len__(self) -> int:
        return len(self.tasks)

    def find(self, value: object, match: Match) -> int | None:
        """Place of the task that ``value`` means, None where it means none of them."""
        if match is Match.ID:
            return self._by_id.get(value) if isinstance(value, str) else None
        if match is Match.NUMBER:
            return self._find_number(value)
        if match is Match.PROMPT:
            return self._find_prompt(value) if isinstance(value, str) else None
        is_place = isinstance(value, int) and not isinstance(value, bool)
        return value if is_place and 0 <= value < len(self.tasks) else None  # type: ignore[operator,return-value]

    @cached_property
    def _by_id(self) -> dict[str, int]:
        return {task.task_id: place for place, task in enumerate(self.tasks)}

    @cached_property
    def _by_number(self) -> Mapping[tuple[str, int], int]:
        return _unique((key, place) for task, place in self._placed() if (key := _name_key(task)))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self._by_number)

    @cached_property
    def _by_prompt(self) -> Mapping[str, int]:
        return _unique((task.prompt.strip(), place) for place, task in enumerate(self.tasks))

    @cached_property
    def _by_function(self) -> Mapping[str, list[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, task in enumerate(self.tasks):
            for name in task.names():
                found[name].append(place)
        return found

    def _placed(self) -> Iterable[tuple[str, int]]:
        return ((task.task_id, place) for place, task in enumerate(self.tasks))

    def _find_number(self, value: object) -> int | None:
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            key = _name_key(value)
            return self._by_number.get(key) if key else None
        is_number = isinstance(value, int | str) and not isinstance(value, bool)
        if not is_number or len(self._names) != 1:
            return None
        return self._by_number.get((next(iter(self._names)), int(value)))  # type: ignore[call-overload]

    def _find_prompt(self, prompt: str) -> int | None:
        place = self._by_prompt.get(prompt.strip())
        if place is not None:
            return place
        name = _last_function(prompt)
        return self._most_alike(prompt, self._by_function.get(name, []) if name else [])

    def _most_alike(self, prompt: str, places: list[int]) -> int | None:
        """Of tasks that ask for the same function, the one whose prompt begins most alike."""
        prompts = [self.tasks[place].prompt.strip() for place in places]
        alike = [_common_start(prompt.strip(), other) for other in prompts]
        best = max(alike, default=0)
        return places[alike.index(best)] if alike.count(best) == 1 else None


def _name_key(task_id: str) -> tuple[str, int] | None:
    """``HumanEval/7``, ``humaneval_7`` and ``humaneval_7_some_function`` are ("humaneval", 7)."""
    match = _NAME_AND_NUMBER.fullmatch(task_id)
    return (match[1].lower(), int(match[2])) if match else None


def _common_start(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _unique(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """The pairs whose key stands once: what means two tasks means neither."""
    known = list(pairs)
    counts = Counter(key for key, _ in known)
    return {key: place for key, place in known if counts[key] == 1}


def _last_function(prompt: str) -> str | None:
    tree = source.parse_prompt(prompt)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    names = [node.name for node in tree.body if isinstance(node, kinds)] if tree else []
    return names[-1] if names else None
