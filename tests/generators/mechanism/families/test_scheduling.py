from functools import cache
from itertools import combinations, permutations
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
    earliest_due,
    least_tardiness,
    moore_hodgson,
    smith,
    unknown,
    usual,
)
from envsynth.generators.mechanism.families.scheduling import (
    FLOW,
    SchedulingFamily,
    best_order,
    blind_utilities,
    with_longs,
)

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


@pytest.mark.parametrize(
    ("weights", "estimates", "longs"),
    [((3,), (9,), 1), ((3, 8), (12, 15), 1), ((4, 9, 5), (9, 18, 12), 2), ((4, 9, 5), (9, 18, 12), 1)],
)
def test_beliefs_are_valued_as_the_best_policy_does_over_all_outcomes(weights, estimates, longs):
    """Against a recursion over the sets of long jobs that are still possible, which adds up what is charged."""

    def hours(job, chosen):
        return estimates[job] * 2 if job in chosen else estimates[job] // 3

    def split(job, possible):
        halves = [[chosen for chosen in possible if (job in chosen) is is_long] for is_long in (False, True)]
        return [(len(half) / len(possible), tuple(half)) for half in halves if half]

    @cache
    def cost(hour, waiting, possible):
        options = []
        for job in waiting:
            rest, halves = waiting - {job}, split(job, possible)
            ends = [(chance, hour + hours(job, half[0]), half) for chance, half in halves]
            options.append(sum(chance * (weights[job] * end + cost(end, rest, half)) for chance, end, half in ends))
            if len(halves) > 1:
                options.append(sum(chance * cost(hour + INSPECTION, waiting, half) for chance, half in halves))
        return min(options, default=0.0)

    jobs = range(len(weights))
    found = cost(0, frozenset(jobs), tuple(frozenset(chosen) for chosen in combinations(jobs, longs)))

    assert belief_costs(weights, estimates, longs)[-1][-1] == pytest.approx(found)


def test_following_the_best_steps_costs_what_the_belief_is_worth():
    weights, estimates = (4, 9, 5, 6), (9, 18, 12, 15)
    charged = []
    for longs in combinations(range(4), 2):
        hour, total, belief, left = 0, 0, 4**4 - 1, 2
        while belief:
            job, inspect = best_step(weights, estimates, 2, belief, left)
            if belief >> 2 * job & 3 == UNKNOWN:
                left -= job in longs
            belief &= ~(3 << 2 * job)
            if inspect:
                hour += INSPECTION
                belief |= (LONG if job in longs else SHORT) << 2 * job
            else:
                hour += usual(estimates[job])[job in longs]
                total += weights[job] * hour
        charged.append(total)

    assert mean(charged) == pytest.approx(belief_costs(weights, estimates, 2)[-1][-1])


def test_knowing_is_worth_more_than_not_knowing():
    known, left = belief_costs((5, 7), (9, 18), 1)

    assert mean((known[LONG | SHORT << 2], known[SHORT | LONG << 2])) < left[UNKNOWN | UNKNOWN << 2]


def test_only_unknown_jobs_are_counted():
    assert [unknown(belief) for belief in (0, SHORT, LONG, UNKNOWN, UNKNOWN << 4 | LONG << 2 | UNKNOWN)] == [
        0, 0, 0, 1, 2,
    ]  # fmt: skip


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
    assert sum(time > estimate for time, estimate in zip(drawn.typical, drawn.estimates, strict=True)) == drawn.longs
    longest = sum(drawn.typical) + len(drawn.typical) * (drawn.swing + INSPECTION)

    assert longest <= drawn.horizon
    assert max(drawn.dues) < drawn.horizon
    assert min(drawn.typical) > drawn.swing


@pytest.mark.parametrize("level", LEVELS)
def test_times_are_drawn_from_the_stated_law(level):
    draws = [FAMILY.sample(level, Random(f"law/{number}"), 1) for number in range(200)]
    long = [[time > estimate for time, estimate in zip(one.typical, one.estimates, strict=True)] for one in draws]
    share = draws[0].longs / len(long[0])

    assert {sum(one) for one in long} == {draws[0].longs}
    assert all(abs(mean(one[job] for one in long) - share) < 0.15 for job in range(len(long[0])))
    for estimate in {time for one in draws for time in one.estimates}:
        seen = [is_long for one, row in zip(draws, long, strict=True)
                for time, is_long in zip(one.estimates, row, strict=True) if time == estimate]  # fmt: skip
        assert abs(mean(seen) - share) < 0.12


@pytest.mark.parametrize("level", LEVELS)
def test_who_does_not_inspect_does_not_come_near(level):
    """Every fixed order, in expectation over the stated law, between the default (0) and the reference (1)."""
    places = {}
    for number in range(4):
        drawn = FAMILY.sample(level, Random(f"blind/{number}"), 1)
        sets = list(combinations(range(len(drawn.typical)), drawn.longs))
        cases = [with_longs(drawn, longs) for longs in Random(1).sample(sets, min(20, len(sets)))]
        known = [FAMILY.expected(case) for case in cases]
        default = mean(one["default"] for one in known)
        reach = mean(one["bayes" if drawn.rule == FLOW else "oracle"] for one in known) - default
        for name in blind_utilities(drawn):
            utility = mean(blind_utilities(case)[name] for case in cases)
            places.setdefault(name, []).append((utility - default) / reach)

    assert "no_probing" in places
    assert max(map(mean, places.values())) < 0.75


def test_levels_get_harder():
    gaps = []
    for level in (1, 5):
        found = [FAMILY.expected(FAMILY.sample(level, Random(f"{level}/{k}"), 1)) for k in range(6)]
        gaps.append(mean((one["oracle"] - one["default"]) / (one["oracle"] - one["idle"]) for one in found))

    assert gaps == sorted(gaps)
