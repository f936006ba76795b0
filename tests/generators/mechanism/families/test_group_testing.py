"""The solver of group testing against expectimax over histories, and expectations against all tapes."""

from itertools import product
from math import prod
from random import Random
from statistics import fmean

import pytest

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families._group_testing_solver import Run, Terms, best_tree, best_value, runs, worth
from envsynth.generators.mechanism.families.group_testing import Faults, GroupTestingFamily, Rows, _oracle_trees

FAMILY = GroupTestingFamily()
EXACT = Terms(loss=3.0, price=0.3, tests=2, alarm=0.0, miss=0.0)
NOISY = Terms(loss=2.5, price=0.2, tests=2, alarm=0.1, miss=0.05)
RISKS = (0.05, 0.4, 0.15)
SMALL = Rows(risks=((1, 8, 3),), claims=((8, 1, 3),), tests=2, alarm=1, miss=2, gain=10, loss=28, price=2)


def expectimax(risks: tuple[float, ...], terms: Terms, history: tuple[tuple[Run, int], ...] = ()) -> float:
    """Best play over whole histories, weighted with the chance of the history."""
    weights = {}
    for faulty in product((0, 1), repeat=len(risks)):
        weight = prod(risk if fault else 1 - risk for risk, fault in zip(risks, faulty, strict=True))
        for run, result in history:
            hit = 1 - terms.miss if any(faulty[run.head : run.tail + 1]) else terms.alarm
            weight *= hit if result else 1 - hit
        weights[faulty] = weight
    best = sum(
        max(0.0, sum(weight * (-terms.loss if faulty[item] else 1) for faulty, weight in weights.items()))
        for item in range(len(risks))
    )
    if len(history) < terms.tests:
        for run in runs(len(risks)):
            after = sum(expectimax(risks, terms, (*history, (run, result))) for result in (0, 1))
            best = max(best, after - terms.price * sum(weights.values()))
    return best


@pytest.mark.parametrize("terms", [EXACT, NOISY], ids=["exact", "noisy"])
def test_solver_is_the_best_over_all_histories(terms: Terms) -> None:
    value = expectimax(RISKS, terms)
    assert best_value(RISKS, terms) == pytest.approx(value)
    assert worth(best_tree(RISKS, terms), RISKS, terms) == pytest.approx(value)


def test_three_tests_are_the_best_over_all_histories() -> None:
    terms = Terms(loss=4.0, price=0.1, tests=3, alarm=0.05, miss=0.0)
    assert best_value((0.3, 0.1), terms) == pytest.approx(expectimax((0.3, 0.1), terms))


@pytest.mark.parametrize("terms", [EXACT, NOISY], ids=["exact", "noisy"])
def test_bayes_earns_what_the_prior_promises(terms: Terms) -> None:
    mean = fmean((1, 3, 8)) / 20
    tree = best_tree((mean,) * 3, terms)
    earned = fmean(worth(tree, [risk / 20 for risk in risks], terms) for risks in product((1, 3, 8), repeat=3))
    assert earned == pytest.approx(best_value((mean,) * 3, terms))


def test_oracle_expects_the_mean_over_all_tapes() -> None:
    total, checked = 0.0, 0.0
    for faulty in product((0, 1), repeat=3):
        for errors in product((0, 1), repeat=4):
            chance = prod(
                risk / 20 if fault else 1 - risk / 20 for risk, fault in zip(SMALL.risks[0], faulty, strict=True)
            )
            for error, rate in zip(errors, (SMALL.alarm, SMALL.alarm, SMALL.miss, SMALL.miss), strict=True):
                chance *= rate / 20 if error else 1 - rate / 20
            tape = Faults((faulty,), (errors[:2],), (errors[2:],))
            solved = FAMILY.solved(SMALL, tape)
            assert solved <= FAMILY.hindsight(SMALL, tape) == SMALL.gain * faulty.count(0)
            total, checked = total + chance * solved, checked + chance
    assert checked == pytest.approx(1)
    assert FAMILY.expected(SMALL)["oracle"] == pytest.approx(total)


@pytest.mark.parametrize("level", LEVELS)
def test_draws_mislead_and_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 300)
    assert (one.risks, one.claims) == (dear.risks, dear.claims)
    assert _oracle_trees(one) == _oracle_trees(dear)
    expected = FAMILY.expected(one)
    low, high = FAMILY.band
    assert low < expected["default"] / expected["bayes"] < high
    assert expected["idle"] < expected["default"] < expected["bayes"] < expected["oracle"]


def test_levels_leave_the_uninformed_further_behind() -> None:
    def share(level: int) -> float:
        drawn = (FAMILY.sample(level, Random(100 * level + seed), 1) for seed in range(6))
        expected = [FAMILY.expected(parameters) for parameters in drawn]
        return fmean(one["bayes"] / one["oracle"] for one in expected)

    assert share(1) > share(5)
