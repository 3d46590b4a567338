"""Printed text against expected text: the rules, and that no text costs more than its length."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.engine.compare import MAX_NUMBER_CHARS, Difference, first_difference

WORDS = st.one_of(
    st.sampled_from(["a", "1", "1.0", "-0", "0", "1e2", "100", "nan", "inf", "1_0", "١"]),
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=4),
)
BLANKS = st.text(" \t\r", min_size=1, max_size=3)
LINES = st.lists(st.lists(WORDS, max_size=4), max_size=5)


def text(lines: list[list[str]]) -> str:
    return "\n".join(" ".join(words) for words in lines)


def same(one: str, other: str) -> bool:
    return first_difference(one, other) is None


@pytest.mark.parametrize(
    ("printed", "expected", "right"),
    [
        ("6\n", "6", True),
        ("6  \n\n \n", "6", True),
        ("6\r\n7\r\n", "6\n7\n", True),
        ("", "\n\n", True),
        ("\n6", "6", False),
        ("1\n\n2", "1\n2", False),
        ("1 2", "1\n2", False),
        ("  1   2", "1 2", True),
        ("1 2 3", "1 2", False),
        ("12", "1 2", False),
        ("Yes", "YES", False),
        # numbers
        ("8.0", "8", True),
        ("+8", "8", True),
        ("08", "8", True),
        (".5", "0.50", True),
        ("5.", "5", True),
        ("1e3", "1000", True),
        ("-0.0", "0", True),
        ("Case 1: 2.50", "Case 1: 2.5", True),
        ("0.3333333333333333", "0.33333333333333331", False),
        ("50000000000000001", "50000000000000000", False),
        ("1e999999999999999999", "1e999999999999999998", False),
        ("10e999999998", "1e999999999", True),
        ("1e9999999999999999999", "1e09999999999999999999", False),
        # what Decimal takes beyond plain numbers stays text
        ("nan", "nan", True),
        ("nan", "NaN", False),
        ("inf", "Infinity", False),
        ("1_000", "1000", False),
        ("١", "1", False),
        ("0x10", "16", False),
        ("0" * MAX_NUMBER_CHARS + "1", "1", False),
        ("0" * (MAX_NUMBER_CHARS - 1) + "1", "1", True),
    ],
)
def test_what_is_right(printed: str, expected: str, right: bool) -> None:
    assert same(printed, expected) is right
    assert same(expected, printed) is right


@given(st.text())
def test_any_text_equals_itself(printed: str) -> None:
    assert same(printed, printed)


@given(st.text("1 a.\n\r\t0e-", max_size=12), st.text("1 a.\n\r\t0e-", max_size=12))
def test_the_order_does_not_matter(one: str, other: str) -> None:
    assert same(one, other) == same(other, one)


@given(LINES, LINES)
def test_words_decide(one: list[list[str]], other: list[list[str]]) -> None:
    """Against a plain reading of the rule, with rationals for numbers."""

    def value(word: str) -> str | Fraction:
        plain = word.isascii() and not set(word) & set("_nN") and word.lower() != "inf"
        try:
            return Fraction(Decimal(word)) if plain else word
        except ArithmeticError:
            return word

    def values(lines: list[list[str]]) -> list[list[str | Fraction]]:
        while lines and not lines[-1]:
            lines = lines[:-1]
        return [list(map(value, words)) for words in lines]

    assert same(text(one), text(other)) == (values(one) == values(other))


@given(LINES, st.data())
def test_blanks_at_ends_and_between_words_do_not_count(
    lines: list[list[str]], data: st.DataObject
) -> None:
    spaced = [data.draw(BLANKS).join(words) + data.draw(BLANKS) for words in lines]
    padding = "\n".join(data.draw(st.lists(BLANKS, max_size=3)))
    assert same("\n".join([*spaced, padding]), text(lines))


@given(
    # Small enough that the sum below is exact.
    st.decimals(-(10**20), 10**20, allow_nan=False, places=6),
    st.integers(0, 5),
    st.sampled_from(["", "+", "0"]),
)
def test_a_number_may_be_written_in_several_ways(number: Decimal, zeros: int, front: str) -> None:
    written = f"{number:f}" + "0" * zeros
    if number >= 0 and not number.is_signed():
        written = front + written
    assert same(written, f"{number:e}")
    assert not same(written, f"{number + Decimal(1).scaleb(-6):f}")


@given(LINES, st.integers(0, 4))
def test_the_first_line_that_differs_is_named(lines: list[list[str]], place: int) -> None:
    changed = [list(words) for words in lines]
    changed[place:place] = [["only here"]]
    found = first_difference(text(lines), text(changed))
    assert found is not None
    same_before = lines[: found.line - 1]
    assert same(text(same_before), text(changed[: found.line - 1]))


@pytest.mark.parametrize(
    ("printed", "expected", "said"),
    [
        ("1\n2", "1\n3", "line 2 of the output: expected '3', printed '2'"),
        ("1", "1\n3", "line 2 of the output: expected '3', printed nothing more"),
        ("1\n3", "1", "line 2 of the output: expected nothing more, printed '3'"),
        ("a\x1b[0m", "a", "line 1 of the output: expected 'a', printed 'a\\x1b[0m'"),
        (
            "x " * 50 + "y",
            "x " * 50 + "z",
            "line 1, word 51 of the output: expected 'z', printed 'y'",
        ),
        (
            "x " * 50,
            "x " * 51,
            "line 1, word 51 of the output: expected 'x', printed nothing more",
        ),
    ],
)
def test_what_is_said(printed: str, expected: str, said: str) -> None:
    assert str(first_difference(printed, expected)) == said


def test_what_is_said_is_short() -> None:
    assert len(str(Difference(1, "x" * 10_000, "y" * 10_000))) < 300


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("1e999999999 " * 20_000, "10e999999998 " * 20_000),
        ("9" * 250_000, "9" * 249_999 + "8"),
        (("9" * 999 + " ") * 250, ("0" + "9" * 999 + " ") * 250),
        (("1" * 999 + "x ") * 250, ("1" * 999 + "y ") * 250),
        ("\n" * 250_000 + "1", "\n" * 250_000 + "2"),
        ("1e" + "9" * 900, "1e" + "9" * 901),
    ],
    ids=["exponents", "digits", "padded", "almost numbers", "empty lines", "huge exponent"],
)
def test_no_output_is_expensive_to_compare(printed: str, expected: str) -> None:
    started = time.process_time()
    first_difference(printed, expected)
    assert time.process_time() - started < 1.0
