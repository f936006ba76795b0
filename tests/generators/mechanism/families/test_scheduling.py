from functools import cache
from itertools import permutations, product
from random import Random
from statistics import mean

import pytest

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families._scheduling_solver import (
    INSPECTION,
    LONG,
    SHORT,
    UNKNOWN,
    belief_costs,
    best_step,
    chance_long,
    earliest_due,
    least_tardiness,
    moore_hodgson,
    smith,
)
from envsynth.generators.mechanism.families.scheduling import SchedulingFamily, best_order

FAMILY = SchedulingFamily()


def ends(order, times):
    hour, found = 0, {}
    for job in order:
        hour += times[job]
        found[job] = hour
    return found


def weighted_completion(order, weights, times):
    return sum(weights[job] * end for job, end in ends(order, times).items())


def late_jobs(order, dues, times):
    return sum(end > dues[job] for job, end in ends(order, times).items())


def weighted_tardiness(order, weights, dues, times):
    return sum(weights[job] * max(0, end - dues[job]) for job, end in ends(order, times).items())


def drawn_jobs(seed):
    rng = Random(seed)
    count = rng.randint(1, 6)
    times = [rng.randint(1, 9) for _ in range(count)]
    dues = [rng.randint(1, sum(times)) for _ in range(count)]
    return [rng.randint(1, 9) for _ in range(count)], dues, times


@pytest.mark.parametrize("seed", range(10))
def test_each_rule_is_the_best_of_all_orders(seed):
    weights, dues, times = drawn_jobs(seed)
    orders = list(permutations(range(len(times))))

    assert weighted_completion(smith(weights, times), weights, times) == min(
        weighted_completion(order, weights, times) for order in orders
    )
    assert late_jobs(moore_hodgson(dues, times), dues, times) == min(late_jobs(order, dues, times) for order in orders)
    assert weighted_tardiness(least_tardiness(weights, dues, times), weights, dues, times) == min(
        weighted_tardiness(order, weights, dues, times) for order in orders
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_earliest_due_order_has_the_least_maximum_tardiness(seed):
    _, dues, times = drawn_jobs(seed)

    def worst(order):
        return max(end - dues[job] for job, end in ends(order, times).items())

    assert worst(earliest_due(dues)) == min(map(worst, permutations(range(len(times)))))


def test_every_rule_starts_every_job_once():
    weights, dues, times = [3, 1, 2], [1, 1, 9], [4, 4, 4]

    for order in (smith(weights, times), moore_hodgson(dues, times), least_tardiness(weights, dues, times)):
        assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize(("weights", "estimates"), [((3,), (9,)), ((3, 8), (12, 15)), ((4, 9, 5), (9, 18, 12))])
def test_beliefs_are_valued_as_the_best_policy_does_over_all_outcomes(weights, estimates):
    """Against a recursion over what is known of each job by name, that adds up what is charged outcome by outcome."""

    def spread(estimate):
        chance = chance_long(estimate)
        return ((estimate / 3, 1 - chance), (2.0 * estimate, chance))

    @cache
    def cost(hour, known):
        options = []
        for job, times in known:
            rest = tuple(one for one in known if one[0] != job)
            options.append(sum(chance * (weights[job] * (hour + t) + cost(hour + t, rest)) for t, chance in times))
            if len(times) > 1:
                seen = [(chance, tuple(sorted((*rest, (job, ((t, 1.0),)))))) for t, chance in times]
                options.append(sum(chance * cost(hour + INSPECTION, one) for chance, one in seen))
        return min(options, default=0.0)

    start = tuple((job, spread(estimate)) for job, estimate in enumerate(estimates))

    assert belief_costs(weights, estimates)[-1] == pytest.approx(cost(0, start))


def test_following_the_best_steps_costs_what_the_belief_is_worth():
    weights, estimates = (4, 9, 5, 6), (9, 18, 12, 15)
    total = 0.0
    for longs in product((False, True), repeat=4):
        chance, hour, charged, belief = 1.0, 0.0, 0.0, 4**4 - 1
        for estimate, long in zip(estimates, longs, strict=True):
            chance *= chance_long(estimate) if long else 1 - chance_long(estimate)
        while belief:
            job, inspect = best_step(weights, estimates, belief)
            belief &= ~(3 << 2 * job)
            if inspect:
                hour += INSPECTION
                belief |= (LONG if longs[job] else SHORT) << 2 * job
            else:
                hour += estimates[job] * 2 if longs[job] else estimates[job] / 3
                charged += weights[job] * hour
        total += chance * charged

    assert total == pytest.approx(belief_costs(weights, estimates)[-1])


def test_knowing_is_worth_more_than_not_knowing():
    costs = belief_costs((5, 7), (9, 18))
    first, second = (chance_long(estimate) for estimate in (9, 18))

    known = sum(
        (first if a == LONG else 1 - first) * (second if b == LONG else 1 - second) * costs[a | b << 2]
        for a, b in product((SHORT, LONG), repeat=2)
    )

    assert known < costs[UNKNOWN | UNKNOWN << 2]


def test_the_expectation_is_the_mean_over_tapes():
    drawn = FAMILY.sample(2, Random("mean"), 10)
    utilities = [FAMILY.solved(drawn, FAMILY.tape(drawn, Random(seed))) for seed in range(400)]
    spread = drawn.swing * sum(drawn.charges) * len(drawn.charges) ** 0.5

    assert abs(mean(utilities) - FAMILY.expected(drawn)["oracle"]) <= 4 * spread / len(utilities) ** 0.5


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_beats_hindsight(level):
    drawn = FAMILY.sample(level, Random(f"hind/{level}"), 10)
    tapes = [FAMILY.tape(drawn, Random(seed)) for seed in range(5)]

    assert all(FAMILY.hindsight(drawn, tape) >= FAMILY.solved(drawn, tape) for tape in tapes)


@pytest.mark.parametrize("level", [1, 3, 4])
def test_no_decision_depends_on_the_unit(level):
    one, seven = (FAMILY.sample(level, Random("unit"), unit) for unit in (1, 7))

    assert seven.charges == tuple(7 * charge for charge in one.charges)
    assert best_order(one) == best_order(seven)


@pytest.mark.parametrize("level", LEVELS)
def test_all_jobs_and_an_inspection_of_each_fit_before_the_end(level):
    drawn = FAMILY.sample(level, Random(f"hind/{level}"), 10)
    longest = sum(drawn.typical) + len(drawn.typical) * (drawn.swing + INSPECTION)

    assert longest <= drawn.horizon
    assert max(drawn.dues) < drawn.horizon
    assert min(drawn.typical) > drawn.swing


def test_levels_get_harder():
    gaps = []
    for level in (1, 5):
        found = [FAMILY.expected(FAMILY.sample(level, Random(f"{level}/{k}"), 1)) for k in range(6)]
        gaps.append(mean((one["oracle"] - one["default"]) / (one["oracle"] - one["idle"]) for one in found))

    assert gaps == sorted(gaps)
