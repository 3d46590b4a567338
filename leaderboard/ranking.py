"""Places on a board."""

from __future__ import annotations

from collections.abc import Sequence


def competition_ranks(values: Sequence[float | None]) -> list[int | None]:
    """Rank of each value, highest first: equal values share one and the next is skipped.

    A missing value takes no rank: ``[0.5, None, 0.9, 0.5]`` gives ``[2, None, 1, 2]``.
    """
    known = sorted((value for value in values if value is not None), reverse=True)
    first = {value: place for place, value in reversed(list(enumerate(known, start=1)))}
    return [None if value is None else first[value] for value in values]
