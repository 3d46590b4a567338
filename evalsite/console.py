"""What a person sees while an instance runs: log lines by part, one progress line, tables.

Logs and progress go to standard error, so that standard output holds results alone.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TextIO

NAME_WIDTH = 9
COLOURS = {"evalsite": "1", "broker": "35", "web": "36", "sweep": "33"}
WORKER_COLOUR = "32"
PROGRESS_EVERY_S = 5.0


class Console:
    """Writes to ``stream`` from any thread; aligned coloured names on a terminal, plain otherwise.

    A reader that goes away (``| head``) silences it and stops nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._lock = threading.Lock()
        self._progress = ""
        self._progress_at = 0.0

    def log(self, name: str, line: str) -> None:
        """One log line of the part ``name``."""
        with self._lock:
            self._write(
                self._erase() + self._prefix(name) + printable(line) + "\n" + self._progress
            )

    def say(self, text: str) -> None:
        """Text without a prefix, on lines of its own."""
        with self._lock:
            self._write(self._erase() + text + "\n" + self._progress)

    def progress(self, text: str) -> None:
        """Replace the progress line; off a terminal, print one every few seconds."""
        with self._lock:
            if self._terminal:
                erase = self._erase()
                self._progress = text
                self._write(erase + text)
            elif time.monotonic() - self._progress_at >= PROGRESS_EVERY_S:
                self._progress_at = time.monotonic()
                self._write(text + "\n")

    def progress_done(self, text: str) -> None:
        """End the progress line with ``text`` and keep it on the screen."""
        with self._lock:
            erase = self._erase()
            self._progress, self._progress_at = "", 0.0
            self._write(erase + text + "\n")

    def _erase(self) -> str:
        return "\r\x1b[K" if self._progress else ""

    def _prefix(self, name: str) -> str:
        padded = name.ljust(NAME_WIDTH)
        if not self._terminal:
            return f"{padded} | "
        return f"\x1b[{COLOURS.get(name, WORKER_COLOUR)}m{padded}\x1b[0m | "

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def printable(line: str) -> str:
    """The line without control characters: a log line may quote hostile text."""
    return "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table: first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
