"""Estimators against what they estimate."""

from __future__ import annotations

from itertools import combinations
from math import comb
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from envsynth.rollout import clustered, mixed_chance, mixed_chance_of_rate, pass_at_k, wilson
from envsynth.rollout.calibration import mixed_levels
from envsynth.rollout.statistics import better_by_chance


@given(st.integers(1, 9), st.data())
def test_pass_at_k_and_mixed_chance_are_shares_of_the_groups_that_can_be_drawn(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    attempts = [True] * c + [False] * (n - c)
    groups = list(combinations(attempts, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(group) for group in groups) / len(groups))
    mixed = sum(any(group) and not all(group) for group in groups) / len(groups)
    assert mixed_chance(n, c, k) == pytest.approx(mixed)
    assert mixed_levels([float(one) for one in attempts], k) == (pytest.approx(mixed), False)


@pytest.mark.parametrize("p", [0.0, 0.05, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("group", [4, 8, 16])
def test_they_are_unbiased_and_the_plug_in_is_too_low(p: float, group: int) -> None:
    n = 20
    chance = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    mean = sum(w * (mixed_chance(n, c, group) or 0.0) for c, w in enumerate(chance))
    assert mean == pytest.approx(mixed_chance_of_rate(p, group))
    passed = sum(w * (pass_at_k(n, c, group) or 0.0) for c, w in enumerate(chance))
    assert passed == pytest.approx(1 - (1 - p) ** group)
    plugged = sum(w * mixed_chance_of_rate(c / n, group) for c, w in enumerate(chance))
    assert plugged <= mean + 1e-12


def test_what_is_not_known_is_not_told() -> None:
    assert pass_at_k(3, 1, 4) is None
    assert pass_at_k(0, 0, 1) is None
    assert mixed_chance(7, 3, 8) is None
    assert wilson(0, 0) == (0.0, 1.0)
    assert clustered([0.5]) is None


@pytest.mark.parametrize(("c", "n"), [(0, 8), (1, 8), (8, 8), (37, 100)])
def test_wilsons_interval_is_the_textbooks(c: int, n: int) -> None:
    wanted = binomtest(c, n).proportion_ci(method="wilson")
    assert wilson(c, n) == (pytest.approx(wanted.low, abs=1e-9), pytest.approx(wanted.high, abs=1e-9))


def test_the_interval_over_tasks_covers_the_mean_and_does_not_vanish() -> None:
    rng = Random(7)
    inside = 0
    for _ in range(200):
        values = [rng.betavariate(2, 3) for _ in range(40)]
        found = clustered(values)
        assert found is not None
        assert found.low < fmean(values) < found.high
        inside += found.low <= 0.4 <= found.high
    assert 180 <= inside <= 199
    assert clustered([1.0] * 30) == wilson(30, 30)
    one = clustered([1.0] * 29 + [0.5])
    assert one is not None
    assert one == (pytest.approx(wilson(29.5, 30).low), 1.0)
    none = clustered([0.0, 0.0], (-1.0, 1.0))
    assert none is not None
    assert none.low == pytest.approx(-none.high)
    assert none.high > 0.5
    assert clustered([0.1, 0.7, 0.4]) == clustered([0.1, 0.7, 0.4])


def test_levels_of_graded_rewards() -> None:
    assert mixed_levels([0.5] * 8, 8) == (0.0, False)
    assert mixed_levels([0.1, 0.2], 2) == (1.0, False)
    assert mixed_levels([0.0, 0.5], 4) == (pytest.approx(1 - 2 / 16), True)


def test_what_looks_better_by_chance() -> None:
    rng = Random(4)
    doubts = [better_by_chance([rng.random() for _ in range(8)], [rng.random() for _ in range(192)]) for _ in range(60)]
    assert 0.35 < fmean(doubts) < 0.65
    assert sum(doubt <= 0.05 for doubt in doubts) <= 8
    # One success is clear where luck has none in so many, and is nothing where luck has it as often.
    assert better_by_chance([1.0] + [0.0] * 7, [0.0] * 192) < 0.05 < better_by_chance([1.0] + [0.0] * 7, [0.0] * 8)
    assert better_by_chance([1.0] + [0.0] * 7, ([1.0] + [0.0] * 7) * 24) > 0.3
    assert better_by_chance([0.5, 0.5], [0.5]) == 1.0
