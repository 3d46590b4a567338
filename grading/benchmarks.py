"""Benchmark versions: import, the engine's view of a task, reference solutions, downloads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from grading import models
from grading.engine.grade import grade
from grading.engine.jsonl import ProblemLog
from grading.engine.limits import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from grading.engine.outcome import Outcome, Verdict
from grading.engine.records import TaskRecord
from grading.engine.sandbox import Sandbox
from grading.engine.task import (
    BlockPolicy,
    Format,
    Generation,
    Kind,
    Preamble,
    Task,
    from_json,
    to_json,
)

REFERENCE_FACTOR = 4  # a task's limit is this many times what its reference solution takes
EXAMPLE_TASKS = 2
BATCH = 1_000


class ImportRefused(Exception):
    """The task file has problems, or nothing in it can be graded."""

    def __init__(self, message: str, problems: ProblemLog) -> None:
        super().__init__(message)
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Imported:
    """``created`` is False where this content is a version already."""

    version: models.BenchmarkVersion
    created: bool


@dataclass(frozen=True, slots=True)
class FailedReference:
    task_id: str
    outcome: str
    detail: str


@dataclass(frozen=True, slots=True)
class ReferenceReport:
    """``total`` tasks have a reference solution, ``passed`` of them pass their own targets."""

    total: int
    passed: int
    failed: list[FailedReference]


def import_version(
    slug: str,
    title: str,
    records: Sequence[TaskRecord],
    problems: ProblemLog | None = None,
    source: str = "",
    allow_bad: bool = False,
    notes: dict[str, Any] | None = None,
    environment: models.Environment | None = None,
) -> Imported:
    """Store ``records`` as the next version of the benchmark ``slug``, made if it is new.

    The same content in the same environment is the same version: nothing is stored twice. Raises
    `ImportRefused` where there are problems and ``allow_bad`` is False, or where no record is left.
    """
    problems = problems or ProblemLog()
    _refuse(records, problems, allow_bad)
    content_hash = hash_of(records, environment)
    report = (notes or {}) | {
        "problems": problems.total,
        "first_problems": [asdict(problem) for problem in problems.kept],
    }
    with transaction.atomic():
        benchmark, _ = models.Benchmark.objects.get_or_create(slug=slug, defaults={"title": title})
        same = benchmark.versions.filter(content_hash=content_hash).first()
        if same is not None:
            return Imported(same, created=False)
        newest = benchmark.versions.order_by("-number").first()
        version = models.BenchmarkVersion.objects.create(
            benchmark=benchmark,
            number=newest.number + 1 if newest else 1,
            content_hash=content_hash,
            environment=environment,
            source=source[:200],
            notes=report,
        )
        models.Task.objects.bulk_create(_rows(version, records), batch_size=BATCH)
    return Imported(version, created=True)


def _refuse(records: Sequence[TaskRecord], problems: ProblemLog, allow_bad: bool) -> None:
    if problems.fatal:
        raise ImportRefused("the file could not be read to its end", problems)
    if problems.total and not allow_bad:
        count = "1 problem" if problems.total == 1 else f"{problems.total:,} problems"
        raise ImportRefused(f"{count} in the task file", problems)
    if not records:
        raise ImportRefused("no task in the file can be graded", problems)


def hash_of(records: Iterable[TaskRecord], environment: models.Environment | None = None) -> str:
    """SHA-256 of everything that grading depends on; the order of the tasks does not count."""
    content = [record.graded_content() for record in sorted(records, key=_task_id)]
    return _sha256([environment.content(), *content] if environment else content)


def _task_id(record: TaskRecord) -> str:
    return record.task_id


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _rows(version: models.BenchmarkVersion, records: Sequence[TaskRecord]) -> Iterator[models.Task]:
    slugs = task_slugs([record.task_id for record in records])
    for position, (record, slug) in enumerate(zip(records, slugs, strict=True)):
        yield models.Task(
            version=version,
            task_id=record.task_id,
            slug=slug,
            position=position,
            category=record.category,
            prompt=record.prompt,
            kind=record.kind.value,
            targets=[to_json(target) for target in record.targets],
            setup=record.setup,
            entry_points=list(record.entry_points),
            reference=record.reference,
            timeout_s=record.timeout_s,
            allow_processes=record.allow_processes,
            in_place=record.in_place,
            metadata=record.metadata,
            few_shot_examples=list(record.few_shot_examples),
            content_hash=_sha256(record.graded_content()),
        )


def task_slugs(task_ids: Sequence[str]) -> list[str]:
    """A URL form for each id, unique among them: ``HumanEval/0`` becomes ``HumanEval-0``."""
    taken: set[str] = set()
    result = []
    for number, task_id in enumerate(task_ids):
        stem = re.sub(r"[^A-Za-z0-9_]+", "-", task_id)[:180].strip("-") or f"task-{number}"
        slug, again = stem, 2
        while slug in taken:
            slug, again = f"{stem}-{again}", again + 1
        taken.add(slug)
        result.append(slug)
    return result


def engine_task(row: models.Task) -> Task:
    """What the engine grades: the row with its benchmark's policies.

    The limit is the task's own, else ``max(3 s, 4 x the reference's time)``, at most 30 s.
    """
    benchmark = row.version.benchmark
    limit = row.timeout_s or max(DEFAULT_TIMEOUT_S, row.measured_timeout_s or 0.0)
    return Task(
        targets=tuple(from_json(target) for target in row.targets),
        kind=Kind(row.kind),
        task_id=row.task_id,
        prompt=row.prompt,
        setup=row.setup,
        entry_points=tuple(row.entry_points),
        timeout_s=min(limit, MAX_TIMEOUT_S),
        allow_processes=row.allow_processes,
        in_place=row.in_place,
        blocks=BlockPolicy(benchmark.blocks),
        preamble=Preamble(benchmark.preamble),
        denylist=None if benchmark.denylist is None else tuple(benchmark.denylist),
    )


def grade_references(
    version: models.BenchmarkVersion,
    sandbox: Sandbox,
    progress: Callable[[int, int], None] | None = None,
) -> ReferenceReport:
    """Grade every reference solution that has no verdict yet, each under the 30 s cap.

    Stores the verdict, the measured limit where it exceeds the default, and the status
    ``suspect`` where the reference does not pass. ``progress`` is called with (done, all).
    Raises `PlatformError`; what was graded before it stays.
    """
    tasks = _with_reference(version).filter(reference_verdict=None)
    total = tasks.count()
    with sandbox.warm():
        for done, row in enumerate(list(tasks.select_related("version__benchmark")), 1):
            _grade_reference(row, sandbox)
            if progress:
                progress(done, total)
    return reference_report(version)


def reference_report(version: models.BenchmarkVersion) -> ReferenceReport:
    """How the reference solutions graded so far came out."""
    graded = _with_reference(version).exclude(reference_verdict=None)
    failed = [
        FailedReference(row.task_id, verdict["outcome"], verdict["detail"])
        for row in graded.filter(status=models.Task.Status.SUSPECT)
        if (verdict := row.reference_verdict)
    ]
    total = graded.count()
    return ReferenceReport(total, total - len(failed), failed)


def _with_reference(version: models.BenchmarkVersion) -> QuerySet[models.Task]:
    return models.Task.objects.filter(version=version).exclude(reference="").order_by("position")


def _grade_reference(row: models.Task, sandbox: Sandbox) -> None:
    """A reference that only passes with its in-place changes kept shows what the task asks for."""
    task = replace(engine_task(row), timeout_s=MAX_TIMEOUT_S)
    verdict = grade(task, _reference(row), sandbox)
    may_change = task.kind is Kind.ASSERTION and not task.in_place
    if verdict.outcome is Outcome.ASSERTION_FAIL and may_change:
        kept = grade(replace(task, in_place=True), _reference(row), sandbox)
        if kept.outcome is Outcome.PASS:
            verdict, row.in_place = kept, True
    passed = verdict.outcome is Outcome.PASS
    row.measured_timeout_s = _measured_limit(task.kind, verdict) if passed else None
    row.status = models.Task.Status.ACTIVE if passed else models.Task.Status.SUSPECT
    row.reference_verdict = verdict.as_dict()
    row.save(update_fields=["in_place", "measured_timeout_s", "status", "reference_verdict"])


def _reference(row: models.Task) -> Generation:
    """The reference as a generation whose program is the reference itself."""
    if row.reference.startswith(row.prompt):
        return Generation(row.reference.removeprefix(row.prompt), Format.COMPLETION)
    return Generation(row.reference)


def _measured_limit(kind: Kind, verdict: Verdict) -> float | None:
    """By the whole run, or by the longest where each target had its own."""
    runs = [target.duration_s for target in verdict.targets]
    limit = REFERENCE_FACTOR * (max(runs) if kind is Kind.STDIO else verdict.wall_s)
    return min(limit, MAX_TIMEOUT_S) if limit > DEFAULT_TIMEOUT_S else None


def prompts_jsonl(version: models.BenchmarkVersion) -> Iterator[str]:
    """One line per task, to generate from: its id, prompt and entry point, never its targets."""
    rows = models.Task.objects.filter(version=version).order_by("position")
    read = ("task_id", "prompt", "entry_points", "kind", "targets", "setup", "version")
    for row in rows.only(*read):
        yield _line(task_id=row.task_id, prompt=row.prompt, entry_point=_entry_point(row))


def _entry_point(row: models.Task) -> str | list[str] | None:
    if row.kind != Kind.ASSERTION:
        return None
    names = Task(tuple(row.targets), setup=row.setup, entry_points=tuple(row.entry_points)).names()
    return list(names) if len(names) > 1 else next(iter(names), None)


def example_jsonl(version: models.BenchmarkVersion) -> str:
    """Three lines of an upload for this version: a chat reply, a completion, a second sample."""
    tasks = models.Task.objects.filter(version=version).order_by("position")[:EXAMPLE_TASKS]
    first, second = (list(tasks) * EXAMPLE_TASKS)[:EXAMPLE_TASKS]
    reply = _example_reply(first)
    more: dict[str, Any] = {"completion": "    return None\n"}
    if second.kind != Kind.ASSERTION:
        more = {"generation": _example_reply(second)}
    return (
        _line(task_id=first.task_id, sample=0, generation=reply)
        + _line(task_id=first.task_id, sample=1, generation=reply)
        + _line(task_id=second.task_id, sample=2, **more)
    )


def _example_reply(row: models.Task) -> str:
    if row.kind != Kind.ASSERTION:
        return "Here is the program.\n\n```python\nprint(input())\n```\n"
    names = Task(tuple(row.targets), entry_points=tuple(row.entry_points)).names()
    name = names[0] if names else "answer"
    return f"Here is the function.\n\n```python\ndef {name}(*args):\n    return None\n```\n"


def _line(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
