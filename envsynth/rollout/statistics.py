"""What a few attempts say of a success rate, and how unsure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb, sqrt
from typing import NamedTuple

import numpy as np

__all__ = ["Interval", "better_by_chance", "clustered", "mixed_chance", "mixed_chance_of_rate", "pass_at_k", "wilson"]

_Z95 = 1.959963984540054
_RESAMPLES = 2000
_SEED = 20_260
_TELLING = 10
"""Tasks that must differ from the rest before a bootstrap is trusted."""
_DRAWN_AT_ONCE = 2_000_000
"""Values drawn in one piece: 16 MB."""


class Interval(NamedTuple):
    """Bounds of 95 % confidence."""

    low: float
    high: float


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Chance that at least one of `k` attempts succeeds: 1 - C(n-c, k) / C(n, k), unbiased (arXiv:2107.03374).

    Args:
        n: attempts.
        c: successes among them.
        k: attempts that one would make; None is returned for more than there are.
    """
    return None if not 1 <= k <= n else 1.0 - comb(n - c, k) / comb(n, k)


def wilson(c: float, n: int) -> Interval:
    """Wilson's score interval of a rate, for one task; (0, 1) where nothing was tried.

    Args:
        c: successes; need not be whole.
        n: attempts.
    """
    if n == 0:
        return Interval(0.0, 1.0)
    rate, square = min(1.0, max(0.0, c / n)), _Z95**2  # sums of shares are off by rounding errors
    middle = (rate + square / (2 * n)) / (1 + square / n)
    half = _Z95 * sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
    # At the ends the bound is exact on paper, and off by a rounding error here.
    return Interval(max(0.0, middle - half) if c > 0 else 0.0, min(1.0, middle + half) if c < n else 1.0)


def mixed_chance(n: int, c: int, group: int) -> float | None:
    """Chance that a group of attempts has both a success and a failure: 1 - p^G - (1-p)^G, unbiased.

    The share of mixed groups among those that can be drawn of the attempts: 1 - (C(c, G) + C(n-c, G)) / C(n, G).

    Args:
        n: attempts.
        c: successes among them.
        group: size G; None is returned where it is larger than `n`, for then nothing unbiased is known.
    """
    if not 1 <= group <= n:
        return None
    return 1.0 - (comb(c, group) + comb(n - c, group)) / comb(n, group)


def mixed_chance_of_rate(rate: float, group: int) -> float:
    """1 - p^G - (1-p)^G. It is concave in p, so an estimated rate put in gives too little on average."""
    return max(0.0, 1.0 - rate**group - (1.0 - rate) ** group)


def better_by_chance(values: Sequence[float], others: Sequence[float]) -> float:
    """Chance that the mean of `values` is so far above that of `others` though both come from one distribution.

    A permutation test, one-sided, with drawn permutations; the same for the same values.

    Args:
        values: one at least.
        others: one at least.
    """
    pool = np.asarray([*values, *others], dtype=np.float64)
    rng = np.random.default_rng(_SEED)
    orders = rng.random((_RESAMPLES, len(pool))).argsort(axis=1)[:, : len(values)]
    as_good = int((pool[orders].mean(axis=1) >= pool[: len(values)].mean() - 1e-12).sum())
    return (1 + as_good) / (1 + _RESAMPLES)


def clustered(values: Sequence[float], span: tuple[float, float] = (0.0, 1.0)) -> Interval | None:
    """Interval of the mean over tasks: bootstrap over whole tasks, percentiles; the same for the same values.

    Attempts at one task are not independent, so tasks are drawn and not attempts. Where fewer than ten tasks differ
    from the commonest value, as with rates near 0 or 1, a bootstrap sees too little of the doubt: then the interval is
    at least Wilson's for as many attempts as there are tasks, which no distribution with that mean exceeds in variance.

    Args:
        values: one a task.
        span: between which bounds values can lie.

    Returns:
        None for fewer than two tasks.
    """
    if len(values) < 2:
        return None
    found = _bootstrap(np.asarray(values, dtype=np.float64))
    common = Counter(values).most_common(1)[0][1]
    if len(values) - common >= _TELLING:
        return found
    low, high = span
    most = wilson(sum((value - low) / (high - low) for value in values), len(values))
    wide = Interval(*(low + bound * (high - low) for bound in most))
    return Interval(min(found.low, wide.low), max(found.high, wide.high))


def _bootstrap(values: np.ndarray) -> Interval:
    rng = np.random.default_rng(_SEED)
    means: list[np.ndarray] = []
    step = max(1, _DRAWN_AT_ONCE // len(values))
    for start in range(0, _RESAMPLES, step):
        places = rng.integers(0, len(values), size=(min(step, _RESAMPLES - start), len(values)))
        means.append(values[places].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Interval(float(low), float(high))
