"""Which failures are the same: a fingerprint of how a run ended.

Pure: it reads only what the engine told in a structured way, never what the program wrote to its
streams, so a program cannot print itself into another group. A fingerprint is the first 16 hex
digits of SHA-256 over version, kind, type, message template, place and scope; `Fingerprint.parts`
are those in words. A change of the rules raises `VERSION`.
"""

from __future__ import annotations

import hashlib
import json
import keyword
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VERSION = 3
DIGITS = 16
MESSAGE_CHARS = 500
KEPT_CHARS = 60
FUNCTIONS = 3
PLATFORM = "platform"
# In a title, what stands behind it comes from programs: not for those who may not see them.
DETAILS = " · "
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
_ADDRESS = re.compile(r"\b0x[0-9a-f]+", re.IGNORECASE)
_RULES = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (_ADDRESS, "<addr>"),
    (re.compile(r"(?<![\w/])(?:/[\w.+-]+){2,}/?"), "<path>"),
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CALLED = re.compile(r"\b[\w.<>]+(?=\(\))")
# What the parser says where it has nothing better to say.
GENERIC = "invalid syntax"
UNEXPECTED_INDENT = "unexpected indent"
NO_BLOCK = "expected an indented block"
UNMATCHED = "unmatched "
# Places in a text that does not compile, where the message alone leaves open what is wrong.
PROSE = "words"
CUT_OFF = "the end"
DEEPER = "a deeper line of a block"
CLOSING_ONLY = "a line that only closes"
_TOKEN = re.compile(r"""'[^']*'|"[^"]*"|\w+|[^\w\s]""")
_NAMES_IN_A_ROW = re.compile(r"\bw w w\b|\bw w\b.*\bw w\b")
SHAPE_CHARS = 40


@dataclass(frozen=True, slots=True)
class Ending:
    """How one run ended, as the engine told it.

    ``outcome`` is an outcome or `PLATFORM`; ``target`` the index of the first target that is not
    true; ``task`` tells the task with all that grading depends on, ``task_id`` is how it is
    shown; ``frames`` are ``(line, function)``, innermost last. ``returned`` is what the last call
    of a missed target gave, as text; ``others`` the further targets that are not true; ``line``
    the line that does not compile, ``above`` the nearest one before it that is not blank.
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
    returned: str = ""
    others: Sequence[int] = ()
    line: str = ""
    above: str = ""


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
    # Task, what came back and which targets are missed tell a miss; how a program got there differs
    # from one to the next. A wrong target gets the same answer from all programs that are right.
    missed = kind == "assertion" and ending.target is not None
    where = f"target {(ending.target or 0) + 1}" if missed else _where(ending)
    scope = ending.task if scoped else ""
    returned = _returned(ending) if missed else ""
    others = ", ".join(str(index + 1) for index in ending.others) if missed else ""
    hashed = json.dumps([VERSION, kind, of_type, template, where, returned, others, scope])
    returned = _cut(returned)
    parts = [("kind", kind), ("type", of_type), ("message", template), ("where", where)]
    parts += [("returned", returned), ("missed, too", _cut(others))]
    if scoped:
        parts.append(("task", ending.task_id))
    return Fingerprint(
        value=hashlib.sha256(hashed.encode("ascii")).hexdigest()[:DIGITS],
        kind=kind.partition(":")[0],
        title=_visible(_title(ending, kind, of_type, template, where, returned)),
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
        raised = _raised(ending)
        return "assertion", raised, template(ending.message, raised) if raised else "", True
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


def _returned(ending: Ending) -> str:
    """What came back where that is what the target says no to; without addresses."""
    if _raised(ending) and ending.frames:
        return ""
    return _ADDRESS.sub("<addr>", ending.returned)


def _cut(text: str) -> str:
    return text if len(text) <= KEPT_CHARS else text[: KEPT_CHARS - 1] + "…"


def _shape(line: str) -> str:
    """A line of code with names as ``w``, values as ``v``; `PROSE` where names follow names."""
    kinds = (_kind_of(token) for token in _TOKEN.findall(line[:MESSAGE_CHARS]))
    shape = " ".join(kinds)
    return PROSE if _NAMES_IN_A_ROW.search(shape) else shape[:SHAPE_CHARS].rstrip()


def _kind_of(token: str) -> str:
    if (token[0] in "'\"" and len(token) > 1) or token[0].isdigit():
        return "v"
    return "w" if token.isidentifier() and not keyword.iskeyword(token) else token


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
    if ending.phase == "compile":
        place = _place_in_text(ending)
        return f"compile at: {place}" if place else "compile"
    functions = _functions((name for _, name in ending.frames), ending.entry_points)
    if ending.exception == "RecursionError":
        # Which function of a cycle was on top when the stack ended is chance.
        functions = sorted(functions)
    return " in ".join([ending.phase or "run", *functions])


def _place_in_text(ending: Ending) -> str:
    """What the line tells beside the message: that it is prose, how it looks, how it got there."""
    said = template(ending.message, ending.exception)
    shape = _shape(ending.line)
    if shape == PROSE or said == GENERIC:
        return shape
    if said.startswith(NO_BLOCK) and _is_cut_off(ending):
        return CUT_OFF
    # Not deeper, or below the margin: the program's first line has lost its indent.
    if said == UNEXPECTED_INDENT and 0 < _indent(ending.above) < _indent(ending.line):
        return DEEPER
    if said.startswith(UNMATCHED) and not any(bracket in ending.line for bracket in "([{"):
        return CLOSING_ONLY
    return ""


def _is_cut_off(ending: Ending) -> bool:
    """Whether the text ends where a block should begin; the parser then names the line before."""
    code = ending.line.partition("#")[0].strip()
    number = ending.frames[-1][0] if ending.frames else 0
    return not code or f" on line {number} " in f"{ending.message} "


def _indent(line: str) -> int:
    """Columns."""
    text = line.expandtabs()
    return len(text) - len(text.lstrip())


def _functions(names: Iterable[str], entry_points: Sequence[str]) -> list[str]:
    """The innermost functions, each once, the innermost first; the entry point by role."""
    found: list[str] = []
    for name in reversed([*names]):
        shown = "<entry>" if name in entry_points else name
        if shown and shown != "<module>" and shown not in found:
            found.append(shown)
    return found[:FUNCTIONS]


def _title(
    ending: Ending, kind: str, of_type: str, template_: str, where: str, returned: str
) -> str:
    if kind == "assertion":
        how = f"raises {of_type}" if of_type else "is not true"
        more = f"{len(ending.others)} more missed" if ending.others else ""
        gave = f"returned {returned}" if returned else ""
        details = "; ".join(part for part in (template_, gave, more) if part)
        return f"{ending.task_id}: {where} {how}" + (f"{DETAILS}{details}" if details else "")
    if kind == "timeout":
        return f"{ending.task_id}: timeout in {ending.phase or 'the run'}"
    said = ": ".join(part for part in (of_type, template_) if part)
    if kind in ("platform", "ended"):
        return said or kind
    if kind == "denied import":
        return f"denied import of {template_}"
    place = where.partition("compile at: ")[2]
    at_place = f" at {'a line of words' if place == PROSE else place}" if place else ""
    return f"{said or kind.replace(':', ' ')}, {_at(ending)}{at_place}"


def _at(ending: Ending) -> str:
    return {"compile": "when compiled", "import": "while loading", "target": "when asked"}.get(
        ending.phase, f"at {ending.phase or 'run'}"
    )
