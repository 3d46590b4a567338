"""A model's submissions as CSV, JSON or Markdown; in JSON one of them looked at closer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from grading.files import Writers, csv_text, json_text, markdown, md_text
from leaderboard import curves
from leaderboard.cards import Card
from leaderboard.export import COLUMNS, cells, md_percent
from leaderboard.reliability import reliability
from leaderboard.rows import Row

# Ranks belong to boards, and how a run was sealed is read for those only.
LEFT_OUT = {
    *("rank", "rank_low", "rank_high", "reason"),
    *("sealed_share", "tier", "hardening", "setting_tier"),
}
HEAD = ("benchmark", "version", "on_the_board", *(name for name in COLUMNS if name not in LEFT_OUT))


def writers(card: Card) -> Writers:
    return {
        "csv": lambda: csv_text(HEAD, (_values(card, row) for row in card.rows)),
        "json": lambda: to_json(card),
        "md": lambda: to_markdown(card),
    }


def to_json(card: Card) -> str:
    """Unrounded, scores 0..1."""
    tasks = card.tasks
    document = {
        "model": card.model.name,
        "slug": card.model.slug,
        "submissions": [dict(zip(HEAD, _values(card, row), strict=True)) for row in card.rows],
        "shown": {
            "submission": card.shown.public_id,
            "curve": [asdict(one) for one in curves.curve(tasks)],
            "bootstrap": _ends(curves.cross_check(tasks)),
            "lost": curves.lost(tasks),
            "reliability": asdict(reliability(card.shown.public_id, tasks)),
            "tasks": [asdict(task) for task in tasks],
        },
    }
    return json_text(document)


def to_markdown(card: Card) -> str:
    """A row per submission, and what repeated samples of the one shown come to."""
    head = ["Benchmark", "Version", "Submission", "pass@1", "95 % interval", "Fraction", "n"]
    parts = [(head, [_md_cells(row) for row in card.rows])]
    drawn = reliability(card.shown.public_id, card.tasks).draws
    if drawn:
        parts.append(
            (
                ["k", "pass@k", "G-Pass@k, half", "pass^k", "best@k"],
                [
                    [str(one.k), *map(md_percent, (one.any, one.half, one.all, one.best))]
                    for one in drawn
                ],
            )
        )
    return markdown(f"{card.model.name}; scores in percent", *parts)


def _values(card: Card, row: Row) -> list[Any]:
    held = dict(zip(COLUMNS, cells(row), strict=True))
    mine = [row.benchmark, row.version, row.public_id in card.representing]
    return [*mine, *(held[name] for name in HEAD[3:])]


def _md_cells(row: Row) -> list[str]:
    held, ends = row.figures, row.figures.interval
    return [
        md_text(row.benchmark),
        str(row.version),
        row.public_id,
        md_percent(row.value),
        f"{md_percent(ends.low)}–{md_percent(ends.high)}" if ends else "–",
        md_percent(held.mean_fraction),
        str(held.n_max) if held.n_min == held.n_max else f"{held.n_min}–{held.n_max}",
    ]


def _ends(interval: Any) -> dict[str, float] | None:
    return asdict(interval) if interval else None
