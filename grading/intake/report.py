"""What a file holds and what is wrong with it, before anything is stored: one form for all.

The page, the command line and the API show the same `UploadReport`; ``as_dict`` is its JSON.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

from grading import hostile
from grading.engine import source
from grading.engine.jsonl import Problem, ProblemLog, plain, shown
from grading.engine.program import Program, build_program
from grading.engine.task import Generation
from grading.intake import caps
from grading.intake.fields import AS_DETECTED, Choices
from grading.intake.reading import Found, Reading
from grading.intake.task_table import TaskTable

SHOWN = 20  # problems and missing tasks that a report names
PREVIEWS = 3
PREVIEW_CHARS = 20_000
KS = (1, 5, 10, 100)
TOO_MANY_WITHOUT_CODE = 0.3
MAX_MODEL_NAME_CHARS = 200
# Programs of this many samples are all looked at, and of every further as many half as many.
LOOKED_AT = 500
HASH_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class Preview:
    """A generation beside the program found in it; both cut at `PREVIEW_CHARS`."""

    line: int
    member: str
    task_id: str
    sample: int
    raw: str
    program: str
    rule: str
    block: int | None
    blocks: int

    @property
    def used(self) -> range:
        """Lines of ``raw`` that stand in ``program``."""
        return hostile.used_lines(self.raw, self.program) if self.program.strip() else range(0)


@dataclass(frozen=True, slots=True)
class Detected:
    """What the file was taken for, and what else may be chosen.

    ``match`` is how tasks are found in ``id_field``; ``text_fields`` counts samples by the field
    they came from, ``readings`` by `Format`. ``choices`` are the user's own decisions.
    """

    layout: str
    packing: str
    members: int
    ignored_members: int
    id_field: str
    match: str
    text_fields: dict[str, int]
    readings: dict[str, int]
    offered_fields: tuple[str, ...]
    choices: Choices


@dataclass(frozen=True, slots=True)
class UploadReport:
    """``problems`` are the first 20 of ``problem_count``, which ``problem_rules`` sorts by rule.

    ``n_min`` and ``n_max`` are samples per covered task, ``ks`` the k for which pass@k exists. Of
    ``looked_at`` samples, spread over the file, ``empty_programs`` have an empty text or program
    and ``without_code`` no program that is Python. ``peer_verdicts`` samples carry another
    grader's verdict.
    """

    file_name: str
    file_hash: str
    file_bytes: int
    detected: Detected
    records: int
    samples: int
    problems: tuple[Problem, ...]
    problem_count: int
    problem_rules: dict[str, int]
    readable: bool
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
    peer_verdicts: int
    peer_passes: int
    previews: tuple[Preview, ...]

    @property
    def ok(self) -> bool:
        """Every record can be used."""
        return self.problem_count == 0

    @property
    def usable(self) -> bool:
        """The good records can be graded, if the uploader wants to leave out the others."""
        return self.readable and self.samples > 0

    @property
    def too_large(self) -> bool:
        return "file too large" in self.problem_rules

    @property
    def share_without_code(self) -> float:
        return self.without_code / self.looked_at if self.looked_at else 0.0

    @property
    def suspicious(self) -> bool:
        """So many samples without code that the wrong field or reading is likely."""
        return self.share_without_code > TOO_MANY_WITHOUT_CODE

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, with what follows from the counts."""
        return asdict(self) | {
            "ok": self.ok,
            "usable": self.usable,
            "share_without_code": round(self.share_without_code, 4),
            "too_many_without_code": self.suspicious,
        }


