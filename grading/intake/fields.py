"""Which field of flat records names the task, which holds the text, which another's verdict.

`find_fields` decides from the first records of a file, and a user may decide otherwise;
`answer_of` then reads one record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from grading.engine.jsonl import shown
from grading.engine.task import Format
from grading.intake import caps
from grading.intake.shapes import Flat
from grading.intake.task_table import Match, TaskTable
from grading.intake.texts import NoText, texts_of

# Of two that a record holds, the one that stands first here is taken.
TEXT_FIELDS = (
    "solution",
    "completion",
    "generation",
    "generations",
    "code_list",
    "filtered_resps",
    "resps",
    "response",
    "responses",
    "samples",
    "code",
    "output",
    "output_list",
    "answer",
    "raw_solution",
    "choices",
    "messages",
)
CONTINUES_PROMPT = "completion"
ID_FIELDS = (
    ("task_id", Match.ID),
    ("task_id", Match.NUMBER),
    ("question_id", Match.ID),
    ("question_id", Match.NUMBER),
    ("id", Match.ID),
    ("id", Match.NUMBER),
    ("name", Match.ID),
    ("name", Match.NUMBER),
    ("doc_id", Match.POSITION),
    ("position", Match.POSITION),
    ("prompt", Match.PROMPT),
)
VERDICT_FIELDS = ("passed", "graded_list", "is_solved", "base_status", "plus_status", "status")
SAMPLE_FIELD = "sample"
OTHER_LANGUAGES = frozenset(
    {"bash", "c", "c++", "cpp", "csharp", "go", "java", "javascript", "js", "julia", "kotlin"}
    | {"lua", "perl", "php", "r", "ruby", "rust", "scala", "swift", "ts", "typescript"}
)
_VERDICTS = {"pass": True, "passed": True, "fail": False, "failed": False, "timeout": False}

OFFERED_FIELDS = 12
OFFERED_NAME_CHARS = 60
KEPT_FIELDS = 32
KEPT_TEXT_CHARS = 500


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user decides instead of the detection; empty means: as detected.

    ``reading`` is a `Format`, ``match`` a `Match`.
    """

    text_field: str = ""
    reading: str = ""
    match: str = ""


AS_DETECTED = Choices()


@dataclass(frozen=True, slots=True)
class FieldMap:
    """``text_fields`` in the order in which they are looked for. ``offered`` can hold texts."""

    id_field: str
    match: Match
    text_fields: tuple[str, ...]
    reading: Format | None = None
    chatty_completions: bool = False
    verdict_field: str = ""
    offered: tuple[str, ...] = ()

    def format_of(self, text_field: str) -> Format:
        if self.reading:
            return self.reading
        continues = text_field == CONTINUES_PROMPT and not self.chatty_completions
        return Format.COMPLETION if continues else Format.GENERATION


@dataclass(slots=True)  # made half a million times; freezing would double the time
class Answer:
    """One record: texts for the task at ``place``. ``sample`` is the first one's number, if given.

    ``passed`` holds another grader's verdict for each text, None where there is none. ``extra``
    are the small fields of a record with a single text.
    """

    place: int
    texts: list[str]
    text_field: str
    format: Format
    sample: int | None
    passed: list[bool | None]
    extra: Flat = field(default_factory=dict)


class BadRecord(Exception):
    """The record cannot be used, and why."""

    def __init__(
        self, rule: str, field: str, found: object, expected: str, task_id: str = ""
    ) -> None:
        super().__init__(rule)
        self.rule = rule
        self.field = field
        self.found = shown(found)
        self.expected = expected
        self.task_id = task_id

    @property
    def detail(self) -> str:
        return f"expected {self.expected}, found {self.found}"


def find_fields(rows: Sequence[Any], table: TaskTable, choices: Choices) -> FieldMap:
    """Decide from the first records of a file; any values are accepted."""
    records = [row for row in rows if isinstance(row, dict)]
    id_field, match = _id_field(records, table, choices.match)
    return FieldMap(
        id_field=id_field,
        match=match,
        text_fields=(choices.text_field,) if choices.text_field else TEXT_FIELDS,
        reading=Format(choices.reading) if choices.reading else None,
        chatty_completions=_mostly_fenced(records),
        verdict_field=_verdict_field(records, table),
        offered=_offered(records, id_field),
    )


def answer_of(row: Any, fields: FieldMap, table: TaskTable) -> Answer:
    """Read one flat record. Raises `BadRecord`."""
    if not isinstance(row, dict):
        raise BadRecord("wrong type", "", row, 'a JSON object: {"task_id": ...}')
    place = _place(row, fields, table)
    task_id = table.tasks[place].task_id
    language = row.get("language")
    if isinstance(language, str) and language.lower() in OTHER_LANGUAGES:
        raise BadRecord("other language", "language", language, "Python", task_id)
    for name in fields.text_fields:
        if name in row:
            break
    else:
        expected = " or ".join(fields.text_fields[:4])
        raise BadRecord("missing field", "", sorted(row), f"a field {expected}", task_id)
    texts = _checked_texts(row[name], name, task_id)
    return Answer(
        place=place,
        texts=texts,
        text_field=name,
        format=fields.format_of(name),
        sample=_sample(row, task_id),
        passed=_verdicts(row.get(fields.verdict_field), len(texts)),
        extra=_extra(row, fields.id_field, name) if len(texts) == 1 else {},
    )


