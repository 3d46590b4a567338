"""Which failures are the same: a fingerprint of how a run ended.

Pure: it reads only what the engine told in a structured way, never what the program wrote to its
streams, so a program cannot print itself into another group. A fingerprint is the first 16 hex
digits of SHA-256 over version, kind, type, message template, place and scope; `Fingerprint.parts`
are those in words. A change of the rules raises `VERSION`.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VERSION = 1
DIGITS = 16
MESSAGE_CHARS = 500
KEPT_CHARS = 60
FUNCTIONS = 3
PLATFORM = "platform"
# Control, format, surrogate, private, unassigned; line and paragraph separators.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

# Types whose quoted words say what is wrong, and not which value was at hand.
KEEP_QUOTED = {
    *("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError", "AttributeError"),
    *("SyntaxError", "IndentationError", "TabError"),
}
# The message of a KeyError is the key.
NO_MESSAGE = {"KeyError"}
_QUOTED = re.compile(r"""(?<!\w)'[^']*'|(?<!\w)"[^"]*\"""")
_PLACE = re.compile(r"\((?:program\.py|<[^>]*>), line \d+\)")
_RULES = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+", re.IGNORECASE), "<addr>"),
    (re.compile(r"(?<![\w/])(?:/[\w.+-]+){2,}/?"), "<path>"),
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CALLED = re.compile(r"\b[\w.<>]+(?=\(\))")


@dataclass(frozen=True, slots=True)
class Ending:
    """How one run ended, as the engine told it.

    ``outcome`` is an outcome or `PLATFORM`; ``target`` the index of the first target that is not
    true; ``task`` tells the task with all that grading depends on, ``task_id`` is how it is
    shown; ``frames`` are ``(line, function)``, innermost last.
    """

    outcome: str
    detail: str = ""
    phase: str = ""
    exception: str = ""
    message: str = ""
    frames: Sequence[tuple[int, str]] = ()
    signal: str = ""
    exit_status: int | None = None
    target: int | None = None
    task: str = ""
    task_id: str = ""
    entry_points: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """``title`` names the group; ``parts`` are what it was grouped by, as (word, value)."""

    value: str
    kind: str
    title: str
    parts: tuple[tuple[str, str], ...]


def fingerprint(ending: Ending) -> Fingerprint | None:
    """The fingerprint of a failure, whatever its text; None of a pass."""
    if ending.outcome == "pass":
        return None
    kind, of_type, template, scoped = _facts(ending)
    # The task and the target place a miss; how a program got there differs from one to the next.
    missed = kind == "assertion" and ending.target is not None
    where = f"target {(ending.target or 0) + 1}" if missed else _where(ending)
    scope = ending.task if scoped else ""
    hashed = json.dumps([VERSION, kind, of_type, template, where, scope])
    parts = [("kind", kind), ("type", of_type), ("message", template), ("where", where)]
    if scoped:
        parts.append(("task", ending.task_id))
    return Fingerprint(
        value=hashlib.sha256(hashed.encode("ascii")).hexdigest()[:DIGITS],
        kind=kind.partition(":")[0],
        title=_visible(_title(ending, kind, of_type, template, where)),
        parts=tuple((word, _visible(value)) for word, value in parts if value),
    )


def _visible(text: str) -> str:
    """``text`` fit for lists, logs and attributes: what cannot be seen is named."""
    return "".join(
        f"<U+{ord(char):04X}>" if unicodedata.category(char) in HIDDEN else char for char in text
    )


def _facts(ending: Ending) -> tuple[str, str, str, bool]:
    """(kind, type, template, whether it means something only for its task)."""
    if ending.outcome == PLATFORM:
        return "platform", "", template(ending.detail), False
    if ending.outcome == "timeout":
        return "timeout", "", "", True
    if ending.outcome == "assertion_fail":
        return "assertion", _raised(ending), "", True
    if denied := _denied(ending):
        return "denied import", "", denied, False
    if ending.exception:
        kind = "syntax" if ending.outcome == "syntax_error" else "exception"
        return kind, ending.exception, template(ending.message, ending.exception), False
    if ending.signal:
        return f"signal:{ending.signal}", "", "", False
    if ending.exit_status is not None:
        return f"exit:{ending.exit_status}", "", "", False
    return "ended", "", template(ending.detail.partition(":")[0]), False


def _raised(ending: Ending) -> str:
    """What a call of the program raised; a target that is just false raises in the judge only."""
    false = ending.exception == "AssertionError" and not ending.frames
    return "" if false else ending.exception


def _denied(ending: Ending) -> str:
    """The module whose denied import ended the program.

    Only the engine writes this detail for an ImportError: a raised one begins with its type.
    """
    prefix = "denied: "
    if ending.exception != "ImportError" or not ending.detail.startswith(prefix):
        return ""
    return ending.detail.removeprefix(prefix)[:KEPT_CHARS]


def template(message: str, exception: str = "") -> str:
    """``message`` with what differs from run to run replaced, by rules for its type."""
    if exception in NO_MESSAGE:
        return ""
    text = " ".join(message[:MESSAGE_CHARS].split())
    text = _PLACE.sub("", text).strip()
    kept: list[str] = []
    if exception in KEEP_QUOTED:
        kept = _QUOTED.findall(text)
    text = _QUOTED.sub("<str>", text)
    for pattern, token in _RULES:
        text = pattern.sub(token, text)
    text = _CALLED.sub("<f>", _NUMBER.sub("<n>", text))
    for word in kept:
        text = text.replace("<str>", word[: KEPT_CHARS + 2], 1)
    return text


def _where(ending: Ending) -> str:
    functions = _functions((name for _, name in ending.frames), ending.entry_points)
    if ending.exception == "RecursionError":
        # Which function of a cycle was on top when the stack ended is chance.
        functions = sorted(functions)
    return " in ".join([ending.phase or "run", *functions])


def _functions(names: Iterable[str], entry_points: Sequence[str]) -> list[str]:
    """The innermost functions, each once, the innermost first; the entry point by role."""
    found: list[str] = []
    for name in reversed([*names]):
        shown = "<entry>" if name in entry_points else name
        if shown and shown != "<module>" and shown not in found:
            found.append(shown)
    return found[:FUNCTIONS]


def _title(ending: Ending, kind: str, of_type: str, template_: str, where: str) -> str:
    if kind == "assertion":
        how = f"raises {of_type}" if of_type else "is not true"
        return f"{ending.task_id}: {where} {how}"
    if kind == "timeout":
        return f"{ending.task_id}: timeout in {ending.phase or 'the run'}"
    said = ": ".join(part for part in (of_type, template_) if part)
    if kind in ("platform", "ended"):
        return said or kind
    if kind == "denied import":
        return f"denied import of {template_}"
    return f"{said or kind.replace(':', ' ')}, {_at(ending)}"


def _at(ending: Ending) -> str:
    return {"compile": "when compiled", "import": "while loading", "target": "when asked"}.get(
        ending.phase, f"at {ending.phase or 'run'}"
    )
