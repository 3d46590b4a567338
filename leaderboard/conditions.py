"""The conditions of a run: what has to be alike for two scores to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leaderboard.rows import Row

LABELS = {
    "temperature": "Temperature",
    "n": "n",
    "prompt_style": "Prompt style",
    "extraction": "Extraction",
    "prefix": "Prefix",
    "tier": "Tier",
}


def conditions(row: Row) -> dict[str, str]:
    """By the names of `LABELS`; empty text where the run does not say.

    What an upload states of itself goes before the benchmark's rules.
    """
    result = row.figures
    return {
        "temperature": _stated(row.settings, "temperature"),
        "n": str(result.n_max)
        if result.n_min == result.n_max
        else f"{result.n_min}–{result.n_max}",
        "prompt_style": _stated(row.settings, "prompt_style"),
        "extraction": _stated(row.settings, "extraction") or row.extraction,
        "prefix": _stated(row.settings, "prefix") or row.prefix,
        "tier": " ".join(row.integrity.tiers),
    }


def usual(rows: Iterable[Row]) -> dict[str, str]:
    """The value of each condition that more than half of the runs that state it have."""
    held = [conditions(row) for row in rows]
    counted = {name: Counter(one[name] for one in held if one[name]) for name in LABELS}
    return {
        name: value
        for name, counts in counted.items()
        for value, times in counts.most_common(1)
        if 2 * times > counts.total()
    }


def differing(row: Row, common: Mapping[str, str]) -> list[str]:
    """Names of the conditions in which a run states another value than the usual one, if any."""
    held = conditions(row)
    return [name for name, value in common.items() if held[name] not in ("", value)]


def offered(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Values to filter by, of the conditions that have more than one."""
    held = [conditions(row) for row in rows]
    values = {name: sorted({one[name] for one in held if one[name]}, key=_order) for name in LABELS}
    return {name: found for name, found in values.items() if len(found) > 1}


def matches(row: Row, wanted: Mapping[str, str]) -> bool:
    held = conditions(row) if wanted else {}
    return all(held[name] == value for name, value in wanted.items())


def _order(value: str) -> tuple[int, float, str]:
    """Numbers first, by size."""
    try:
        return 0, float(value), value
    except ValueError:
        return 1, 0.0, value


def _stated(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return "" if value is None else str(value)
