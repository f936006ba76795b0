from itertools import pairwise, permutations
from random import Random
from statistics import mean

import pytest

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families.routing import Routing, RoutingFamily, best_tour

FAMILY = RoutingFamily()


def matrix(places, rng):
    costs = [[0] * places for _ in range(places)]
    for a in range(places):
        for b in range(a):
            costs[a][b] = costs[b][a] = rng.randint(1, 30)
    return tuple(map(tuple, costs))


def length(costs, stops):
    return sum(costs[a][b] for a, b in pairwise((0, *stops, 0))) if stops else 0


def tours(places, sizes):
    return (tour for size in sizes for tour in permutations(range(1, places), size))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_tour_is_the_best_of_all_orders_of_all_sets(seed):
    rng = Random(seed)
    places = rng.randint(2, 6)
    costs, fees = matrix(places, rng), (0, *(rng.randint(1, 40) for _ in range(places - 1)))

    found = best_tour(fees, costs)

    assert found.value == max(
        sum(fees[stop] for stop in tour) - length(costs, tour) for tour in tours(places, range(places))
    )
    assert found.value == sum(fees[stop] for stop in found.stops) - length(costs, found.stops)


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_tour_visits_all_at_the_least_cost(seed):
    rng = Random(seed)
    places = rng.randint(3, 7)
    costs = matrix(places, rng)

    found = best_tour((0,) * places, costs, whole=True)

    assert sorted(found.stops) == list(range(1, places))
    assert -found.value == min(length(costs, tour) for tour in tours(places, [places - 1]))


def test_no_tour_is_made_that_does_not_pay():
    assert best_tour((0, 5, 5), ((0, 9, 9), (9, 0, 9), (9, 9, 0))) == (0, ())


@pytest.mark.parametrize("level", LEVELS)
def test_the_expectation_is_the_mean_over_tapes(level):
    drawn = FAMILY.sample(level, Random(f"mean/{level}"), 10)
    utilities = [FAMILY.solved(drawn, FAMILY.tape(drawn, Random(seed))) for seed in range(40)]

    legs = drawn.laps * (len(drawn.fees) + 1)
    error = 4 * drawn.unit * drawn.swing * (legs / len(utilities)) ** 0.5

    assert abs(mean(utilities) - FAMILY.expected(drawn)["oracle"]) <= error


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_beats_hindsight(level):
    drawn = FAMILY.sample(level, Random(f"hind/{level}"), 10)
    tapes = [FAMILY.tape(drawn, Random(seed)) for seed in range(10)]

    assert all(FAMILY.hindsight(drawn, tape) >= FAMILY.solved(drawn, tape) for tape in tapes)


def test_hindsight_is_the_best_tour_of_each_days_costs():
    flat = ((0, 5, 9), (5, 0, 4), (9, 4, 0))
    drawn = Routing(fees=(0, 12, 11), listed=flat, usual=flat, swing=3, scouting=1, laps=2, unit=1)
    tape = FAMILY.tape(drawn, Random(5))
    best = 0
    for extras in tape.extras:
        a, b, c = (usual + extra for usual, extra in zip((5, 9, 4), extras, strict=True))
        best += max(0, 12 - 2 * a, 11 - 2 * b, 23 - a - b - c)

    assert FAMILY.hindsight(drawn, tape) == best


def test_levels_get_harder():
    places = []
    for level in LEVELS:
        found = [FAMILY.expected(FAMILY.sample(level, Random(f"{level}/{k}"), 1)) for k in range(6)]
        places.append(mean(values["default"] / values["oracle"] for values in found))

    assert places == sorted(places, reverse=True)


@pytest.mark.parametrize("level", LEVELS)
def test_no_decision_depends_on_the_unit(level):
    one, seven = (FAMILY.sample(level, Random("unit"), unit) for unit in (1, 7))

    assert seven.fees == tuple(7 * fee for fee in one.fees)
    assert best_tour(seven.fees, seven.usual).stops == best_tour(one.fees, one.usual).stops


@pytest.mark.parametrize("level", LEVELS)
def test_a_leg_never_costs_nothing(level):
    drawn = FAMILY.sample(level, Random(f"cost/{level}"), 3)
    least = min(drawn.usual[a][b] for a in range(len(drawn.fees)) for b in range(a))

    assert least > drawn.swing * drawn.unit
