"""Fenced blocks of a chat reply: one pass over its fence lines, linear in its length.

A fence is a line of three or more backticks or tildes at any indent, with an info string of
which the first word is the label. It is closed by a line that holds nothing but at least as many
of the same character, indented at most three columns more than the opener, so that a fence
inside a docstring closes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

CLOSER_SLACK = 3  # columns a closer may be indented more than its opener

_FENCE_LINE = re.compile(r"^([ \t]*+)(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)
_LABEL = re.compile(r"[\s{.]*+([\w+#-]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: ``text[start:end]`` is the whole of it, fences included.

    ``body`` has the opener's indent taken away; ``label`` is the lower-case first word of the
    info string; ``fence`` the opener's run of characters.
    """

    body: str
    label: str
    fence: str
    start: int
    end: int
    closed: bool

    @property
    def is_python(self) -> bool:
        """Labelled as Python, or not labelled at all."""
        return self.label in ("", "py", "py3") or self.label.startswith(("python", "ipython"))


def blocks(text: str) -> list[Block]:
    """All blocks of ``text`` (line ends: LF) in order; at most the last one is unclosed."""
    return list(_scan(text))


def _scan(text: str) -> Iterator[Block]:
    opener: re.Match[str] | None = None
    for line in _FENCE_LINE.finditer(text):
        if opener is None:
            if _opens(line):
                opener = line
        elif _closes(line, opener):
            yield _block(text, opener, line.start(), line.end(), closed=True)
            opener = None
    if opener is not None:
        yield _block(text, opener, len(text), len(text), closed=False)


def _opens(line: re.Match[str]) -> bool:
    """Backticks in the info string make it inline code, not a fence."""
    return line[2][0] == "~" or "`" not in line[3]


def _closes(line: re.Match[str], opener: re.Match[str]) -> bool:
    return (
        line[2][0] == opener[2][0]
        and len(line[2]) >= len(opener[2])
        and not line[3].strip()
        and _columns(line[1]) <= _columns(opener[1]) + CLOSER_SLACK
    )


def _block(text: str, opener: re.Match[str], body_end: int, end: int, *, closed: bool) -> Block:
    label = _LABEL.match(opener[3])
    return Block(
        body=dedent(_outdent(text[opener.end() + 1 : body_end], _columns(opener[1]))),
        label=label[1].lower() if label else "",
        fence=opener[2],
        start=opener.start(),
        end=end,
        closed=closed,
    )


def _columns(indent: str) -> int:
    return len(indent.expandtabs())


def _outdent(body: str, columns: int) -> str:
    """Take up to ``columns`` columns of leading blanks from every line."""
    if not columns:
        return body
    return "\n".join(_without_columns(line, columns) for line in body.split("\n"))


def _without_columns(line: str, columns: int) -> str:
    rest = line.lstrip(" \t")
    indent = line[: len(line) - len(rest)]
    if "\t" in indent:
        indent = indent.expandtabs()
    return indent[columns:] + rest


def dedent(code: str) -> str:
    """Take the blanks that all lines with text share; other lines keep theirs."""
    lines = code.split("\n")
    margin: str | None = None
    for line in lines:
        rest = line.lstrip(" \t")
        if rest:
            indent = line[: len(line) - len(rest)]
            margin = indent if margin is None else _common(margin, indent)
            if not margin:
                return code
    if not margin:
        return code
    return "\n".join(line.removeprefix(margin) for line in lines)


def _common(first: str, second: str) -> str:
    if second.startswith(first):
        return first
    size = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(second)
    )
    return first[:size]
