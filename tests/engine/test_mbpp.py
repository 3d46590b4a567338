"""What is peculiar about MBPP's tasks, graded."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.engine import task_files
from grading.engine.grade import grade
from grading.engine.outcome import Label, Outcome, Verdict
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.task import Generation, Task

pytestmark = pytest.mark.sandbox

Records = dict[str, TaskRecord]


@pytest.fixture(scope="module")
def records(shared: Path) -> Records:
    with (shared / "data/tasks_mbpp/mbpp.jsonl.gz").open("rb") as stream:
        return {one.task_id: one for one in task_files.read(stream, "mbpp.jsonl.gz").records}


def run(sandbox: Sandbox, record: TaskRecord, program: str = "") -> Verdict:
    task = Task(
        record.targets,
        prompt=record.prompt,
        setup=record.setup,
        entry_points=record.entry_points,
        timeout_s=20.0,
    )
    return grade(task, Generation(program or record.reference), sandbox)


@pytest.mark.parametrize("number", [56, 126, 349, 367, 601, 899, 927, 967])
def test_collisions_and_classes_stay_sealed(
    records: Records, sandbox: Sandbox, number: int
) -> None:
    """Entry points named check and sum; targets and set-up that use the program's classes."""
    verdict = run(sandbox, records[f"MBPP/{number}"])
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert {target.label for target in verdict.targets} == {Label.SEALED}


def test_one_task_leaves_the_next_alone(records: Records, sandbox: Sandbox) -> None:
    """126 defines ``sum``, which 133 calls: graders that share an interpreter fail 133."""
    assert "def sum(" in records["MBPP/126"].reference
    assert "sum(" in records["MBPP/133"].reference
    for number in (126, 133, 126, 133):
        assert run(sandbox, records[f"MBPP/{number}"]).outcome is Outcome.PASS


def test_the_first_test_in_the_prompt_stays_out_of_the_program(
    records: Records, sandbox: Sandbox
) -> None:
    record = records["MBPP/11"]
    verdict = run(sandbox, record)
    assert record.targets[0] in record.prompt
    assert verdict.program.strip() == record.reference.strip()


ODD = (313, 362, 436)


def test_assertions_with_a_number_as_message_are_as_published(
    records: Records, sandbox: Sandbox
) -> None:
    """``assert f(x) == 1,2`` asserts 1; the 2 is its message."""
    odd = [
        target
        for number in ODD
        for target in records[f"MBPP/{number}"].targets
        if isinstance(target, str) and "==" in target and "," in target.rsplit("==", 1)[1]
    ]
    assert len(odd) == 6, odd
    for number in ODD:
        assert run(sandbox, records[f"MBPP/{number}"]).outcome is Outcome.PASS
    task = Task(("assert f(0) == 1,2",))
    right = grade(task, Generation("def f(x): return 1"), sandbox)
    literal = grade(task, Generation("def f(x): return 1, 2"), sandbox)
    assert (right.outcome, literal.outcome) == (Outcome.PASS, Outcome.ASSERTION_FAIL)
