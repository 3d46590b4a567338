"""A comparison as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from leaderboard.cards import TaskLine
from leaderboard.comparison import OUTCOMES, Comparison
from leaderboard.comparison_words import finding
from leaderboard.rows import Row


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
    return json.dumps(document, indent=2) + "\n"


def _side(row: Row) -> dict[str, Any]:
    return {"model": row.model, "submission": row.public_id, "pass@1": row.figures.pass_at[1]}


def _counts(line: TaskLine) -> dict[str, Any]:
    return {"n": line.n, "c": line.c, "outcomes": line.outcomes}