@dataclass(slots=True)
class Checking:
    """The first reading of a file, and what was counted in it so far."""

    reading: Reading
    file_name: str
    file_hash: str
    file_bytes: int
    log: ProblemLog = field(default_factory=lambda: ProblemLog(SHOWN))
    names_a_model: bool = True
    text_fields: Counter[str] = field(default_factory=Counter)
    readings: Counter[str] = field(default_factory=Counter)
    looked_at: int = 0
    empty_programs: int = 0
    without_code: int = 0
    peer_verdicts: int = 0
    peer_passes: int = 0
    previews: list[Preview] = field(default_factory=list)

    def run(self) -> None:
        """Read the whole file."""
        if self.file_bytes > caps.MAX_FILE_BYTES:
            detail = f"{self.file_bytes:,} bytes; at most {caps.MAX_FILE_BYTES:,}"
            self.log.add(Problem(0, "", "", "file too large", detail), fatal=True)
            return
        seen = 0
        for item in self.reading:
            if isinstance(item, Problem):
                self.log.add(item, fatal=self.reading.broken)
            else:
                self._take(item, seen)
                seen += 1

    def check_model_name(self, name: str) -> None:
        """A bad name is a problem of the upload like any other."""
        if not 0 < len(name.strip()) <= MAX_MODEL_NAME_CHARS or not name.isprintable():
            self.names_a_model = False
            detail = f"use 1 to {MAX_MODEL_NAME_CHARS} printable characters"
            self.log.add(Problem(0, "", "model", "bad name", detail, shown(name)))

    def _take(self, found: Found, seen: int) -> None:
        self.text_fields[found.text_field] += 1
        self.readings[found.format.value] += 1
        if found.passed is not None:
            self.peer_verdicts += 1
            self.peer_passes += found.passed
        if seen % (1 << (seen // LOOKED_AT).bit_length()) == 0:
            self._look_at(found)

    def _look_at(self, found: Found) -> None:
        task = self.reading.table.tasks[found.place.task]
        program = build_program(task, Generation(found.text, found.format))
        # Behind nothing stands the prompt alone, which is no program of the model's.
        is_empty = not found.text.strip() or not program.text.strip()
        self.looked_at += 1
        self.empty_programs += is_empty
        self.without_code += is_empty or not _has_code(program)
        if len(self.previews) < PREVIEWS:
            self.previews.append(_preview(found, task.task_id, program))

    def report(self) -> UploadReport:
        table, places = self.reading.table, self.reading.places
        counts = [count for count in places.counts() if count]
        missing = [
            task.task_id
            for task, count in zip(table.tasks, places.counts(), strict=True)
            if not count
        ]
        n_min = min(counts, default=0)
        return UploadReport(
            file_name=self.file_name,
            file_hash=self.file_hash,
            file_bytes=self.file_bytes,
            detected=self._detected(),
            records=self.reading.cursor.records,
            samples=len(places),
            problems=tuple(self.log.kept),
            problem_count=self.log.total,
            problem_rules=dict(self.log.by_rule.most_common()),
            readable=not self.log.fatal,
            tasks_covered=len(counts),
            tasks_total=len(table),
            missing_count=len(missing),
            missing=tuple(missing[:SHOWN]),
            n_min=n_min,
            n_max=max(counts, default=0),
            ks=tuple(k for k in KS if k <= n_min),
            duplicates=self.log.by_rule["duplicate sample"],
            looked_at=self.looked_at,
            empty_programs=self.empty_programs,
            without_code=self.without_code,
            peer_verdicts=self.peer_verdicts,
            peer_passes=self.peer_passes,
            previews=tuple(self.previews),
        )

    def _detected(self) -> Detected:
        reading = self.reading
        return Detected(
            layout=reading.shape.title,
            packing=reading.container.packing,
            members=len(reading.container.members) if reading.container.archive else 0,
            ignored_members=reading.container.ignored,
            id_field=reading.fields.id_field,
            match=reading.fields.match.value,
            text_fields={plain(name): count for name, count in self.text_fields.most_common()},
            readings=dict(self.readings),
            offered_fields=reading.fields.offered,
            choices=reading.choices,
        )


def checked(
    stream: BinaryIO, file_name: str, table: TaskTable, choices: Choices = AS_DETECTED
) -> Checking:
    """Read the whole of a seekable file once; never raises for its content."""
    digest, size = fingerprint(stream)
    checking = Checking(Reading(stream, table, choices), file_name, digest, size)
    checking.run()
    return checking


def problems(
    stream: BinaryIO, table: TaskTable, choices: Choices = AS_DETECTED
) -> Iterator[Problem]:
    """All problems of a file as they are met, for a download."""
    return (item for item in Reading(stream, table, choices) if isinstance(item, Problem))


def fingerprint(stream: BinaryIO) -> tuple[str, int]:
    """SHA-256 of the bytes as uploaded, and their number."""
    stream.seek(0)
    digest, size = hashlib.sha256(), 0
    while block := stream.read(HASH_BYTES):
        digest.update(block)
        size += len(block)
    return digest.hexdigest(), size


def _has_code(program: Program) -> bool:
    tree = source.parse(program.text)
    return tree is not None and bool(tree.body)


def _preview(found: Found, task_id: str, program: Program) -> Preview:
    return Preview(
        line=found.line,
        member=plain(found.member),
        task_id=task_id,
        sample=found.place.sample,
        raw=found.text[:PREVIEW_CHARS],
        program=program.text[:PREVIEW_CHARS],
        rule=program.extraction.rule,
        block=program.extraction.block,
        blocks=program.extraction.blocks,
    )
