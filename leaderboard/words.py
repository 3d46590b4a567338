"""Findings in sentences: what a board says before its figures do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grading.templatetags.figures import percent_text
from leaderboard.rows import Row

# Said elsewhere on the page, or too long for a cell.
NOT_IN_A_CELL = {"n", "notes"}
SETTING_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """``strong`` is the sentence itself, ``rest`` what it rests on."""

    strong: str
    rest: str = ""


def finding(rows: Sequence[Row], label: str) -> Finding:
    """What the order of a board means; ``label`` names the score, such as pass@1."""
    ranked = [row for row in rows if row.rank is not None]
    if not rows:
        return Finding("No model has a public result here yet.")
    if not ranked:
        return Finding(
            "No model is ranked yet.",
            "A rank needs a finished run with a graded sample for every task.",
        )
    leaders = [row for row in ranked if row.rank == 1]
    names = _names(leaders)
    verb = "leads" if len(leaders) == 1 else "share the lead"
    score = f"{percent_text(leaders[0].value or 0)} %"
    if len(ranked) == 1:
        return Finding(
            f"{names} has a {label} of {score}.",
            "It is the only ranked model, so there is no order.",
        )
    return Finding(f"{names} {verb} with {score}.", _overlap(leaders, ranked))


def _names(rows: Sequence[Row]) -> str:
    rows = sorted(rows, key=lambda row: row.model.casefold())
    named = [f"{row.model} (synthetic)" if row.synthetic else row.model for row in rows]
    if len(named) > 3:
        named = [*named[:2], f"{len(named) - 2} more"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _overlap(leaders: Sequence[Row], ranked: Sequence[Row]) -> str:
    """Whether other intervals reach the leader's; a weaker statement than a paired test."""
    held = leaders[0].figures.interval
    others = [row for row in ranked if row.rank != 1]
    if not others or held is None:
        return "Every ranked model has the same score."
    near = [row for row in others if row.figures.interval and row.figures.interval.high >= held.low]
    if not near:
        return "No other model's 95 % interval reaches its own."
    said = (
        "The 95 % interval of 1 other model reaches"
        if len(near) == 1
        else f"The 95 % intervals of {len(near)} other models reach"
    )
    return f"{said} its own, so on these tasks the order at the top is not decisive."


def settings_text(settings: Mapping[str, Any]) -> str:
    """``temperature 0.2, chat``: numbers with their name, texts alone; empty if none is stated."""
    stated = [
        value if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
        if name not in NOT_IN_A_CELL and value not in (None, "")
    ]
    text = ", ".join(stated)
    return text if len(text) <= SETTING_CHARS else text[: SETTING_CHARS - 1].rstrip() + "…"
