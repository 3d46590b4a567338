"""A comparison as CSV, JSON or Markdown: a row per task, and in the last two all of the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from grading.files import Writers, csv_text, json_text, markdown, md_text
from leaderboard.cards import TaskLine
from leaderboard.comparison import OUTCOMES, Comparison
from leaderboard.comparison_words import finding, signed
from leaderboard.export import md_percent
from leaderboard.rows import Row

COLUMNS = (
    "task_id",
    *(f"a_{name}" for name in ("n", "c", *OUTCOMES)),
    *(f"b_{name}" for name in ("n", "c", *OUTCOMES)),
    "difference",
)


def writers(found: Comparison) -> Writers:
    return {
        "csv": lambda: to_csv(found),
        "json": lambda: to_json(found),
        "md": lambda: to_markdown(found),
    }


def to_csv(found: Comparison) -> str:
    """A line per common task; ``difference`` of pass rates is a minus b."""
    return csv_text(
        COLUMNS,
        (
            [pair.a.task_id, *_numbers(pair.a), *_numbers(pair.b), float(pair.difference)]
            for pair in found.tasks
        ),
    )


def _numbers(line: TaskLine) -> list[int]:
    return [line.n, line.c, *(line.outcomes[outcome] for outcome in OUTCOMES)]


def to_markdown(found: Comparison) -> str:
    """The finding, the two scores, settings that differ and tasks that differ."""
    said = finding(found)
    scores = [
        [side, md_text(row.model), row.public_id, md_percent(row.value)]
        for side, row in (("A", found.a), ("B", found.b))
    ]
    settings = [
        [md_text(one.name), md_text(one.a) or "–", md_text(one.b) or "–"]
        for one in found.settings
        if one.differs
    ]
    tasks = [
        [
            md_text(pair.a.task_id),
            f"{pair.a.c}/{pair.a.n}",
            f"{pair.b.c}/{pair.b.n}",
            signed(pair.difference),
        ]
        for pair in found.tasks
        if pair.difference
    ]
    parts = [
        (["", "Model", "Submission", "pass@1, percent"], scores),
        (["Setting", "A", "B"], settings),
        (["Task", "A", "B", "A − B, points"], tasks),
    ]
    return markdown(f"{said.strong} {said.rest}", *(part for part in parts if part[1]))


def to_json(found: Comparison) -> str:
    """Everything the page shows, unrounded; scores 0..1, differences a minus b."""
    said = finding(found)
    document = {
        "benchmark": found.board.slug,
        "version": found.board.version,
        "snapshot": found.board.snapshot,
        "finding": f"{said.strong} {said.rest}",
        "a": _side(found.a),
        "b": _side(found.b),
        "paired": asdict(found.paired) if found.paired else None,
        "holm_p": found.adjusted_p,
        "sign_flip_p": found.flips_p,
        "mcnemar_p": found.solved.mcnemar_p if found.one_sample else None,
        "separation": asdict(found.separation) if found.separation else None,
        "solved": asdict(found.solved),
        "outcomes": {"order": OUTCOMES, "a_by_b": found.matrix()},
        "settings": [asdict(one) | {"differs": one.differs} for one in found.settings],
        "tasks": [
            {
                "task_id": pair.a.task_id,
                "a": _counts(pair.a),
                "b": _counts(pair.b),
                "difference": float(pair.difference),
            }
            for pair in found.tasks
        ],
    }
    return json_text(document)


def _side(row: Row) -> dict[str, Any]:
    return {"model": row.model, "submission": row.public_id, "pass@1": row.figures.pass_at[1]}


def _counts(line: TaskLine) -> dict[str, Any]:
    return {"n": line.n, "c": line.c, "outcomes": line.outcomes}
