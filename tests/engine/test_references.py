"""Whole published task sets: every reference solution passes, and what a stub earns."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from grading.engine import task_files
from grading.engine.grade import grade
from grading.engine.outcome import Label, Outcome, Verdict
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.spread import spread
from grading.engine.task import Format, Generation, Task
from grading.engine.task_files import TaskSource

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

WORKERS = 2
HUMANEVAL = "tasks_humaneval/HumanEval.jsonl.gz"
MBPP = "tasks_mbpp/mbpp.jsonl.gz"
SANITIZED = "tasks_mbpp/sanitized-mbpp.json.gz"


def source(shared: Path, name: str) -> TaskSource:
    file = shared / "data" / name
    with file.open("rb") as stream:
        return task_files.read(stream, file.name)


def engine_task(record: TaskRecord) -> Task:
    return Task(
        record.targets,
        kind=record.kind,
        prompt=record.prompt,
        setup=record.setup,
        entry_points=record.entry_points,
        timeout_s=30.0,
    )


def reference(record: TaskRecord) -> Generation:
    if record.reference.startswith(record.prompt):
        return Generation(record.reference.removeprefix(record.prompt), Format.COMPLETION)
    return Generation(record.reference)


def stub(record: TaskRecord) -> Generation:
    lines = [f"def {name}(*args, **kwargs):\n    return None" for name in record.entry_points]
    return Generation("\n".join(lines))


def grade_all(sandbox: Sandbox, pairs: list[tuple[TaskRecord, Generation]]) -> list[Verdict]:
    def run(pair: tuple[TaskRecord, Generation], sandbox: Sandbox) -> Verdict:
        return grade(engine_task(pair[0]), pair[1], sandbox)

    return list(spread(run, pairs, sandbox, WORKERS))


@pytest.mark.parametrize(("name", "count"), [(HUMANEVAL, 164), (MBPP, 974), (SANITIZED, 427)])
def test_every_reference_passes(shared: Path, sandbox: Sandbox, name: str, count: int) -> None:
    records = source(shared, name).records
    verdicts = grade_all(sandbox, [(record, reference(record)) for record in records])
    outcomes = Counter(verdict.outcome.value for verdict in verdicts)
    labels = Counter(target.label for verdict in verdicts for target in verdict.targets)
    print(f"\n{name}: {dict(outcomes)}, {dict(labels)}")  # noqa: T201
    wrong = {
        record.task_id: verdict.detail
        for record, verdict in zip(records, verdicts, strict=True)
        if verdict.outcome is not Outcome.PASS
    }
    assert (len(verdicts), wrong) == (count, {})
    assert name == HUMANEVAL or set(labels) == {Label.SEALED}
    assert not any(verdict.tricks for verdict in verdicts)


def stub_fractions(
    shared: Path, sandbox: Sandbox, name: str
) -> tuple[TaskSource, list[tuple[int, int]]]:
    """(true, all) targets of each task for a program whose functions return None."""
    read = source(shared, name)
    verdicts = grade_all(sandbox, [(record, stub(record)) for record in read.records])
    return read, [(verdict.passed, verdict.total) for verdict in verdicts]


def mean_percent(fractions: list[tuple[int, int]]) -> float:
    total = sum(Fraction(true, all_) for true, all_ in fractions)
    return round(float(100 * total / len(fractions)), 2)


def test_what_a_stub_earns_on_humaneval(shared: Path, sandbox: Sandbox) -> None:
    read, found = stub_fractions(shared, sandbox, HUMANEVAL)
    assert mean_percent(found) == 1.79
    assert sum(true > 0 for true, _ in found) == 8
    # A constant target is true for whatever loads.
    dropped = Counter(one.task_id for one in read.dropped)
    kept = [
        (true + dropped[record.task_id], all_ + dropped[record.task_id])
        for record, (true, all_) in zip(read.records, found, strict=True)
    ]
    assert mean_percent(kept) == 5.56
    assert sum(true > 0 for true, _ in kept) == 40
    assert not any(true == all_ for true, all_ in found)


def test_what_a_stub_earns_on_mbpp(shared: Path, sandbox: Sandbox) -> None:
    _, found = stub_fractions(shared, sandbox, MBPP)
    assert mean_percent(found) == 0.31
    assert sum(true > 0 for true, _ in found) == 8
    assert not any(true == all_ for true, all_ in found)
