"""Figures over tasks, by hand."""

from __future__ import annotations

import pytest

from envsynth.report.facts import PolicyRates, TaskRate


def _rates(*counts):
    return PolicyRates("model", "m", False, [TaskRate(f"t{place}", n, c) for place, (n, c) in enumerate(counts)])


def test_histogram():
    found = _rates((10, 0), (10, 10), (3, 1), (10, 9), (7, 7)).histogram()
    assert [count for _, count in found] == [1, 0, 0, 1, 0, 0, 0, 0, 0, 3]
    assert found[3][0] == pytest.approx(0.3)


def test_every_tenth_is_in_the_step_that_it_begins():
    for tenths in range(10):
        found = _rates((10, tenths)).histogram()
        assert [place for place, (_, count) in enumerate(found) if count] == [tenths]


def test_mixed_groups_are_unbiased_where_there_are_attempts_enough():
    assert _rates((4, 2)).mixed(4) == (1.0, False)
    assert _rates((4, 4), (4, 0)).mixed(4) == (0.0, False)
    chance, rough = _rates((4, 2)).mixed(8)
    assert rough
    assert chance == pytest.approx(1 - 2 * 0.5**8)
    assert _rates((8, 4), (2, 1)).mixed(8) == (pytest.approx((1 + 1 - 2 * 0.5**8) / 2), True)


def test_name_and_mean():
    assert _rates((4, 2), (2, 2)).mean == 0.75
    assert PolicyRates("idle", "", True, []).name == "idle, with the hint"
