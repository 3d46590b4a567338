"""Why a board moved: what differs between two editions of it, each in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grading.templatetags.figures import percent_text
from leaderboard.editions import Edition, Entry
from leaderboard.ranking import Standing
from leaderboard.rows import Row
from leaderboard.standings import standing
from leaderboard.words import range_text

Change = dict[str, Any]


def changes(
    before: Edition | None, after: Edition, merged: Mapping[str, str] | None = None
) -> list[Change]:
    """JSON-ready: ``kind``, ``text``, and what the text is of, if a model: ``model``, ``slug``.
    ``merged``: names of the models that others were merged into, by the others' slugs.

    Causes come first (runs, scores, rules), then what they did to the ranks of others.
    """
    if before is None:
        models = len(after.entries)
        return [_change("first", f"The first snapshot, of {models} model{'s'[: models != 1]}.")]
    old = {entry.row.model_slug: entry for entry in before.entries}
    new = {entry.row.model_slug: entry for entry in after.entries}
    found = [*_rules(before, after), *_runs(old, new, merged or {})]
    moved = {change["slug"] for change in found}
    return found + list(_ranks(before, after, moved))


def _rules(before: Edition, after: Edition) -> Iterator[Change]:
    for name, value in after.policies.items():
        if before.policies.get(name) != value:
            held = before.policies.get(name)
            yield _change("rule", f"Rule “{name}”: {_said(held)} before, {_said(value)} now.")


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return "the default" if value is None else str(value)


def _runs(
    old: dict[str, Entry], new: dict[str, Entry], merged: Mapping[str, str]
) -> Iterator[Change]:
    for slug in old.keys() - new.keys():
        row = old[slug].row
        if slug in merged:
            yield _of(row, "merged", f"was merged into {merged[slug]}: its runs are that one's.")
            continue
        yield _of(row, "left", f"left: submission {row.public_id} is no longer public.")
    for slug, entry in new.items():
        held = old.get(slug)
        if held is None:
            yield _of(
                entry.row, "entered", f"entered with submission {entry.row.public_id}{_at(entry)}."
            )
        elif held.row.public_id != entry.row.public_id:
            yield _of(
                entry.row,
                "replaced",
                f"is represented by submission {entry.row.public_id}{_at(entry)}, "
                f"before by {held.row.public_id}{_at(held)}.",
            )
        elif held.row.sample_count < entry.row.sample_count:
            yield _of(entry.row, "added", _added(held, entry))
        elif held.digest != entry.digest:
            yield _of(
                entry.row,
                "regraded",
                f"has other scores for the same submission {entry.row.public_id}:"
                f"{_at(entry) or ' no pass@1'},{_at(held) or ' none'} before.",
            )
        elif held.row.settings != entry.row.settings:
            yield _of(entry.row, "settings", "states other settings.")


def _added(held: Entry, entry: Entry) -> str:
    more = entry.row.sample_count - held.row.sample_count
    return (
        f"samples added to submission {entry.row.public_id}: {more:,} more, "
        f"{entry.row.sample_count:,} in all;{_at(entry) or ' no pass@1'},"
        f"{_at(held) or ' none'} before."
    )


def _ranks(before: Edition, after: Edition, moved: set[str]) -> Iterator[Change]:
    """Rank ranges of models that changed though their own scores did not."""
    old = {row.model_slug: row.standing for row in _placed(before)}
    for row in _placed(after):
        held = old.get(row.model_slug)
        if row.model_slug in moved or row.standing is None or held is None:
            continue
        if _ends(held) != _ends(row.standing):
            text = f"may hold ranks {range_text(row.standing)}, before {range_text(held)}."
            yield _of(row, "range", text)


def _placed(edition: Edition) -> list[Row]:
    return standing(edition.rows(), edition.tests(1))


def _ends(held: Standing) -> tuple[int, int]:
    return held.low, held.high


def _at(entry: Entry) -> str:
    value = entry.row.value
    return "" if value is None else f" at pass@1 {percent_text(value)} %"


def _of(row: Row, kind: str, text: str) -> Change:
    return _change(kind, text) | {"model": row.model, "slug": row.model_slug}


def _change(kind: str, text: str) -> Change:
    return {"kind": kind, "model": "", "slug": "", "text": text}
