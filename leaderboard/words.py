"""Findings in sentences: what a board says before its figures do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from grading.templatetags.figures import percent_text
from leaderboard.ranking import LEAST_TASKS, Standing, Standings
from leaderboard.rows import Row

# Said elsewhere on the page, or too long for a cell.
NOT_IN_A_CELL = {"n", "notes"}
SETTING_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """``strong`` is the sentence itself, ``rest`` what it rests on, ``top`` both in a table cell.

    ``sharing``: public ids of the leaders and of those no test separates from them.
    """

    strong: str
    rest: str = ""
    top: str = ""
    sharing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Top:
    """Ranked rows in order: the leaders, those some leader is level with, and the rest."""

    leaders: Sequence[Row]
    near: Sequence[Row]
    far: Sequence[Row]

    @property
    def sharing(self) -> list[Row]:
        return [*self.leaders, *self.near]

    @property
    def decisive(self) -> bool:
        return len(self.sharing) == 1

    @property
    def in_one_piece(self) -> bool:
        """Whether those sharing the top stand before all others."""
        return not self.far or max(map(_place, self.sharing)) < min(map(_place, self.far))

    @property
    def pronoun(self) -> str:
        return "it" if len(self.leaders) == 1 else "them"


def finding(rows: Sequence[Row], label: str, tested: Standings) -> Finding:
    """What the order of a board means; ``label`` names the score, such as pass@1."""
    ranked = sorted((row for row in rows if row.rank is not None), key=_place)
    if not rows:
        return _plain("No model has a public result here yet.")
    if not ranked:
        return _plain(
            "No model is ranked yet.",
            "A rank needs a finished run with a graded sample for every task.",
        )
    if len(ranked) == 1:
        return _plain(
            f"{_name(ranked[0])} has a {label} of {percent_text(ranked[0].value or 0)} %.",
            "It is the only ranked model, so there is no order.",
            frozenset({ranked[0].public_id}),
        )
    return _order(_top_of(ranked, tested), tested)


def _plain(strong: str, rest: str = "", sharing: frozenset[str] = frozenset()) -> Finding:
    return Finding(strong, rest, strong, sharing)


def _place(row: Row) -> tuple[int, str]:
    return row.rank or 0, row.model.casefold()


def _top_of(ranked: Sequence[Row], tested: Standings) -> _Top:
    leaders = [row for row in ranked if row.rank == 1]
    others = [row for row in ranked if row.rank != 1]
    level = {
        row.public_id
        for row in others
        if any(tested.level(leader.public_id, row.public_id) for leader in leaders)
    }
    return _Top(
        leaders,
        near=[row for row in others if row.public_id in level],
        far=[row for row in others if row.public_id not in level],
    )


def _order(top: _Top, tested: Standings) -> Finding:
    verb = "leads" if len(top.leaders) == 1 else "share the lead"
    lead = f"{_names(top.leaders)} {verb} with {percent_text(top.leaders[0].value or 0)} %"
    return Finding(
        strong=f"The order at the top is {'' if top.decisive else 'not '}decisive.",
        rest=f"{lead}{_extent(top, tested)}{_noise(tested)}",
        top=_in_a_cell(top),
        sharing=frozenset(row.public_id for row in top.sharing),
    )


def _extent(top: _Top, tested: Standings) -> str:
    """How far down the lead is open, and from where on it is clear."""
    tasks = top.leaders[0].figures.tasks
    if tasks < LEAST_TASKS:
        return f", but with fewer than {LEAST_TASKS} tasks no two models can be told apart."
    here = f"on these {tasks:,} tasks"
    if top.decisive:
        return f" and is clearly ahead of every other model {here}."
    said = f", but {_who(top, tested)} {here}"
    if not top.far or not top.in_one_piece:
        return f"{said}."
    ahead = "it is" if len(top.leaders) == 1 else "they are"
    return f"{said}; {ahead} clearly ahead from {_name(top.far[0])} down."


def _who(top: _Top, tested: Standings) -> str:
    """Whom the leaders cannot be told apart from."""
    pairs = combinations(top.sharing, 2)
    alike = all(tested.level(a.public_id, b.public_id) for a, b in pairs)
    if alike and top.in_one_piece:
        return f"ranks 1 to {len(top.sharing)} cannot be told apart"
    others = len(top.near) + len(top.far)
    return f"{len(top.near)} of the other {others} cannot be told apart from {top.pronoun}"


def _noise(tested: Standings) -> str:
    if tested.smallest is None:
        return ""
    points = 100 * tested.smallest
    shown = f"{points:.0f}" if points >= 1 else f"{points:.1f}"
    unit = "point" if shown == "1" else "points"
    return f" Differences under about {shown} {unit} are usually noise here."


def _in_a_cell(top: _Top) -> str:
    first, last = _name(top.sharing[0]), _name(top.sharing[-1])
    if top.decisive:
        return f"{first} leads, and that is decisive"
    if len(top.sharing) == 2:
        return f"2 share the top: {first} and {last}"
    if top.in_one_piece:
        return f"{len(top.sharing)} share the top: {first} to {last}"
    return f"{len(top.sharing)} share the top: {first} and {len(top.sharing) - 1} more"


def _name(row: Row) -> str:
    return f"{row.model} (synthetic)" if row.synthetic else row.model


def _names(rows: Sequence[Row]) -> str:
    """In the order given, at most three."""
    named = [_name(row) for row in rows]
    if len(named) > 3:
        named = [*named[:2], f"{len(named) - 2} more"]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def range_text(standing: Standing) -> str:
    """``1–4``, or ``3`` where only one place is left."""
    if standing.low == standing.high:
        return str(standing.low)
    return f"{standing.low}–{standing.high}"


def settings_text(settings: Mapping[str, Any]) -> str:
    """``temperature 0.2, chat``: numbers with their name, texts alone; empty if none is stated."""
    stated = [
        value if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"
        for name, value in settings.items()
        if name not in NOT_IN_A_CELL and value not in (None, "")
    ]
    text = ", ".join(stated)
    return text if len(text) <= SETTING_CHARS else text[: SETTING_CHARS - 1].rstrip() + "…"
