from __future__ import annotations

import time

import pytest

from grading import hostile


def test_markup_is_escaped() -> None:
    shown = hostile.show("<script>alert('x')</script>&")
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    ("char", "token"),
    [
        ("\0", "U+0000"),
        ("\x1b", "U+001B"),
        ("\r", "U+000D"),
        ("\u202e", "U+202E"),
        ("\u2066", "U+2066"),
        ("\u200b", "U+200B"),
        ("\u2028", "U+2028"),
        ("\ud800", "U+D800"),
        ("\ufeff", "U+FEFF"),
        ("\ue000", "U+E000"),
        ("\U000e0041", "U+E0041"),
    ],
)
def test_what_cannot_be_seen_becomes_a_token(char: str, token: str) -> None:
    shown = hostile.show(f"a{char}b")
    assert char not in shown
    assert token in shown
    shown.encode("utf-8")


def test_letters_of_any_script_stay() -> None:
    text = "größe 変数 переменная 🙂 \t"
    assert hostile.show(text) == text


def test_a_run_of_hidden_characters_is_one_token() -> None:
    shown = hostile.show("\u202e" * 60_000)
    assert shown.count("<span") == 1
    assert "and 59,996 more" in shown


def test_long_text_is_cut_and_said_to_be() -> None:
    view = hostile.code_view("x" * 1_000_000)
    assert len(view.lines) == 1
    assert len(view.lines[0].html) < 3_000
    assert view.cut == ("1,000,000 characters, shown up to line 1; 1 line cut at 2,000 characters")
    many = hostile.code_view("y\n" * 10_000)
    assert len(many.lines) == hostile.SHOWN_LINES
    assert many.cut == "20,000 characters, shown up to line 2,000"
    assert hostile.code_view("short\n").cut == ""


def test_lines_are_numbered_as_python_numbers_them() -> None:
    view = hostile.code_view("a\r\nb\x0bc\u2028d\ne\n")
    assert [line.number for line in view.lines] == [1, 2, 3]


def test_highlighting_keeps_every_line_and_escapes() -> None:
    text = 'def f():\n    """<b>\n\n    two"""\n    return "</code>" \0 \ud800'
    view = hostile.code_view(text, python=True, hits={5})
    assert len(view.lines) == 5
    joined = "".join(line.html for line in view.lines)
    assert '<span class="k">def</span>' in joined
    assert "<b>" not in joined
    assert "</code>" not in joined
    assert "U+0000" in joined
    assert [line.css for line in view.lines] == ["", "", "", "", " hit"]


@pytest.mark.parametrize(
    "text",
    [
        '"' * 24_000,
        "(" * 24_000,
        "{f'" * 8_000,
        "\\\n" * 12_000,
        "a." * 12_000,
        '"""' + "\\" * 24_000,
    ],
)
def test_highlighting_ends_soon_whatever_the_text(text: str) -> None:
    started = time.process_time()
    hostile.code_view(text, python=True)
    assert time.process_time() - started < 3


def test_the_lines_that_became_the_program_are_found() -> None:
    raw = "Sure:\n\n```python\ndef f():\n    return 1\n```\nDone.\n"
    assert list(hostile.used_lines(raw, "import math\n\ndef f():\n    return 1\n")) == [4, 5]
    assert list(hostile.used_lines(raw, "something else\n")) == []
    assert list(hostile.used_lines("", "")) == []
    indented = "1. this\n   ```python\n   def f():\n       return 1\n   ```\n"
    assert list(hostile.used_lines(indented, "def f():\n    return 1\n")) == [3, 4]


def test_an_excerpt_is_one_line() -> None:
    assert hostile.excerpt("a\n  b\0", 100) == hostile.show("a b\0")
    assert hostile.excerpt("abcdef", 3) == "abc…"
