"""What is written where."""

from __future__ import annotations

import io

import pytest

from evalsite import console
from evalsite.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_names_line_up_and_lines_are_plain_off_a_terminal() -> None:
    stream = io.StringIO()
    shown = Console(stream)
    shown.log("web", "ready")
    shown.log("worker 12", "ready")
    assert stream.getvalue() == "web       | ready\nworker 12 | ready\n"


def test_a_log_line_goes_above_the_progress_line() -> None:
    stream = Terminal()
    shown = Console(stream)
    shown.progress("1 of 2")
    shown.log("web", "hello")
    assert stream.getvalue().endswith("| hello\n1 of 2")
    shown.progress_done("done")
    assert stream.getvalue().endswith("\r\x1b[Kdone\n")


def test_progress_is_sparse_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    stream = io.StringIO()
    shown = Console(stream)
    for text in ("1", "2", "3"):
        shown.progress(text)
    now += console.PROGRESS_EVERY_S
    shown.progress("4")
    assert stream.getvalue() == "1\n4\n"


def test_hostile_log_lines_cannot_drive_the_terminal() -> None:
    stream = Terminal()
    Console(stream).log("worker 1", "\x1b]0;title\x07 \x1b[2J\u202e")
    assert "\x1b]" not in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()


def test_a_reader_that_went_away_stops_nothing() -> None:
    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    Console(Closed()).log("web", "hello")
