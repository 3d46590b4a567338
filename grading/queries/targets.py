"""The targets of a task as pages show them, with what came of each in one attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grading.engine.task import Exchange, from_json
from grading.models import AttemptText, Task

# How the judge begins the detail of an assertion that is false without a call having raised.
FALSE_WORDS = ("false", "AssertionError", "holds only")
# What the engine says of targets that were not asked, since the run had ended before.
NOT_REACHED = "not reached"
EXCHANGE_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Stream:
    """Head and tail of a text and its true size in bytes."""

    name: str
    head: str
    tail: str
    size: int

    @property
    def left_out(self) -> int:
        return max(self.size - _bytes(self.head) - _bytes(self.tail), 0)


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A target and what came of it; ``true`` None means it was never asked.

    ``text`` is an assertion; an exchange has ``texts`` instead: what was given, what was expected
    and, where it was run, what was printed.
    """

    number: int
    text: str = ""
    texts: tuple[Stream, ...] = ()
    true: bool | None = None
    label: str = ""
    detail: str = ""
    duration_s: float | None = None

    @property
    def raised(self) -> bool:
        """Whether a call raised; the judge says in other words that an assertion was just false."""
        return bool(self.text) and self.true is False and not self.detail.startswith(FALSE_WORDS)


def target_lines(task: Task, text: AttemptText | None = None) -> list[TargetLine]:
    """Every target in order."""
    results = {row["index"]: row for row in (text.targets if text else [])}
    return [_line(index, stored, results.get(index)) for index, stored in enumerate(task.targets)]


def _line(index: int, stored: Any, result: dict[str, Any] | None) -> TargetLine:
    target = from_json(stored)
    shown: dict[str, Any] = {"text": target}
    if isinstance(target, Exchange):
        texts = [_cut("input", target.input), _cut("expected output", target.output)]
        if printed := (result or {}).get("printed"):
            texts.append(Stream("printed", printed["head"], printed["tail"], printed["size"]))
        shown = {"texts": tuple(texts)}
    if result is None or (not result["true"] and result["detail"] == NOT_REACHED):
        return TargetLine(index + 1, **shown)
    facts = {name: result[name] for name in ("true", "label", "detail", "duration_s")}
    return TargetLine(index + 1, **shown, **facts)


def _cut(name: str, text: str) -> Stream:
    return Stream(name, text[:EXCHANGE_CHARS], "", _bytes(text))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
