"""Grading cases on every core, and what is kept of each verdict."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agreement.sets import Case

from grading.engine.grade import grade
from grading.engine.sandbox import Sandbox
from grading.engine.spread import spread


@dataclass(frozen=True, slots=True)
class Result:
    """``held`` says target by target what is true; ``first`` is the first that is not, from 1."""

    outcome: str
    held: tuple[bool, ...]
    detail: str
    denied: tuple[str, ...]
    tricks: tuple[str, ...]
    first: int
    cpu_s: float
    wall_s: float

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    def agrees(self, case: Case) -> bool:
        return self.equal(case) == len(case.theirs)

    def equal(self, case: Case) -> int:
        """How many of their answers for the case ours repeats: targets, or the one verdict."""
        ours = self.held if case.per_target else (self.passed,)
        return sum(one == other for one, other in zip(ours, case.theirs, strict=True))


def grade_all(
    cases: Sequence[Case], workers: int, timeout_s: float | None = None
) -> Iterator[Result]:
    """Results in the order of the cases; PlatformError where the sandbox does not work."""
    sandbox = Sandbox("agreement")
    sandbox.ensure()
    yield from spread(partial(_grade, timeout_s), cases, sandbox, workers)


def _grade(timeout_s: float | None, case: Case, sandbox: Sandbox) -> Result:
    task = case.task if timeout_s is None else replace(case.task, timeout_s=timeout_s)
    verdict = grade(task, case.generation, sandbox)
    held = tuple(target.true for target in verdict.targets)
    return Result(
        verdict.outcome.value,
        held,
        verdict.detail,
        tuple(verdict.denied),
        tuple(trick.value for trick in verdict.tricks),
        held.index(False) + 1 if False in held else 0,
        round(verdict.cpu_s, 3),
        round(verdict.wall_s, 3),
    )


class Store:
    """Results in a file, so that a run that was broken off goes on where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Result] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            row = json.loads(line)
            fields = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in row["result"].items()
            }
            self._known[row["case"]] = Result(**fields)

    def fill(self, cases: list[Case], workers: int) -> list[Result]:
        """The result of every case, grading those that have none yet; equal programs once."""
        equal: defaultdict[Any, list[Case]] = defaultdict(list)
        for case in cases:
            if case.name not in self._known:
                equal[case.task, case.generation].append(case)
        firsts = [same[0] for same in equal.values()]
        graded = zip(equal.values(), grade_all(firsts, workers), strict=True)
        with self._path.open("a") as file:
            for same, result in graded:
                for case in same:
                    self._known[case.name] = result
                    file.write(json.dumps({"case": case.name, "result": asdict(result)}) + "\n")
        return [self._known[case.name] for case in cases]
