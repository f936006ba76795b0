from itertools import product
from random import Random
from statistics import mean

import numpy as np
import pytest
from scipy.optimize import linprog

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families.flow import FlowFamily, Surcharges, best_flow

FAMILY = FlowFamily()


def profit(prices, rates, shipped):
    return sum(amount * (prices[j] - rates[i][j]) for i, j, amount in shipped)


def drawn_week(rng, sources, markets, most):
    supply = tuple(rng.randint(1, most) for _ in range(sources))
    demand = tuple(rng.randint(1, most) for _ in range(markets))
    prices = tuple(rng.randint(1, 30) for _ in range(markets))
    return supply, demand, prices, tuple(tuple(rng.randint(1, 30) for _ in range(markets)) for _ in range(sources))


def by_highs(supply, demand, prices, rates):
    """The optimum of the linear programme."""
    sources, markets = len(supply), len(demand)
    gain = [prices[j] - rates[i][j] for i, j in product(range(sources), range(markets))]
    rows = np.vstack([np.kron(np.eye(sources), np.ones(markets)), np.kron(np.ones(sources), np.eye(markets))])
    found = linprog([-one for one in gain], A_ub=rows, b_ub=[*supply, *demand], method="highs")
    assert found.success
    return -found.fun


def test_the_best_flow_is_the_best_of_all_allocations():
    for seed in range(4):
        supply, demand, prices, rates = drawn_week(Random(seed), 2, 2, 3)
        best = max(
            (a * (prices[0] - rates[0][0]) + b * (prices[1] - rates[0][1]))
            + (c * (prices[0] - rates[1][0]) + d * (prices[1] - rates[1][1]))
            for a, b, c, d in product(range(4), repeat=4)
            if a + b <= supply[0] and c + d <= supply[1] and a + c <= demand[0] and b + d <= demand[1]
        )

        assert profit(prices, rates, best_flow(supply, demand, prices, rates)) == best


@pytest.mark.parametrize("seed", range(12))
def test_the_best_flow_is_what_highs_finds(seed):
    rng = Random(seed)
    supply, demand, prices, rates = drawn_week(rng, rng.randint(1, 4), rng.randint(1, 6), 25)

    shipped = best_flow(supply, demand, prices, rates)

    assert profit(prices, rates, shipped) == pytest.approx(by_highs(supply, demand, prices, rates), abs=1e-6)
    for i, pieces in enumerate(supply):
        assert sum(one.amount for one in shipped if one.source == i) <= pieces
    for j, pieces in enumerate(demand):
        assert sum(one.amount for one in shipped if one.market == j) <= pieces


@pytest.mark.parametrize("level", LEVELS)
def test_the_oracle_expects_what_highs_finds(level):
    drawn = FAMILY.sample(level, Random(f"highs/{level}"), 10)
    weeks = zip(drawn.supplies, drawn.demands, strict=True)

    best = sum(by_highs(supply, demand, drawn.prices, drawn.usual) for supply, demand in weeks)

    assert FAMILY.expected(drawn)["oracle"] == pytest.approx(best)


def test_nothing_is_shipped_at_a_loss():
    assert best_flow((5,), (5, 5), (4, 9), ((4, 7),)) == ((0, 1, 5),)
    assert best_flow((5,), (5,), (4,), ((6,),)) == ()


@pytest.mark.parametrize("level", LEVELS)
def test_the_expectation_is_the_mean_over_tapes(level):
    drawn = FAMILY.sample(level, Random(f"mean/{level}"), 10)
    utilities = [FAMILY.solved(drawn, FAMILY.tape(drawn, Random(seed))) for seed in range(60)]

    pieces = max(map(max, drawn.supplies))
    lanes = len(drawn.supplies) * (len(drawn.usual) + len(drawn.prices))
    error = 4 * drawn.unit * drawn.swing * pieces * (lanes / len(utilities)) ** 0.5

    assert abs(mean(utilities) - FAMILY.expected(drawn)["oracle"]) <= error


@pytest.mark.parametrize("level", [2, 4])
def test_hindsight_is_the_optimum_at_each_weeks_costs(level):
    drawn = FAMILY.sample(level, Random(f"hind/{level}"), 10)
    tape = FAMILY.tape(drawn, Random(3))
    best = 0.0
    for supply, demand, extras in zip(drawn.supplies, drawn.demands, tape.extras, strict=True):
        rates = (np.array(drawn.usual) + np.array(extras)).tolist()
        best += by_highs(supply, demand, drawn.prices, rates)

    assert FAMILY.hindsight(drawn, tape) == pytest.approx(best)
    assert FAMILY.hindsight(drawn, tape) >= FAMILY.solved(drawn, tape)


def test_without_surcharges_the_oracle_earns_its_expectation():
    drawn = FAMILY.sample(3, Random("even"), 10)
    none = tuple(tuple((0,) * len(row) for row in drawn.usual) for _ in drawn.supplies)

    assert FAMILY.solved(drawn, Surcharges(none)) == FAMILY.expected(drawn)["oracle"]


def test_levels_get_harder():
    places = []
    for level in (1, 3, 5):
        found = [FAMILY.expected(FAMILY.sample(level, Random(f"{level}/{k}"), 1)) for k in range(5)]
        places.append(mean(values["default"] / values["oracle"] for values in found))

    assert places == sorted(places, reverse=True)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_no_decision_depends_on_the_unit(level):
    one, seven = (FAMILY.sample(level, Random("unit"), unit) for unit in (1, 7))

    assert seven.usual == tuple(tuple(7 * rate for rate in row) for row in one.usual)
    assert [best_flow(s, d, one.prices, one.usual) for s, d in zip(one.supplies, one.demands, strict=True)] == [
        best_flow(s, d, seven.prices, seven.usual) for s, d in zip(seven.supplies, seven.demands, strict=True)
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_a_lane_never_costs_nothing(level):
    drawn = FAMILY.sample(level, Random(f"highs/{level}"), 10)

    assert min(map(min, drawn.usual)) > drawn.swing * drawn.unit
