"""Hostile text made fit to show: escaped, capped, and with nothing invisible left in it.

Control characters, bidirectional overrides, zero-width characters and lone surrogates become
visible tokens; what is cut off is said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES

SHOWN_CHARS = 64 * 1024
SHOWN_LINES = 2_000
LINE_CHARS = 2_000
# Longer programs are shown plain: the lexer's worst cases grow faster than its input.
LEXED_CHARS = 24 * 1024
# Control, format, surrogate, private, unassigned; line and paragraph separators.
HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
HARMLESS = {"\t", "\n"}
# Codes that one token names; a run of thousands is one token.
TOKEN_CODES = 4
FENCE = re.compile(r"\s*(```|~~~)")


@dataclass(frozen=True, slots=True)
class Line:
    """``html`` is safe; ``css`` adds to the line's class. ``number`` None: a gap, no line."""

    number: int | None
    html: SafeString
    css: str = ""


@dataclass(frozen=True, slots=True)
class CodeView:
    """``cut`` says what is not shown; empty when all is."""

    lines: list[Line]
    cut: str = ""


def show(text: str) -> SafeString:
    """``text`` escaped, its invisible characters as tokens; not capped."""
    return mark_safe("".join(_pieces(text)))


def _pieces(text: str) -> Iterator[str]:
    for hidden, chars in groupby(text, _hidden):
        run = "".join(chars)
        yield _token(run) if hidden else escape(run)


@lru_cache(maxsize=4096)
def _hidden(char: str) -> bool:
    return char not in HARMLESS and unicodedata.category(char) in HIDDEN_CATEGORIES


def _token(run: str) -> str:
    codes = " ".join(f"U+{ord(char):04X}" for char in run[:TOKEN_CODES])
    more = f" and {len(run) - TOKEN_CODES:,} more" if len(run) > TOKEN_CODES else ""
    name = unicodedata.name(run[0], "control character").lower()
    return format_html('<span class="ctl" title="{}">{}{}</span>', name, codes, more)


def excerpt(text: str, chars: int) -> SafeString:
    """The beginning of ``text`` on one line, with an ellipsis where it goes on."""
    head = " ".join(text[: chars + 1].split())
    shown = show(head[:chars])
    return shown if len(text) <= chars else mark_safe(shown + "…")


def code_view(
    text: str,
    python: bool = False,
    used: Collection[int] = (),
    hits: Collection[int] = (),
) -> CodeView:
    """``text`` line by line, highlighted as Python on request.

    ``used`` and ``hits`` are line numbers from 1: lines that became the program, lines that a
    failure names.
    """
    lines, cut = _capped(text)
    lexed = _lexed(lines) if python and sum(map(len, lines)) <= LEXED_CHARS else None
    pieces = lexed if lexed is not None else [_plain(line) for line in lines]
    return CodeView(
        [
            Line(number, html, _css(number, used, hits))
            for number, html in enumerate(pieces, start=1)
        ],
        cut,
    )


def _css(number: int, used: Collection[int], hits: Collection[int]) -> str:
    return f"{' used' if number in used else ''}{' hit' if number in hits else ''}"


def _plain(line: str) -> SafeString:
    shown = show(line)
    return format_html('<span class="fence">{}</span>', shown) if FENCE.match(line) else shown


def split_lines(text: str) -> list[str]:
    """Lines as a program text has them: only ``\\n`` and ``\\r\\n`` end one."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _capped(text: str) -> tuple[list[str], str]:
    lines = split_lines(text[:SHOWN_CHARS])[:SHOWN_LINES]
    long = sum(len(line) > LINE_CHARS for line in lines)
    shown = [_shortened(line) for line in lines]
    notes = []
    if len(text) > SHOWN_CHARS or text.count("\n", 0, SHOWN_CHARS) > SHOWN_LINES:
        notes.append(f"{len(text):,} characters, shown up to line {len(lines):,}")
    if long:
        notes.append(
            f"{long:,} {'line' if long == 1 else 'lines'} cut at {LINE_CHARS:,} characters"
        )
    return shown, "; ".join(notes)


def _shortened(line: str) -> str:
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]} … {len(line) - LINE_CHARS:,} more characters"


def _lexed(lines: list[str]) -> list[SafeString]:
    tokens = PythonLexer().get_tokens_unprocessed("\n".join(lines))
    html: list[list[str]] = [[]]
    for _, kind, value in tokens:
        for position, part in enumerate(value.split("\n")):
            if position:
                html.append([])
            if part:
                html[-1].append(_span(kind, part))
    return [mark_safe("".join(line)) for line in html]


def _span(kind: tuple[str, ...], part: str) -> str:
    css = _short(kind)
    return f'<span class="{css}">{show(part)}</span>' if css else show(part)


def _short(kind: tuple[str, ...]) -> str:
    while kind not in STANDARD_TYPES:
        kind = kind[:-1]
    return STANDARD_TYPES[kind]


def used_lines(raw: str, program: str) -> range:
    """Line numbers of ``raw`` that are the end of ``program``; empty where they are not found.

    A program may have a preamble in front and a dedent applied, so lines are compared from the
    end and without their margins.
    """
    source = [line.strip() for line in split_lines(raw[:SHOWN_CHARS])[:SHOWN_LINES]]
    wanted = [line.strip() for line in split_lines(program.rstrip())[-SHOWN_LINES:]]
    best = range(0)
    for end in _ends(source, wanted[-1]):
        length = _common_tail(source[: end + 1], wanted)
        if length > len(best):
            best = range(end - length + 2, end + 2)
    return best


def _ends(source: list[str], last: str) -> Iterable[int]:
    return [position for position, line in enumerate(source) if line and line == last][-50:]


def _common_tail(source: list[str], wanted: list[str]) -> int:
    length = 0
    for ours, theirs in zip(reversed(source), reversed(wanted), strict=False):
        if ours != theirs:
            break
        length += 1
    return length
