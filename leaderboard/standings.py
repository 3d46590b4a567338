"""The tests behind a board's rank ranges: read from the task scores, kept while those stay."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from django.core.cache import cache

from grading.engine.passk import pass_at_k
from grading.models import TaskScore
from leaderboard.ranking import Standings, standings
from leaderboard.rows import Row

KEEP_S = 24 * 3600


def standings_of(boards: Sequence[Sequence[Row]]) -> list[Standings]:
    """Standings of each board by public id, from its rows of which only the ranked count.

    One query for all boards together, none where this process has computed them before: the key
    holds every ranked submission, what its tasks scored, and the score ranked by.
    """
    ranked = [[row for row in rows if row.rank is not None] for rows in boards]
    keys = [_key(rows) for rows in ranked]
    held: dict[str, Standings] = cache.get_many(keys)
    absent = {key: rows for key, rows in zip(keys, ranked, strict=True) if key not in held}
    if absent:
        made = _computed(absent)
        cache.set_many(made, KEEP_S)
        held |= made
    return [held[key] for key in keys]


def standing(rows: Iterable[Row], found: Standings) -> list[Row]:
    """The same rows; the ranked ones with their standing."""
    places = found.of()
    return [replace(row, standing=places.get(row.public_id)) for row in rows]


def _key(rows: Sequence[Row]) -> str:
    parts = [f"{row.figures.score} {row.fingerprint}" for row in rows]
    return f"standings:{hashlib.sha256(' '.join(parts).encode()).hexdigest()}"


def _computed(boards: dict[str, list[Row]]) -> dict[str, Standings]:
    counts = _counts([row.public_id for rows in boards.values() for row in rows])
    return {
        key: standings(
            {row.public_id: _values(counts[row.public_id], row.figures.score) for row in rows}
        )
        for key, rows in boards.items()
    }


def _counts(public_ids: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Per submission n and c of each task, in the order of tasks."""
    scores = TaskScore.objects.filter(submission__public_id__in=public_ids).order_by("task_id")
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for public_id, n, c in scores.values_list("submission__public_id", "n", "c"):
        found[public_id].append((n, c))
    return found


def _values(counts: Iterable[tuple[int, int]], k: int) -> list[float]:
    """pass@k per task; a ranked row has one for every task."""
    values = [pass_at_k(n, c, k) for n, c in counts]
    return [value for value in values if value is not None]
