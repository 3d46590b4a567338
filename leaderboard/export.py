"""A board as CSV, JSON or Markdown: the rows of the page, unrounded."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from django.http import HttpResponse

from grading.engine.outcome import Outcome
from grading.templatetags.figures import percent_text
from leaderboard.conditions import LABELS, conditions
from leaderboard.figures import KS
from leaderboard.precision import LEVEL as TEST_LEVEL
from leaderboard.queries import Board
from leaderboard.rows import Row
from leaderboard.statistics import LEVEL
from leaderboard.words import range_text

# Spreadsheets run a cell that starts with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def _pass_at(k: int) -> Callable[[Row], float | None]:
    return lambda row: row.figures.pass_at[k]


def _samples(outcome: Outcome) -> Callable[[Row], int]:
    return lambda row: row.figures.outcomes[outcome]


def _end(side: str) -> Callable[[Row], float | None]:
    return lambda row: getattr(row.figures.interval, side, None)


def _condition(name: str) -> Callable[[Row], str]:
    return lambda row: conditions(row)[name]


def _place(side: str) -> Callable[[Row], int | None]:
    return lambda row: getattr(row.standing, side, None)


# Scores and shares 0..1; rank range and interval belong to the score the board is ranked by.
COLUMNS: dict[str, Callable[[Row], Any]] = {
    "rank": attrgetter("rank"),
    "rank_low": _place("low"),
    "rank_high": _place("high"),
    "reason": attrgetter("reason"),
    "model": attrgetter("model"),
    "organisation": attrgetter("organisation"),
    "synthetic": attrgetter("synthetic"),
    "submission": attrgetter("public_id"),
    "state": attrgetter("state"),
    **{f"pass@{k}": _pass_at(k) for k in KS},
    "interval_low": _end("low"),
    "interval_high": _end("high"),
    "mean_fraction": attrgetter("figures.mean_fraction"),
    "tasks_solved": attrgetter("figures.solved"),
    "n_min": attrgetter("figures.n_min"),
    "n_max": attrgetter("figures.n_max"),
    "tasks_covered": attrgetter("figures.covered"),
    "tasks": attrgetter("figures.tasks"),
    "samples": attrgetter("sample_count"),
    **{outcome.value: _samples(outcome) for outcome in Outcome},
    "platform_failures": attrgetter("platform_failures"),
    "sealed_share": attrgetter("sealed_share"),
    "tier": lambda row: " ".join(row.integrity.tiers),
    "hardening": lambda row: " ".join(row.integrity.hardening),
    **{f"setting_{name}": _condition(name) for name in LABELS},
    "settings": attrgetter("settings"),
    "uploaded_at": lambda row: row.created_at.isoformat(),
}


def to_csv(board: Board) -> str:
    """Header and one line per row, ranked ones first; UTC times, empty cells for no value."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in (*board.ranked, *board.unranked):
        writer.writerow([cell_text(read(row)) for read in COLUMNS.values()])
    return text.getvalue()


def to_json(board: Board) -> str:
    """The same records under ``rows``, with what they hold for around them."""
    rows = (*board.ranked, *board.unranked)
    document = {
        "benchmark": board.slug,
        "version": board.version,
        "tasks": board.tasks,
        "score": f"pass@{board.score}",
        "timeouts": board.timeouts,
        "interval": {"method": "plus-two t over tasks", "level": LEVEL},
        "rank_range": {
            "test": "paired plus-two t on the same tasks, Holm over all pairs",
            "level": TEST_LEVEL,
            "pairs": len(board.standings.adjusted),
            "smallest_difference": board.standings.smallest,
        },
        "snapshot": board.snapshot,
        "computed_at": board.taken_at.isoformat(),
        "selection": {
            "tag": board.selection.tag,
            "without": [task_id for _, task_id in board.selection.without],
        },
        "usual_settings": dict(board.usual),
        "filter": board.q,
        "where": dict(board.where),
        "sort": board.sort,
        "models": board.models,
        "sealed_share": board.integrity.sealed_share,
        "rows": [{name: read(row) for name, read in COLUMNS.items()} for row in rows],
    }
    return json.dumps(document, indent=2) + "\n"


def to_markdown(board: Board) -> str:
    """A table for a page elsewhere; figures in percent as on the board."""
    ks = [board.score, *(k for k in board.ks if k != board.score)]
    scores = [f"pass@{k}" for k in ks]
    head = [
        "Rank",
        "Range",
        "Model",
        scores[0],
        "95 % interval",
        *scores[1:],
        "Fraction",
        "n",
        "Coverage",
    ]
    rows = [_md_cells(row, ks) for row in (*board.ranked, *board.unranked)]
    title = f"{board.benchmark}, version {board.version}, {board.tasks} tasks; scores in percent"
    lines = map(_md_line, [head, ["---"] * len(head), *rows])
    return f"{_md_text(title)}\n\n" + "\n".join(lines) + "\n"


FORMATS: dict[str, tuple[str, Callable[[Board], str]]] = {
    "csv": ("text/csv", to_csv),
    "json": ("application/json", to_json),
    "md": ("text/markdown", to_markdown),
}


def attachment(text: str, content_type: str, file_name: str) -> HttpResponse:
    return HttpResponse(
        text,
        content_type=f"{content_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def cell_text(value: Any) -> Any:
    """For a CSV file: never a formula."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def _md_cells(row: Row, ks: list[int]) -> list[str]:
    result = row.figures
    held = result.interval
    values = [_md_percent(result.pass_at[k]) for k in ks]
    return [
        str(row.rank or f"– ({row.reason})"),
        range_text(row.standing) if row.standing else "–",
        _md_text(f"{row.model} (synthetic)" if row.synthetic else row.model),
        values[0],
        f"{percent_text(held.low)}–{percent_text(held.high)}" if held else "–",
        *values[1:],
        _md_percent(result.mean_fraction),
        str(result.n_max) if result.n_min == result.n_max else f"{result.n_min}–{result.n_max}",
        f"{result.covered}/{result.tasks}",
    ]


def _md_percent(value: float | None) -> str:
    return "–" if value is None else percent_text(value)


def _md_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_text(text: str) -> str:
    """Without the characters that would end a cell, start a link or a tag."""
    plain = " ".join(text.split())
    return "".join(f"\\{char}" if char in "\\|[]<>`*_" else char for char in plain)
