"""Reading an upload: every line judged, and a report on the file as a whole."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from grading.benchmarks import engine_task
from grading.engine import jsonl, source
from grading.engine.formats import BadUploadLine, UploadLine, parse_line
from grading.engine.jsonl import Problem, ProblemLog
from grading.engine.program import Program, build_program
from grading.engine.task import Generation
from grading.engine.task import Task as EngineTask
from grading.models import BenchmarkVersion, Task

# Caps on one upload; those on lines and unpacked bytes are in `jsonl.UPLOAD_CAPS`.
MAX_FILE_BYTES = 256 * 1024**2
MAX_SAMPLES = 200_000
MAX_LINES = 500_000
MAX_MODEL_NAME_CHARS = 200
SHOWN = 20  # problems and missing tasks that a report names
PREVIEWS = 3
PREVIEW_CHARS = 20_000
LOOKED_AT = 2_000  # samples whose programs are looked at for the report
KS = (1, 5, 10, 100)
HASH_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class Preview:
    """A generation beside the program found in it; both cut at `PREVIEW_CHARS`."""

    line: int
    task_id: str
    sample: int
    raw: str
    program: str
    rule: str
    block: int | None
    blocks: int


@dataclass(frozen=True, slots=True)
class UploadReport:
    """What a file holds and what is wrong with it.

    ``problems`` are the first 20 of ``problem_count``. ``n_min`` and ``n_max`` are samples per
    covered task, ``ks`` the k for which pass@k exists. Of the ``looked_at`` first samples,
    ``empty_programs`` have an empty program and ``without_code`` none that is Python.
    """

    file_name: str
    file_hash: str
    file_bytes: int
    packed: bool
    lines: int
    samples: int
    problems: tuple[Problem, ...]
    problem_count: int
    readable: bool
    formats: dict[str, int]
    tasks_covered: int
    tasks_total: int
    missing_count: int
    missing: tuple[str, ...]
    n_min: int
    n_max: int
    ks: tuple[int, ...]
    duplicates: int
    looked_at: int
    empty_programs: int
    without_code: int
    previews: tuple[Preview, ...]

    @property
    def ok(self) -> bool:
        """Every line can be used."""
        return self.problem_count == 0

    @property
    def usable(self) -> bool:
        """The good lines can be graded, if the uploader wants to leave out the others."""
        return self.readable and self.samples > 0

    @property
    def share_without_code(self) -> float:
        return self.without_code / self.looked_at if self.looked_at else 0.0


@dataclass(slots=True)
class Reading:
    """The first reading of a file: what was found so far.

    ``tasks`` and ``primary_keys`` are by task id, in the order of the version.
    """

    file_name: str
    file_hash: str
    file_bytes: int
    packed: bool
    tasks: dict[str, EngineTask]
    primary_keys: dict[str, int]
    log: ProblemLog = field(default_factory=lambda: ProblemLog(SHOWN))
    samples: list[tuple[str, int]] = field(default_factory=list)
    formats: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    duplicates: int = 0
    looked_at: int = 0
    empty_programs: int = 0
    without_code: int = 0
    previews: list[Preview] = field(default_factory=list)
    names_a_model: bool = True

    def check_model_name(self, name: str) -> None:
        """A bad name is a problem of the upload like any other."""
        if not 0 < len(name.strip()) <= MAX_MODEL_NAME_CHARS or not name.isprintable():
            self.names_a_model = False
            detail = f"use 1 to {MAX_MODEL_NAME_CHARS} printable characters"
            self.log.add(Problem(0, "", "model", "bad name", detail, jsonl.shown(name)))

    def report(self) -> UploadReport:
        per_task = Counter(task_id for task_id, _ in self.samples)
        missing = [task_id for task_id in self.tasks if task_id not in per_task]
        n_min = min(per_task.values(), default=0)
        return UploadReport(
            file_name=self.file_name,
            file_hash=self.file_hash,
            file_bytes=self.file_bytes,
            packed=self.packed,
            lines=self.lines,
            samples=len(self.samples),
            problems=tuple(self.log.kept),
            problem_count=self.log.total,
            readable=not self.log.fatal,
            formats=dict(self.formats),
            tasks_covered=len(per_task),
            tasks_total=len(self.tasks),
            missing_count=len(missing),
            missing=tuple(missing[:SHOWN]),
            n_min=n_min,
            n_max=max(per_task.values(), default=0),
            ks=tuple(k for k in KS if k <= n_min),
            duplicates=self.duplicates,
            looked_at=self.looked_at,
            empty_programs=self.empty_programs,
            without_code=self.without_code,
            previews=tuple(self.previews),
        )

    def take(self, number: int, line: UploadLine, index: int) -> None:
        """Note a good line; what program it yields is looked at as long as that is cheap."""
        self.samples.append((line.task_id, index))
        self.formats[line.format.value] += 1
        if self.looked_at >= LOOKED_AT:
            return
        program = build_program(self.tasks[line.task_id], Generation(line.text, line.format))
        self.looked_at += 1
        self.empty_programs += not program.text.strip()
        self.without_code += not _has_code(program)
        if len(self.previews) < PREVIEWS:
            self.previews.append(_preview(number, line, index, program))


class GoodLines:
    """The lines of a file that can be graded, as (line number, line, sample index).

    A line that names no sample gets the number of good lines its task had so far. Bad lines go
    to ``log``. Two iterations over the same bytes yield the same lines.
    """

    def __init__(self, stream: BinaryIO, task_ids: Collection[str], log: ProblemLog) -> None:
        self.duplicates = 0
        self._stream = stream
        self._task_ids = task_ids
        self._log = log
        self._taken: set[tuple[str, int]] = set()

    def __iter__(self) -> Iterator[tuple[int, UploadLine, int]]:
        counted: Counter[str] = Counter()
        for number, row in jsonl.read(self._stream, jsonl.UPLOAD_CAPS, self._log):
            if len(self._taken) >= MAX_SAMPLES or number > MAX_LINES:
                limits = f"{MAX_SAMPLES:,} samples or {MAX_LINES:,} lines"
                detail = f"more than {limits}; split the file"
                self._log.add(Problem(number, "", "", "file too large", detail), fatal=True)
                return
            try:
                line = parse_line(number, row)
                index = counted[line.task_id] if line.sample is None else line.sample
                self._check_place(number, line, index)
            except BadUploadLine as bad:
                self._log.add(bad.problem)
                continue
            counted[line.task_id] += 1
            self._taken.add((line.task_id, index))
            yield number, line, index

    def _check_place(self, number: int, line: UploadLine, index: int) -> None:
        """The task exists and this sample of it is new. Raises `BadUploadLine`."""
        found = jsonl.shown(line.task_id)
        if line.task_id not in self._task_ids:
            known = f"one of {len(self._task_ids):,} ids"
            if self._task_ids:
                known += f" such as {jsonl.shown(next(iter(self._task_ids)))}"
            detail = f"{found} is no task of this version; expected {known}"
            raise BadUploadLine(
                Problem(
                    number,
                    jsonl.plain(line.task_id),
                    "task_id",
                    "unknown task",
                    detail,
                    found,
                    known,
                )
            )
        if (line.task_id, index) in self._taken:
            self.duplicates += 1
            detail = f"sample {index} of {found} stands in an earlier line"
            raise BadUploadLine(
                Problem(number, line.task_id, "sample", "duplicate sample", detail, str(index))
            )


def read(stream: BinaryIO, file_name: str, version: BenchmarkVersion) -> Reading:
    """Read the whole of a seekable file once; never raises for its content."""
    rows = Task.objects.filter(version=version).select_related("version__benchmark")
    rows = rows.order_by("position").defer("reference", "reference_verdict", "metadata")
    tasks = {row.task_id: (engine_task(row), row.pk) for row in rows}
    digest, size, packed = _fingerprint(stream)
    reading = Reading(
        file_name=file_name,
        file_hash=digest,
        file_bytes=size,
        packed=packed,
        tasks={task_id: task for task_id, (task, _) in tasks.items()},
        primary_keys={task_id: key for task_id, (_, key) in tasks.items()},
    )
    if size > MAX_FILE_BYTES:
        detail = f"{size:,} bytes; at most {MAX_FILE_BYTES:,}"
        reading.log.add(Problem(0, "", "", "file too large", detail), fatal=True)
        return reading
    good = GoodLines(stream, reading.tasks, reading.log)
    for number, line, index in good:
        reading.take(number, line, index)
    reading.duplicates = good.duplicates
    # Every bad line has one problem; what ended the reading is none of a line.
    reading.lines = len(reading.samples) + reading.log.total - reading.log.fatal
    if not reading.samples and not reading.log.total:
        reading.log.add(Problem(0, "", "", "empty file", "the file holds no line"), fatal=True)
    return reading


def _has_code(program: Program) -> bool:
    tree = source.parse(program.text)
    return tree is not None and bool(tree.body)


def _preview(number: int, line: UploadLine, index: int, program: Program) -> Preview:
    return Preview(
        line=number,
        task_id=line.task_id,
        sample=index,
        raw=line.text[:PREVIEW_CHARS],
        program=program.text[:PREVIEW_CHARS],
        rule=program.extraction.rule,
        block=program.extraction.block,
        blocks=program.extraction.blocks,
    )


def _fingerprint(stream: BinaryIO) -> tuple[str, int, bool]:
    """SHA-256 of the bytes as uploaded, their number, and whether they are gzip."""
    stream.seek(0)
    digest, size, packed = hashlib.sha256(), 0, False
    while block := stream.read(HASH_BYTES):
        packed = packed or (size == 0 and block.startswith(jsonl.GZIP_MAGIC))
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size, packed
