"""The layouts in which evaluation tools write generations, each turned into flat records.

A flat record is a dict that names its task in one field and holds its text, or a list of texts,
in another; `grading.intake.fields` finds which. A shape says where the entries of a file stand
and what a single entry becomes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

Flat = dict[str, Any]


class Layout(StrEnum):
    """How the entries stand in the text."""

    LINES = "JSON Lines"
    DOCUMENT = "JSON document"
    FILES = "one file a sample"


@dataclass(slots=True)
class Record:
    """One entry as it stands in the file. ``key`` names it inside an object or an archive."""

    line: int
    position: int
    key: str | None
    value: Any
    member: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """``path`` leads to the entries of a document. ``flatten`` never raises for any entry."""

    title: str
    layout: Layout
    flatten: Callable[[Record], Iterator[Any]]
    path: tuple[str, ...] = ()


def as_it_is(record: Record) -> Iterator[Any]:
    yield record.value


def by_position(record: Record) -> Iterator[Any]:
    """bigcode-evaluation-harness: a list of programs for each task, in the benchmark's order."""
    yield {"position": record.position, "generations": record.value}


def by_task(record: Record) -> Iterator[Any]:
    """An object with a text, a list of texts or a record for each task id."""
    if isinstance(record.value, dict):
        yield {"task_id": record.key, **record.value}
    elif isinstance(record.value, list) and any(isinstance(item, dict) for item in record.value):
        for item in record.value:
            yield {"task_id": record.key, **item} if isinstance(item, dict) else item
    else:
        yield {"task_id": record.key, "generations": record.value}


def evalplus_result(record: Record) -> Iterator[Any]:
    """EvalPlus and BigCodeBench: a list of samples with verdicts for each task id.

    Old files hold counts without programs; their records lack a text and are reported so.
    """
    items = record.value if isinstance(record.value, list) else [{}]
    for item in items:
        kept = item if isinstance(item, dict) else {"solution": item}
        yield kept | {"task_id": record.key}


def lm_eval_sample(record: Record) -> Iterator[Any]:
    """lm-evaluation-harness: one document with all its replies."""
    row = record.value
    if not isinstance(row, dict):
        yield row
        return
    doc = row.get("doc")
    flat = {key: row[key] for key in ("doc_id", "filtered_resps", "resps", "filter") if key in row}
    if isinstance(doc, dict):
        flat |= {key: doc[key] for key in ("task_id", "prompt") if key in doc}
    metrics = [row.get(name) for name in _texts(row.get("metrics"))]
    yield flat | ({"passed": metrics[0] in (1, True)} if metrics else {})


def inspect_sample(record: Record) -> Iterator[Any]:
    """inspect: one sample of one epoch, the model's reply in ``output``."""
    row = record.value
    if not isinstance(row, dict):
        yield row
        return
    flat: Flat = {"id": row.get("id"), "output": _inspect_reply(row)}
    epoch = row.get("epoch")
    if isinstance(epoch, int) and epoch > 0:
        flat["sample"] = epoch - 1
    scores = row.get("scores")
    if isinstance(scores, dict):
        first = next((score for score in scores.values() if isinstance(score, dict)), {})
        flat |= {"passed": _INSPECT_VALUES.get(str(first.get("value")))}
    yield flat


def llama_eval_case(record: Record) -> Iterator[Any]:
    """llama-eval: one case of a state file, ``SUITE_ROUND_PROBLEM``."""
    row = record.value
    if not isinstance(row, dict):
        yield row
        return
    flat: Flat = {"response": row.get("response"), "passed": row.get("correct")}
    numbers = re.fullmatch(r".*_([0-9]{1,6})_([0-9]{1,6})", record.key or "", re.DOTALL)
    chunk, problem = row.get("chunk_idx"), row.get("problem_idx")
    if numbers and not (isinstance(chunk, int) and isinstance(problem, int)):
        chunk, problem = int(numbers[1]), int(numbers[2])
    if isinstance(problem, int):
        flat |= {"position": problem, "sample": chunk}
    yield flat | {"case": record.key}


def program_file(record: Record) -> Iterator[Any]:
    """A program in a file of its own: ``HumanEval_0/0.py``, or ``HumanEval_0.py`` alone."""
    path = PurePosixPath(record.member.replace("\\", "/"))
    if path.parent.name and path.stem.isdecimal() and len(path.stem) < 10:
        yield {"task_id": path.parent.name, "sample": int(path.stem), "solution": record.value}
    else:
        name = path.stem if not path.parent.name or _has_number(path.stem) else path.parent.name
        yield {"task_id": name, "solution": record.value}


def _has_number(name: str) -> bool:
    return re.search(r"[0-9]$", name) is not None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


_INSPECT_VALUES = {"C": True, "1": True, "1.0": True, "True": True} | {
    "I": False,
    "0": False,
    "0.0": False,
    "False": False,
}


def _inspect_reply(row: Mapping[str, Any]) -> Any:
    output = row.get("output")
    if isinstance(output, dict):
        if output.get("completion"):
            return output["completion"]
        choices = output.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            message = choices[0].get("message")
            return [message] if isinstance(message, dict) else None
    return row.get("messages")


LINES = Shape("JSON Lines", Layout.LINES, as_it_is)
LM_EVAL = Shape("lm-evaluation-harness samples", Layout.LINES, lm_eval_sample)
LM_EVAL_ARRAY = Shape("lm-evaluation-harness samples", Layout.DOCUMENT, lm_eval_sample)
ARRAY = Shape("JSON array", Layout.DOCUMENT, as_it_is)
POSITIONS = Shape("generations in task order (bigcode harness)", Layout.DOCUMENT, by_position)
BY_TASK = Shape("JSON object by task", Layout.DOCUMENT, by_task)
EVALPLUS = Shape("EvalPlus results", Layout.DOCUMENT, evalplus_result, ("eval",))
INSPECT = Shape("inspect log", Layout.DOCUMENT, inspect_sample, ("samples",))
LLAMA_EVAL = Shape("llama-eval state", Layout.DOCUMENT, llama_eval_case, ("task_states", "cases"))
FILES = Shape("one program a file", Layout.FILES, program_file)
