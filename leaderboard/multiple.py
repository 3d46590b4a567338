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
    order = _ascending(p_values)
    m = len(order)
    scaled = [min(1, (m - i) * p_values[index]) for i, index in enumerate(order)]
    return _replaced(order, list(accumulate(scaled, max)))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values, in the order given (1995).

    With p ascending: adjusted_(j) = min over i >= j of min(1, m p_(i) / i). Bounds the share of
    false calls, not the chance of one: for exploring, never for ranks.
    """
    order = _ascending(p_values)
    m = len(order)
    scaled = [min(1, m * p_values[index] / (i + 1)) for i, index in enumerate(order)]
    return _replaced(order, list(accumulate(reversed(scaled), min))[::-1])


def _ascending(p_values: Sequence[float]) -> list[int]:
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError("p-values lie within 0..1")
    return sorted(range(len(p_values)), key=p_values.__getitem__)


def _replaced(order: Sequence[int], adjusted: Sequence[float]) -> list[float]:
    return [value for _, value in sorted(zip(order, adjusted, strict=True))]
