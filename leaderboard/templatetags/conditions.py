"""The conditions of runs in a board's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from leaderboard.conditions import LABELS, conditions, differing
from leaderboard.rows import Row

register = template.Library()


@register.filter
def at(held: Mapping[str, Any], name: str) -> Any:
    """What a mapping holds under a name that is itself a variable; empty text for nothing."""
    return held.get(name, "")


@register.filter
def held(row: Row, usual: Mapping[str, str]) -> list[tuple[str, bool]]:
    """Value of each condition in order, and whether it differs from the usual one."""
    other = differing(row, usual)
    return [(value, name in other) for name, value in conditions(row).items()]


@register.filter
def other_conditions(row: Row, usual: Mapping[str, str]) -> list[tuple[str, str]]:
    """Label and value of the conditions in which the run differs from the usual."""
    stated = conditions(row)
    return [(LABELS[name].lower(), stated[name]) for name in differing(row, usual)]


@register.filter
def stated_conditions(row: Row) -> list[tuple[str, str]]:
    """Label and value of every condition that is known."""
    return [(LABELS[name].lower(), value) for name, value in conditions(row).items() if value]
