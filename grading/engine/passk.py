"""pass@k and the mean fraction, in exact arithmetic.

pass@k of one task is the chance that at least one of ``k`` samples, drawn without replacement
from its ``n`` graded ones of which ``c`` pass, passes: ``1 - C(n-c, k) / C(n, k)``. It is
unbiased for ``n >= k`` and has no unbiased estimator below that, so there it has no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import comb, fsum
from typing import Literal

Counts = tuple[int, int]  # graded samples n of a task, and how many of them pass, c
TimeoutPolicy = Literal["zero", "missing"]


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """pass@k of one task, correctly rounded; None where ``n < k``.

    Raises ValueError for ``c < 0``, ``c > n``, ``k < 1`` and anything that is not an int.
    """
    _check(n, c, k)
    return None if n < k else float(_exact(n, c, k))


def mean_pass_at_k(
    tasks: Iterable[Counts | None] | Mapping[Counts | None, int],
    k: int,
    missing: Literal["drop", "zero"] = "drop",
) -> float | None:
    """Mean over tasks of each task's own pass@k, correctly rounded.

    ``tasks``: counts of each, or how many tasks have which counts. A task without samples is None
    or ``(0, 0)``: ``drop`` leaves it out, ``zero`` counts it 0. None where a task has samples but
    fewer than ``k``, or where no task is left.
    """
    given = tasks if isinstance(tasks, Mapping) else list(tasks)
    for n, c in [(0, 0), *(counts for counts in given if counts is not None)]:
        _check(n, c, k)
    held = Counter(given)
    without = held.pop(None, 0) + held.pop((0, 0), 0)
    counted = {counts: times for counts, times in held.items() if counts is not None}
    used = sum(counted.values()) + (without if missing == "zero" else 0)
    if not used or any(n < k for n, _ in counted):
        return None
    return float(sum(times * _exact(n, c, k) for (n, c), times in counted.items()) / Fraction(used))


def counts_under(timeouts: TimeoutPolicy, n: int, c: int, timed_out: int) -> Counts:
    """``(n, c)`` of a task with ``timed_out`` of its n samples timed out.

    ``zero``: a timeout is a sample that did not pass; ``missing``: it is no sample at all.
    """
    return (n - timed_out, c) if timeouts == "missing" else (n, c)


def task_score(passed: int, total: int) -> float | None:
    """Share of a task's targets that hold; None for a task without targets.

    Raises ValueError unless ``0 <= passed <= total``.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"passed={passed}, total={total}: 0 <= passed <= total is needed")
    return passed / total if total else None


def mean_fraction(tasks: Iterable[tuple[int, float]]) -> float | None:
    """Mean over tasks of the mean over each task's samples.

    ``tasks``: per task its graded samples and the sum of their fractions. Tasks without samples
    are left out; None where none is left.
    """
    means = [fraction_sum / n for n, fraction_sum in tasks if n]
    return fsum(means) / len(means) if means else None


def _check(n: int, c: int, k: int) -> None:
    for name, value in (("n", n), ("c", c), ("k", k)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name}={value!r}: pass@k takes whole numbers")
    if not 0 <= c <= n:
        raise ValueError(f"n={n}, c={c}: 0 <= c <= n is needed")
    if k < 1:
        raise ValueError(f"k={k}: k must be at least 1")


@lru_cache(maxsize=4096)
def _exact(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(comb(n - c, k), comb(n, k))
