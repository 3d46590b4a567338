"""Figures as files: CSV that no spreadsheet runs, JSON, and Markdown whatever the names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.http import Http404, HttpResponse

TYPES = {"csv": "text/csv", "json": "application/json", "md": "text/markdown"}
NAMES = {"csv": "CSV", "json": "JSON", "md": "Markdown"}
# Spreadsheets run a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Writers = Mapping[str, Callable[[], str]]


def respond(name: str, base: str, writers: Writers) -> HttpResponse:
    """The file ``base.name`` by the writer of that name, a key of `TYPES`; Http404 without one."""
    if name not in writers:
        raise Http404(f"no format {name!r}: {', '.join(writers)} are offered")
    return attachment(writers[name](), TYPES[name], f"{base}.{name}")


def attachment(text: str, content_type: str, file_name: str) -> HttpResponse:
    """Lone surrogates, which have no UTF-8, are escaped."""
    return HttpResponse(
        text.encode("utf-8", "backslashreplace"),
        content_type=f"{content_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def csv_text(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Header and one line per row; empty cells for None."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(_cell, header))
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """For a CSV file: never a formula."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def json_text(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


def markdown(title: str, *parts: tuple[Sequence[str], Iterable[Sequence[str]]]) -> str:
    """A line of text, then tables, each of a header and rows; cells are `md_text` already."""
    blocks = [md_text(title)]
    for header, rows in parts:
        lines = map(_md_line, [header, ["---"] * len(header), *rows])
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _md_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def md_text(text: str) -> str:
    """Without the characters that would end a cell, start a link or a tag."""
    plain = " ".join(text.split())
    return "".join(f"\\{char}" if char in "\\|[]<>`*_" else char for char in plain)


def md_figure(value: float | None, places: int = 3) -> str:
    """Fixed places, or a dash for no value."""
    return "–" if value is None else f"{value:.{places}f}"
