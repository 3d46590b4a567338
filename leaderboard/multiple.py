"""Adjusted p-values for many tests at once. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given (Holm 1979).

    With p ascending: adjusted_(j) = max over i <= j of min(1, (m - i + 1) p_(i)). Calling those
    below a level different makes even one false call at most that likely, however the tests
    depend on each other.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("p-values lie within 0..1")
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    m = len(order)
    scaled = [min(1, (m - i) * p_values[index]) for i, index in enumerate(order)]
    adjusted = accumulate(scaled, max)
    return [value for _, value in sorted(zip(order, adjusted, strict=True))]
