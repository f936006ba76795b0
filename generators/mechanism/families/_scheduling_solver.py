"""Exact solvers of `scheduling`: orders of jobs with known times, and steps where times have to be found out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

INSPECTION = 1
"""Hours that an inspection takes."""
_MODEST = 12
"""Largest of the estimates that are mostly overrun; the larger ones mostly are not reached."""
_MOSTLY = 0.8

Order = tuple[int, ...]
Hours = tuple[int, ...]
"""By job."""


def smith(weights: Sequence[int], times: Sequence[int]) -> Order:
    """Least weighted sum of completion hours: the shortest time for its weight first."""
    return tuple(sorted(range(len(times)), key=lambda job: (Fraction(times[job], weights[job]), job)))


def earliest_due(dues: Sequence[int]) -> Order:
    """Jackson's rule: least maximum tardiness."""
    return tuple(sorted(range(len(dues)), key=lambda job: (dues[job], job)))


def moore_hodgson(dues: Sequence[int], times: Sequence[int]) -> Order:
    """Fewest late jobs: by due hour; whenever one would be late, the longest so far is put off to the end."""
    kept: list[int] = []
    late: list[int] = []
    for job in earliest_due(dues):
        kept.append(job)
        if sum(times[one] for one in kept) > dues[job]:
            longest = max(kept, key=lambda one: (times[one], one))
            kept.remove(longest)
            late.append(longest)
    return (*kept, *late)


def least_tardiness(weights: Sequence[int], dues: Sequence[int], times: Sequence[int]) -> Order:
    """Least weighted tardiness: Held and Karp's recursion over the set of jobs done and the last of them."""
    count = len(times)
    total = [0] * (1 << count)
    cost = [0] * (1 << count)
    last = [0] * (1 << count)
    for done in range(1, 1 << count):
        low = done & -done
        end = total[done] = total[done ^ low] + times[low.bit_length() - 1]
        best, chosen, left = -1, 0, done
        while left:
            bit = left & -left
            left ^= bit
            job = bit.bit_length() - 1
            found = cost[done ^ bit] + (weights[job] * (end - dues[job]) if end > dues[job] else 0)
            if best < 0 or found < best:
                best, chosen = found, job
        cost[done], last[done] = best, chosen
    order: list[int] = []
    done = (1 << count) - 1
    while done:
        order.append(last[done])
        done ^= 1 << last[done]
    return tuple(reversed(order))


SHORT, LONG, UNKNOWN = 1, 2, 3
"""What is known of a job, two bits of a belief each; 0 once it is finished."""


def chance_long(estimate: int) -> float:
    """Chance that a job takes the double of its estimate, not a third of it."""
    return _MOSTLY if estimate <= _MODEST else 1 - _MOSTLY


class _Law(NamedTuple):
    """What is told of a job's time."""

    times: tuple[float, float, float]
    """Short, long, and the mean of the two: the time of a job known as SHORT, LONG, UNKNOWN."""
    long: float
    """Chance of the long time."""


@cache
def _law(estimate: int) -> _Law:
    short, long, chance = estimate / 3, 2.0 * estimate, chance_long(estimate)
    return _Law((short, long, chance * long + (1 - chance) * short), chance)


@lru_cache(maxsize=64)
def belief_costs(weights: tuple[int, ...], estimates: Hours) -> tuple[float, ...]:
    """Least expected weighted completion hours still to come, by belief; every step leads to a smaller belief."""
    costs = [0.0] * 4 ** len(weights)
    laws = [_law(estimate) for estimate in estimates]
    for belief in range(1, len(costs)):
        costs[belief] = min(_steps(weights, laws, costs, belief))[0]
    return tuple(costs)


def _steps(
    weights: Sequence[int], laws: Sequence[_Law], costs: Sequence[float], belief: int
) -> list[tuple[float, bool, int]]:
    """What can be done in a belief: expected cost, whether it is an inspection, and the job."""
    jobs = [(job, belief >> 2 * job & 3) for job in range(len(weights)) if belief >> 2 * job & 3]
    open_weight = sum(weights[job] for job, _ in jobs)
    found = []
    for job, known in jobs:
        shift, (times, chance) = 2 * job, laws[job]
        found.append((times[known - 1] * open_weight + costs[belief - (known << shift)], False, job))
        if known == UNKNOWN:
            long, short = costs[belief - (UNKNOWN - LONG << shift)], costs[belief - (UNKNOWN - SHORT << shift)]
            found.append((INSPECTION * open_weight + chance * long + (1 - chance) * short, True, job))
    return found


class Step(NamedTuple):
    """What a belief asks for."""

    job: int
    inspect: bool


def best_step(weights: tuple[int, ...], estimates: Hours, belief: int) -> Step:
    """The step of least expected cost; of equals a start before an inspection, then the lower number."""
    costs, laws = belief_costs(weights, estimates), [_law(estimate) for estimate in estimates]
    found = [(round(cost, 6), inspect, job) for cost, inspect, job in _steps(weights, laws, costs, belief)]
    _, inspect, job = min(found)
    return Step(job, inspect)