def _id_field(records: list[Flat], table: TaskTable, wanted: str) -> tuple[str, Match]:
    """The first pair of field and way to match by which about as many records find a task as by
    any: one odd id does not change how the others are read.
    """
    ways = [(name, match) for name, match in ID_FIELDS if match.value == (wanted or match.value)]
    hits: Counter[tuple[str, Match]] = Counter()
    for name, match in ways:
        found = (table.find(row[name], match) for row in records if name in row)
        hits[name, match] = sum(place is not None for place in found)
    most = max(hits.values())
    if most:
        return next(way for way in ways if 2 * hits[way] >= most)
    return next((way for way in ways if any(way[0] in row for row in records)), ways[0])


def _mostly_fenced(records: list[Flat]) -> bool:
    """Text with a fence continues no prompt: such a file holds chat replies."""
    texts = [text for row in records for text in _strings(row.get(CONTINUES_PROMPT))]
    return sum("```" in text for text in texts) * 2 > len(texts)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def _verdict_field(records: list[Flat], table: TaskTable) -> str:
    counts: Counter[str] = Counter()
    for row in records:
        counts.update(name for name in VERDICT_FIELDS if _has_verdict(row.get(name)))
    names = [name for name in VERDICT_FIELDS if counts[name]]
    if table.is_plus and "plus_status" in names:
        return "plus_status"
    return names[0] if names else ""


def _has_verdict(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(_verdict(item) is not None for item in items)


def _verdict(value: Any) -> bool | None:
    if isinstance(value, str):
        return _VERDICTS.get(value.lower())
    return value if isinstance(value, bool) else None


def _verdicts(value: Any, count: int) -> list[bool | None]:
    """One for each text; a single verdict on several texts says nothing about any of them."""
    if value is None:
        return [None] * count
    items = value if isinstance(value, list) else [value]
    return [_verdict(item) for item in items] if len(items) == count else [None] * count


def _offered(records: list[Flat], id_field: str) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for row in records:
        counts.update(name for name, value in row.items() if _may_be_text(value))
    names = [name for name, count in counts.most_common() if count * 2 > len(records)]
    fit = (name for name in names if name.isprintable() and len(name) <= OFFERED_NAME_CHARS)
    return tuple(sorted(name for name in fit if name != id_field))[:OFFERED_FIELDS]


def _may_be_text(value: Any) -> bool:
    if not isinstance(value, str | list | dict):
        return False
    try:
        return bool(texts_of(value))
    except NoText:
        return False


def _place(row: Flat, fields: FieldMap, table: TaskTable) -> int:
    name = fields.id_field
    if name not in row:
        raise BadRecord("missing field", name, sorted(row), f"a field {name}")
    value = row[name]
    place = table.find(value, fields.match)
    if place is not None:
        return place
    if fields.match in (Match.ID, Match.NUMBER) and not isinstance(value, str | int):
        raise BadRecord("wrong type", name, value, 'a string, such as "HumanEval/0"')
    example = f", such as {shown(table.tasks[0].task_id)}" if table.tasks else ""
    known = f"one of this version's {len(table):,} tasks by {fields.match.value}{example}"
    raise BadRecord("unknown task", name, value, known, value if isinstance(value, str) else "")


def _checked_texts(value: Any, name: str, task_id: str) -> list[str]:
    try:
        texts = texts_of(value)
    except NoText as problem:
        expected = "a string or a list of strings"
        raise BadRecord("wrong type", name, problem.value, expected, task_id) from None
    longest = max(map(len, texts), default=0)
    if longest > caps.MAX_TEXT_CHARS:
        expected = f"at most {caps.MAX_TEXT_CHARS:,} characters"
        raise BadRecord("text too long", name, f"{longest:,} characters", expected, task_id)
    return texts


def _sample(row: Flat, task_id: str) -> int | None:
    if SAMPLE_FIELD not in row:
        return None
    sample = row[SAMPLE_FIELD]
    if isinstance(sample, bool) or not isinstance(sample, int):
        expected = "a whole number from 0"
        raise BadRecord("wrong type", SAMPLE_FIELD, sample, expected, task_id)
    if not 0 <= sample <= caps.MAX_SAMPLE_INDEX:
        expected = f"0 to {caps.MAX_SAMPLE_INDEX:,}"
        raise BadRecord("out of range", SAMPLE_FIELD, sample, expected, task_id)
    return sample


def _extra(row: Flat, *used: str) -> Flat:
    """The small fields; prompts and tests that a tool wrote into every row are left out."""
    if len(row) <= len(used):
        return {}
    small = (
        (name, row[name])
        for name in row
        if name not in used and name != SAMPLE_FIELD and _is_small(row[name])
    )
    return dict(islice(small, KEPT_FIELDS))


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= KEPT_TEXT_CHARS
    return value is None or isinstance(value, bool | int | float)
