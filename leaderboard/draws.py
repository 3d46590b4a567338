"""What to expect of k samples drawn from the n of one task, beside pass@k.

Exact and correctly rounded; None for ``n < k``, where no unbiased estimate exists. Standard
library only. Counts are checked as `pass_at_k` checks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

from grading.engine.passk import pass_at_k


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """pass^k, the chance that all k pass: C(c, k) / C(n, k) (Yao et al. 2024, tau-bench)."""
    return None if pass_at_k(n, c, k) is None else comb(c, k) / comb(n, k)


def g_pass_at_k(n: int, c: int, k: int, at_least: int) -> float | None:
    """G-Pass@k, the chance that at least ``at_least`` of k pass (Liu et al. 2024).

    sum_{j = at_least..k} C(c, j) C(n - c, k - j) / C(n, k): 1 gives pass@k, k gives pass^k. Raises
    ValueError unless ``1 <= at_least <= k``.
    """
    if not 1 <= at_least <= k:
        raise ValueError(f"at_least={at_least}, k={k}: 1 <= at_least <= k is needed")
    if pass_at_k(n, c, k) is None:
        return None
    ways = sum(comb(c, j) * comb(n - c, k - j) for j in range(at_least, k + 1))
    return ways / comb(n, k)


def best_at_k(fractions: Sequence[Fraction], k: int) -> float | None:
    """Expected best fraction among k drawn samples; equals pass@k for 0 and 1.

    With v ascending: sum_{r = k..n} C(r - 1, k - 1) v_(r) / C(n, k), for v_(r) is the best of
    C(r - 1, k - 1) of the C(n, k) draws.
    """
    n = len(fractions)
    if pass_at_k(n, 0, k) is None:
        return None
    ordered = enumerate(sorted(fractions), start=1)
    best = sum((comb(r - 1, k - 1) * value for r, value in ordered if r >= k), Fraction(0))
    return float(best / comb(n, k))


def rerun_variance(n: int, c: int, k: int) -> float | None:
    """Unbiased estimate of the variance of one task's pass@k between runs; None for ``n < 2k``.

    With q_j = C(n - c, j) / C(n, j): q_k^2 - q_2k, since q_2k estimates the square of what q_k
    estimates. At k = 1 it is p (1 - p) / (n - 1). It may be negative for k > 1.
    """
    if pass_at_k(n, c, 2 * k) is None:
        return None
    missed, missed_twice = (Fraction(comb(n - c, j), comb(n, j)) for j in (k, 2 * k))
    return float(missed**2 - missed_twice)
