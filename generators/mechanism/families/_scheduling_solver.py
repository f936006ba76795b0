"""Exact solvers of `scheduling`: orders of jobs with known times, and steps where times have to be found out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

INSPECTION = 1
"""Hours that an inspection takes."""

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


class Usual(NamedTuple):
    """The two times that a job may take."""

    short: int
    long: int


def usual(estimate: int) -> Usual:
    """A third of the estimate, which is a multiple of 3, or its double."""
    return Usual(estimate // 3, 2 * estimate)


@lru_cache(maxsize=64)
def belief_costs(weights: tuple[int, ...], estimates: Hours, longs: int) -> tuple[tuple[float, ...], ...]:
    """Least expected weighted completion hours still to come.

    Every choice of the long jobs among all is equally likely, so that of the unknown ones every choice still is.

    Args:
        weights: by job.
        estimates: by job.
        longs: how many of all jobs are long.

    Returns:
        By how many of the unknown jobs are long, then by belief; 0 where the belief has fewer unknown ones.
    """
    costs = [[0.0] * 4 ** len(weights) for _ in range(longs + 1)]
    times = [usual(estimate) for estimate in estimates]
    # Every step leads to a smaller belief.
    for belief in range(1, len(costs[0])):
        for left in range(min(longs, unknown(belief)) + 1):
            costs[left][belief] = min(_steps(weights, times, costs, belief, left))[0]
    return tuple(map(tuple, costs))


def unknown(belief: int) -> int:
    """How many jobs are unknown."""
    return (belief & belief >> 1 & 0x5555555555555555).bit_count()


def _steps(
    weights: Sequence[int], times: Sequence[Usual], costs: Sequence[Sequence[float]], belief: int, left: int
) -> list[tuple[float, bool, int]]:
    """What can be done: expected cost, whether it is an inspection, and the job; `left` unknown jobs are long."""
    jobs = [(job, belief >> 2 * job & 3) for job in range(len(weights)) if belief >> 2 * job & 3]
    open_weight = sum(weights[job] for job, _ in jobs)
    chance = left / max(1, unknown(belief))
    now, fewer = costs[left], costs[max(0, left - 1)]
    found = []
    for job, known in jobs:
        shift, (short, long) = 2 * job, times[job]
        done = belief - (known << shift)
        if known != UNKNOWN:
            found.append(((short if known == SHORT else long) * open_weight + now[done], False, job))
            continue
        started = chance * (long * open_weight + fewer[done]) + (1 - chance) * (short * open_weight + now[done])
        seen = chance * fewer[done | LONG << shift] + (1 - chance) * now[done | SHORT << shift]
        found.append((started, False, job))
        found.append((INSPECTION * open_weight + seen, True, job))
    return found


class Step(NamedTuple):
    """What a belief asks for."""

    job: int
    inspect: bool


def best_step(weights: tuple[int, ...], estimates: Hours, longs: int, belief: int, left: int) -> Step:
    """The step of least expected cost; of equals a start before an inspection, then the lower number.

    Args:
        weights: by job.
        estimates: by job.
        longs: how many of all jobs are long.
        belief: what is known of each job.
        left: how many of the unknown jobs are long.
    """
    costs, times = belief_costs(weights, estimates, longs), [usual(estimate) for estimate in estimates]
    found = [(round(cost, 6), inspect, job) for cost, inspect, job in _steps(weights, times, costs, belief, left)]
    _, inspect, job = min(found)
    return Step(job, inspect)
