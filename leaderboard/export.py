"""A board as CSV, JSON or Markdown: the rows of the page, unrounded."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from grading.engine.outcome import Outcome
from grading.files import Writers, csv_text, json_text, markdown, md_text
from grading.templatetags.figures import percent_text
from leaderboard.conditions import LABELS, conditions
from leaderboard.figures import KS
from leaderboard.precision import LEVEL as TEST_LEVEL
from leaderboard.queries import Board
from leaderboard.rows import Row
from leaderboard.statistics import LEVEL
from leaderboard.words import range_text


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
    "change": attrgetter("change"),
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
    return csv_text(COLUMNS, (cells(row) for row in (*board.ranked, *board.unranked)))


def cells(row: Row) -> list[Any]:
    return [read(row) for read in COLUMNS.values()]


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
        "changes_since": board.since,
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
        "rows": [record(row) for row in rows],
    }
    return json_text(document)


def record(row: Row) -> dict[str, Any]:
    return dict(zip(COLUMNS, cells(row), strict=True))


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
    return markdown(title, (head, rows))


def writers(board: Board) -> Writers:
    return {
        "csv": lambda: to_csv(board),
        "json": lambda: to_json(board),
        "md": lambda: to_markdown(board),
    }


def _md_cells(row: Row, ks: list[int]) -> list[str]:
    result = row.figures
    held = result.interval
    values = [md_percent(result.pass_at[k]) for k in ks]
    return [
        str(row.rank or f"– ({row.reason})"),
        range_text(row.standing) if row.standing else "–",
        md_text(f"{row.model} (synthetic)" if row.synthetic else row.model),
        values[0],
        f"{percent_text(held.low)}–{percent_text(held.high)}" if held else "–",
        *values[1:],
        md_percent(result.mean_fraction),
        str(result.n_max) if result.n_min == result.n_max else f"{result.n_min}–{result.n_max}",
        f"{result.covered}/{result.tasks}",
    ]


def md_percent(value: float | None) -> str:
    return "–" if value is None else percent_text(value)
