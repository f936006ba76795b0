"""What a few attempts say of a success rate, and how unsure that is."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from typing import NamedTuple

import numpy as np

__all__ = ["Interval", "clustered", "mixed_chance", "mixed_chance_of_rate", "pass_at_k", "wilson"]

_Z95 = 1.959963984540054
_RESAMPLES = 2000
_SEED = 20_260
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
    rate, square = c / n, _Z95**2
    middle = (rate + square / (2 * n)) / (1 + square / n)
    half = _Z95 * sqrt(rate * (1 - rate) / n + square / (4 * n * n)) / (1 + square / n)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


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


def clustered(values: Sequence[float]) -> Interval | None:
    """Interval of the mean over tasks: bootstrap over whole tasks, percentiles; the same for the same values.

    Attempts at one task are not independent, so tasks are drawn and not attempts. Where all values are equal a
    bootstrap would see no doubt at all: then Wilson's interval of as many attempts as there are tasks stands in (for
    values that lie between 0 and 1).

    Args:
        values: one a task.

    Returns:
        None for fewer than two tasks.
    """
    if len(values) < 2:
        return None
    if min(values) == max(values):
        inside = 0.0 <= values[0] <= 1.0
        return wilson(values[0] * len(values), len(values)) if inside else Interval(values[0], values[0])
    return _bootstrap(np.asarray(values, dtype=np.float64))


def _bootstrap(values: np.ndarray) -> Interval:
    rng = np.random.default_rng(_SEED)
    means: list[np.ndarray] = []
    step = max(1, _DRAWN_AT_ONCE // len(values))
    for start in range(0, _RESAMPLES, step):
        places = rng.integers(0, len(values), size=(min(step, _RESAMPLES - start), len(values)))
        means.append(values[places].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Interval(float(low), float(high))
