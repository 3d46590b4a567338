"""Rank ranges put to the rows of a board."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from leaderboard.ranking import Standings
from leaderboard.rows import Row


def standing(rows: Iterable[Row], found: Standings) -> list[Row]:
    """The same rows; the ranked ones with their standing."""
    places = found.of()
    return [replace(row, standing=places.get(row.public_id)) for row in rows]
