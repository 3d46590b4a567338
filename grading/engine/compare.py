"""Whether a program printed what was expected.

Empty lines at the end do not count. The numbers of lines are equal then, and in each line the
same number of words, parted by white space, each equal to its counterpart: as text, or as decimal
numbers, exactly. There is no tolerance. The cost is linear in the two texts, whatever they hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from itertools import zip_longest

# A longer word is compared as text: exact numbers are as long as they are printed.
MAX_NUMBER_CHARS = 1_000
SHOWN_CHARS = 80

# What Decimal takes, but for underscores, other scripts' digits, infinities and NaN.
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_CONTEXT = Context(traps=[InvalidOperation])


@dataclass(frozen=True, slots=True)
class Difference:
    """The first line, counted from 1, in which two texts differ; None where one has no such."""

    line: int
    expected: str | None
    printed: str | None

    def __str__(self) -> str:
        place, expected, printed = f"line {self.line}", self.expected, self.printed
        if expected and printed and max(len(expected), len(printed)) > SHOWN_CHARS:
            word, expected, printed = _first_words(expected, printed)
            place += f", word {word}"
        return f"{place} of the output: expected {_shown(expected)}, printed {_shown(printed)}"


def first_difference(printed: str, expected: str) -> Difference | None:
    """None where ``printed`` is right. Both are any text, lone surrogates included."""
    pairs = zip_longest(_lines(printed), _lines(expected))
    for number, (found, wanted) in enumerate(pairs, 1):
        if found is None or wanted is None or not _same_line(found, wanted):
            return Difference(number, wanted, found)
    return None


def _lines(text: str) -> list[str]:
    lines = text.rstrip().split("\n")
    return lines if lines != [""] else []


def _same_line(one: str, other: str) -> bool:
    if one == other:
        return True
    words, others = one.split(), other.split()
    return len(words) == len(others) and all(map(_same_word, words, others))


def _same_word(one: str, other: str) -> bool:
    if one == other:
        return True
    number = _number(one)
    return number is not None and number == _number(other)


def _number(word: str) -> Decimal | None:
    if len(word) > MAX_NUMBER_CHARS or not _NUMBER.fullmatch(word):
        return None
    try:
        return Decimal(word, _CONTEXT)
    except InvalidOperation:  # its exponent is beyond what the type has
        return None


def _first_words(expected: str, printed: str) -> tuple[int, str | None, str | None]:
    """(number from 1, word, word) of the first that differ in two lines that do."""
    pairs = zip_longest(expected.split(), printed.split())
    return next(
        (number, wanted, found)
        for number, (wanted, found) in enumerate(pairs, 1)
        if wanted is None or found is None or not _same_word(found, wanted)
    )


def _shown(text: str | None) -> str:
    if text is None:
        return "nothing more"
    text = text.rstrip()
    return repr(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")
