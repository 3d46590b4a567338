"""Task records: one JSON object per line, or in an array, validated strictly.

Fields: ``task_id, category, prompt, targets, metric_name, post_process`` and, if wanted,
``few_shot_examples`` and ``metadata``. ``targets`` are assertions, as strings; where
``metadata.kind`` is ``stdio`` they are objects with the strings ``input`` and ``output``. A line
that breaks a rule is a problem and yields no record. The rule that a prompt ends in no white space
holds for files in this format; importers of other formats keep every byte of their prompts and
call `check_record` with ``strict=False``.

Metadata keys that are read: ``kind`` (``assertion``, the default, or ``stdio``), ``timeout_s``
(seconds, at most 30), ``entry_point`` (a name or a list of names), ``setup`` (code the judge runs
once the program has loaded), ``in_place``, ``allow_processes``, ``reference`` (a whole program).
Other keys are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from grading.engine import jsonl
from grading.engine.jsonl import Problem, ProblemLog, plain, shown
from grading.engine.limits import MAX_TIMEOUT_S
from grading.engine.target_rules import (
    Fault,
    check_kind,
    check_targets,
    compile_problem,
    odd_target,
    wrong_type,
)
from grading.engine.task import Kind, Target, from_json, to_json

REQUIRED = ("task_id", "category", "prompt", "targets", "metric_name", "post_process")
OPTIONAL = ("few_shot_examples", "metadata")
GRADED_CATEGORY = "code_exec"
METRICS = {
    "arithmetic": ("exact_match", "accuracy"),
    "mcq": ("exact_match",),
    "code_exec": ("code_exec",),
    "classification": ("exact_match", "accuracy", "f1"),
    "summary": ("f1", "bleu_4", "rouge_l"),
}
# Both go through extraction, which leaves a text without fence as it is.
POST_PROCESS = ("extract_code_block", "none")
MAX_ID_CHARS = 200
MAX_EXAMPLES = 8
MAX_TASKS = 100_000

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A valid record of a graded category."""

    task_id: str
    prompt: str
    targets: tuple[Target, ...]
    kind: Kind = Kind.ASSERTION
    category: str = GRADED_CATEGORY
    metric_name: str = GRADED_CATEGORY
    post_process: str = "extract_code_block"
    setup: str = ""
    entry_points: tuple[str, ...] = ()
    reference: str = ""
    timeout_s: float | None = None
    in_place: bool = False
    allow_processes: bool = False
    few_shot_examples: tuple[dict[str, str], ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    def graded_content(self) -> dict[str, Any]:
        """What a version's content hash covers, JSON-ready."""
        return {
            "task_id": self.task_id,
            "category": self.category,
            "prompt": self.prompt,
            "kind": self.kind.value,
            "targets": [to_json(target) for target in self.targets],
            "setup": self.setup,
            "entry_points": list(self.entry_points),
            "reference": self.reference,
            "timeout_s": self.timeout_s,
            "in_place": self.in_place,
            "allow_processes": self.allow_processes,
        }


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task file holds: valid records, what is wrong, and what is only odd."""

    records: list[TaskRecord]
    problems: ProblemLog
    warnings: ProblemLog


def read_tasks(stream: BinaryIO) -> TaskFile:
    """Read and validate a whole file, packed with gzip or not; never raises for its content."""
    result = TaskFile([], ProblemLog(), ProblemLog())
    seen: dict[str, int] = {}
    for line, row in jsonl.read_rows(stream, jsonl.TASK_FILE_CAPS, result.problems):
        _take(line, row, seen, result)
        if len(seen) > MAX_TASKS:
            detail = f"more than {MAX_TASKS:,} tasks"
            result.problems.add(Problem(line, "", "", "file too large", detail), fatal=True)
            break
    return result


def _take(line: int, row: object, seen: dict[str, int], result: TaskFile) -> None:
    problems = list(check_record(line, row))
    task_id = row.get("task_id") if isinstance(row, dict) else None
    if isinstance(task_id, str):
        if task_id in seen:
            detail = f"the id already stands in line {seen[task_id]}"
            problems.append(Problem(line, plain(task_id), "task_id", "duplicate id", detail))
        seen.setdefault(task_id, line)
    for problem in problems:
        result.problems.add(problem)
    if not problems and isinstance(row, dict):
        record = record_of(row)
        result.records.append(record)
        for index, target in enumerate(record.targets):
            if fault := odd_target(f"targets[{index}]", target):
                result.warnings.add(_problem(line, record.task_id, fault))


def check_record(line: int, row: object, *, strict: bool = True) -> Iterator[Problem]:
    """Every rule the record breaks. ``strict`` forbids white space at the end of the prompt."""
    if not isinstance(row, dict):
        found = shown(row)
        yield Problem(line, "", "", "wrong type", f"not a JSON object: {found}", found, "an object")
        return
    task_id = plain(row["task_id"]) if isinstance(row.get("task_id"), str) else ""
    checks: list[Callable[[dict[str, Any]], Iterator[Fault]]] = [
        _check_fields,
        _check_characters,
        _check_id,
        _check_kind,
        lambda row: _check_prompt(row, strict),
        check_targets,
        _check_examples,
        _check_metadata,
    ]
    for check in checks:
        for fault in check(row):
            yield _problem(line, task_id, fault)


def _problem(line: int, task_id: str, fault: Fault) -> Problem:
    return Problem(
        line, task_id, fault.field, fault.rule, fault.detail, fault.found, fault.expected
    )


def record_of(row: dict[str, Any]) -> TaskRecord:
    """The record of a row that `check_record` found nothing wrong with."""
    metadata = dict(row.get("metadata", {}))
    entry_point = metadata.pop("entry_point", [])
    return TaskRecord(
        task_id=row["task_id"],
        category=row["category"],
        prompt=row["prompt"],
        targets=tuple(from_json(target) for target in row["targets"]),
        kind=Kind(metadata.pop("kind", Kind.ASSERTION)),
        metric_name=row["metric_name"],
        post_process=row["post_process"],
        setup=metadata.pop("setup", ""),
        entry_points=(entry_point,) if isinstance(entry_point, str) else tuple(entry_point),
        reference=metadata.pop("reference", ""),
        timeout_s=metadata.pop("timeout_s", None),
        in_place=metadata.pop("in_place", False),
        allow_processes=metadata.pop("allow_processes", False),
        few_shot_examples=tuple(row.get("few_shot_examples", ())),
        metadata=metadata,
    )


def _check_fields(row: dict[str, Any]) -> Iterator[Fault]:
    for name in REQUIRED:
        if name not in row:
            yield Fault(name, "missing field", f"the field {name} is required")
    for name in row:
        if name not in REQUIRED + OPTIONAL:
            allowed = ", ".join(REQUIRED + OPTIONAL)
            yield Fault(plain(name), "unknown field", f"allowed are {allowed}")


def _check_characters(row: dict[str, Any]) -> Iterator[Fault]:
    """Databases refuse NUL characters and lone surrogates in text."""
    for name, value in row.items():
        for text in _strings(value):
            if "\0" in text:
                yield Fault(plain(name), "NUL character", "NUL characters cannot be stored")
            if bad := _LONE_SURROGATE.search(text):
                found = shown(bad[0])
                yield Fault(plain(name), "lone surrogate", f"{found} is half a character", found)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)


def _check_id(row: dict[str, Any]) -> Iterator[Fault]:
    if "task_id" not in row:
        return
    task_id = row["task_id"]
    if isinstance(task_id, int) and not isinstance(task_id, bool):
        yield wrong_type("task_id", task_id, f'a string, such as "MBPP/{task_id}"')
    elif not isinstance(task_id, str):
        yield wrong_type("task_id", task_id, "a string")
    elif not 0 < len(task_id) <= MAX_ID_CHARS:
        yield Fault("task_id", "length", f"use 1 to {MAX_ID_CHARS} characters", shown(task_id))
    elif not task_id.isprintable() or any(char.isspace() for char in task_id):
        yield Fault("task_id", "white space", "ids hold no white space or control characters")


def _check_kind(row: dict[str, Any]) -> Iterator[Fault]:
    """Category, metric and post-processing, which have to fit each other."""
    for name in ("category", "metric_name", "post_process"):
        if name in row and not isinstance(row[name], str):
            yield wrong_type(name, row[name], "a string")
    category, metric = row.get("category"), row.get("metric_name")
    if not isinstance(category, str) or not isinstance(metric, str):
        return
    if category not in METRICS:
        expected = ", ".join(METRICS)
        yield Fault("category", "unknown category", f"known: {expected}", shown(category))
    elif metric not in METRICS[category]:
        expected = " or ".join(METRICS[category])
        detail = f"{category} goes with {expected}, not with {shown(metric)}"
        yield Fault("metric_name", "illegal pair", detail, shown(metric), expected)
    elif category != GRADED_CATEGORY:
        detail = f"not supported: only {GRADED_CATEGORY} tasks are graded"
        yield Fault("category", "not supported", detail, category, GRADED_CATEGORY)
    elif isinstance(row.get("post_process"), str) and row["post_process"] not in POST_PROCESS:
        expected = " or ".join(POST_PROCESS)
        found = shown(row["post_process"])
        yield Fault("post_process", "illegal pair", f"use {expected}", found, expected)


def _check_prompt(row: dict[str, Any], strict: bool) -> Iterator[Fault]:
    prompt = row.get("prompt", "-")
    if not isinstance(prompt, str):
        yield wrong_type("prompt", prompt, "a string")
    elif not prompt.strip():
        yield Fault("prompt", "empty", "the prompt holds no text")
    elif strict and prompt != prompt.rstrip():
        detail = "white space at the end of the prompt"
        yield Fault("prompt", "trailing white space", detail, shown(prompt[-20:]))


def _check_examples(row: dict[str, Any]) -> Iterator[Fault]:
    examples = row.get("few_shot_examples", [])
    expected = "a list of objects with the strings prompt and completion"
    if not isinstance(examples, list) or not all(map(_is_example, examples)):
        yield wrong_type("few_shot_examples", examples, expected)
    elif len(examples) > MAX_EXAMPLES:
        detail = f"{len(examples)} examples; at most {MAX_EXAMPLES}"
        yield Fault("few_shot_examples", "too many", detail)


def _is_example(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"prompt", "completion"}
        and all(isinstance(text, str) for text in value.values())
    )


def _check_metadata(row: dict[str, Any]) -> Iterator[Fault]:
    metadata = row.get("metadata", {})
    if not isinstance(metadata, dict):
        yield wrong_type("metadata", metadata, "an object")
        return
    for name in ("in_place", "allow_processes"):
        if not isinstance(metadata.get(name, False), bool):
            yield wrong_type(f"metadata.{name}", metadata[name], "true or false")
    yield from _check_timeout(metadata.get("timeout_s", 1))
    yield from _check_entry_point(metadata.get("entry_point", []))
    yield from check_kind(metadata)
    for name in ("setup", "reference"):
        code = metadata.get(name, "")
        if not isinstance(code, str):
            yield wrong_type(f"metadata.{name}", code, "a string")
        elif reason := compile_problem(code):
            yield Fault(f"metadata.{name}", "does not compile", reason)


def _check_timeout(value: object) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield wrong_type("metadata.timeout_s", value, "seconds as a number")
    elif not 0 < value <= MAX_TIMEOUT_S:
        detail = f"use more than 0 and at most {MAX_TIMEOUT_S:g} seconds"
        yield Fault("metadata.timeout_s", "out of range", detail, shown(value))


def _check_entry_point(value: object) -> Iterator[Fault]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield wrong_type("metadata.entry_point", value, "a name or a list of names")
    elif not all(name.isidentifier() for name in names):
        found = shown(value)
        yield Fault("metadata.entry_point", "not a name", f"{found} is no Python name", found)
