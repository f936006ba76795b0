"""Exact solvers of `stopping`: several lots, offers that lapse, a price for every look.

Known market: dynamic programme over days and lots (Chow, Robbins and Siegmund 1971; several choices: Derman, Lieberman
and Ross 1972). By rank: relative ranks are independent and uniform (Lindley 1961). Unknown market: the same over
beliefs; the sum of the grades seen is sufficient, since laws are tilts of one another. Unknown number of offers:
Presman and Sonin 1972.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from math import comb, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bars = Mapping[tuple[int, int], int]
"""By (day, lots left): the worst offer to accept on that day; no entry: do not look."""
Values = Sequence[Sequence[float]]
"""By days gone and lots left: expectation of the best play from there on."""
Array = NDArray[np.float64]
STOP, LOOK, STUDY = 0, 1, 2


class Arrival(NamedTuple):
    """One offer that a day may bring."""

    shown: int
    chance: float
    pays: float
    """In expectation, once it is accepted."""


class Market(NamedTuple):
    """What a player knows who knows the parameters."""

    days: tuple[tuple[Arrival, ...], ...]
    """By day, best offer first."""
    lots: int
    cost: int
    by_rank: bool
    """Whether a lower number is a better offer."""

    def takes(self, bar: int, shown: int) -> bool:
        """Whether an offer is good enough."""
        return shown <= bar if self.by_rank else shown >= bar


def law_market(pays: Sequence[int], law: Sequence[int], looks: int, lots: int, cost: int) -> Market:
    """Grades drawn every day from one law, given as weights."""
    grades = range(len(pays) - 1, -1, -1)
    day = tuple(Arrival(grade, law[grade] / sum(law), pays[grade]) for grade in grades)
    return Market((day,) * looks, lots, cost, by_rank=False)


@lru_cache(maxsize=32)
def rank_market(pays: tuple[int, ...], offers: int, lots: int, cost: int) -> Market:
    """A known number of offers in random order, of which only the place among those so far is seen."""
    days = tuple(
        tuple(Arrival(place, 1 / day, rank_pay(pays, offers, day, place)) for place in range(1, day + 1))
        for day in range(1, offers + 1)
    )
    return Market(days, lots, cost, by_rank=True)


def rank_pay(pays: tuple[int, ...], offers: int, day: int, place: int) -> float:
    """Expected pay of an offer that is in this place among the first `day` of all offers."""
    return sum(pay * final_chance(offers, day, place, final) for final, pay in enumerate(pays, 1))


@cache
def final_chance(offers: int, day: int, place: int, final: int) -> float:
    """Chance that the offer in this place among the first `day` ends in place `final` among all."""
    if not place <= final <= offers - day + place:
        return 0.0
    return comb(final - 1, place - 1) * comb(offers - final, day - place) / comb(offers, day)


def values(market: Market) -> Values:
    """Backward induction."""
    found = [[0.0] * (market.lots + 1)]
    for day in reversed(market.days):
        after = found[-1]
        row = [0.0]
        for left in range(1, market.lots + 1):
            hope = sum(one.chance * max(one.pays + after[left - 1], after[left]) for one in day)
            row.append(max(0.0, hope - market.cost))
        found.append(row)
    return found[::-1]


def best_bars(market: Market) -> Bars:
    """The optimal policy."""
    found = values(market)
    bars = {}
    for number, day in enumerate(market.days, 1):
        nothing = 0 if market.by_rank else day[0].shown + 1
        for left in range(1, market.lots + 1):
            if found[number - 1][left] > 0:
                waiting = found[number][left] - found[number][left - 1]
                taken = [one.shown for one in day if one.pays >= waiting]
                bars[number, left] = taken[-1] if taken else nothing
    return bars


def worth(market: Market, bars: Bars) -> float:
    """Expectation of a policy; a look after the last offer of all costs its price and ends it."""
    end = len(market.days) + 1
    after = [0.0] + [-float(market.cost) if (end, left) in bars else 0.0 for left in range(1, market.lots + 1)]
    for number in range(len(market.days), 0, -1):
        row = [0.0]
        for left in range(1, market.lots + 1):
            total = 0.0
            if (number, left) in bars:
                bar = bars[number, left]
                total = -market.cost + sum(
                    one.chance * (one.pays + after[left - 1] if market.takes(bar, one.shown) else after[left])
                    for one in market.days[number - 1]
                )
            row.append(total)
        after = row
    return after[market.lots]


class LawBelief:
    """Best play where each of several laws is equally likely at first, by exact dynamic programming over beliefs."""

    def __init__(
        self, pays: Sequence[int], laws: Sequence[Sequence[int]], looks: int, lots: int, costs: tuple[int, int],
        studies: tuple[int, int],
    ) -> None:  # fmt: skip
        """Solve.

        Args:
            pays: by grade.
            laws: weights of the grades, each law a tilt of the others: ratios are powers of one number by grade.
            looks: days.
            lots: to sell.
            costs: of a look and of a study.
            studies: how many are allowed, and how many grades each shows.
        """
        self._pays, self._looks, self._lots = pays, looks, lots
        self._costs, self._most, self._shows = costs, *studies
        self._laws = np.array([[weight / sum(law) for weight in law] for law in laws])
        # Log-likelihood of a history against the first law: linear in the sum of grades and in their number.
        self._slope = np.array([log(law[1] * laws[0][0] / (law[0] * laws[0][1])) for law in laws])
        self._shift = np.log(self._laws[:, 0] / self._laws[0, 0])
        self._sums = np.array([self._sum_law(law) for law in self._laws])
        self._value: dict[tuple[int, int], Array] = {}
        self._act: dict[tuple[int, int], NDArray[np.int64]] = {}
        for day in range(looks, -1, -1):
            for studied in range(min(day, self._most) + 1):
                self._solve(day, studied)

    @property
    def value(self) -> float:
        """Expectation under the prior."""
        return float(self._value[0, 0][self._lots, 0])

    def act(self, day: int, left: int, studied: int, seen: int) -> int:
        """What to do after `day` days with grades that sum to `seen`."""
        return int(self._act[day, studied][left, seen])

    def takes(self, day: int, left: int, studied: int, seen: int, grade: int) -> bool:
        """Whether to accept the offer of this day; `seen` counts it."""
        value = self._value[day, studied][:, seen]
        return bool(self._pays[grade] + value[left - 1] >= value[left])

    def worth(self, truth: int) -> float:
        """Expectation of this play where one law is true."""
        start = np.zeros((self._lots + 1, 1))
        start[self._lots, 0] = 1.0
        masses, total = {0: start}, 0.0
        for day in range(self._looks):
            following: dict[int, Array] = {}
            for studied, mass in masses.items():
                acts = self._act[day, studied]
                following.setdefault(studied, np.zeros_like(self._value[day + 1, studied]))
                total += self._looked(truth, np.where(acts == LOOK, mass, 0.0), following[studied], (day + 1, studied))
                studying = np.where(acts == STUDY, mass, 0.0)
                if studying.any():
                    total -= self._costs[1] * float(studying.sum())
                    after = np.zeros_like(self._value[day + 1, studied + 1])
                    for more, share in enumerate(self._sums[truth]):
                        after[:, more : more + studying.shape[1]] += share * studying
                    following[studied + 1] = following.get(studied + 1, 0.0) + after
            masses = following
        return total

    def _looked(self, truth: int, looking: Array, after: Array, then: tuple[int, int]) -> float:
        """What a look gains by lots left and grades seen, with its chance; adds the chances of what follows."""
        value, length = self._value[then], looking.shape[1]
        gained = -self._costs[0] * float(looking.sum())
        for grade, share in enumerate(self._laws[truth]):
            window = slice(grade, grade + length)
            taken = self._pays[grade] + value[:-1, window] >= value[1:, window]
            sold = np.where(taken, share * looking[1:], 0.0)
            gained += self._pays[grade] * float(sold.sum())
            after[1:, window] += share * looking[1:] - sold
            after[:-1, window] += sold
        return gained

    def _sum_law(self, law: Array) -> Array:
        found = np.ones(1)
        for _ in range(self._shows):
            found = np.convolve(found, law)
        return found

    def _beliefs(self, observed: int, length: int) -> Array:
        """Chance of each law, by sum of grades."""
        logs = np.outer(np.arange(length), self._slope) + observed * self._shift
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _solve(self, day: int, studied: int) -> None:
        observed = day + (self._shows - 1) * studied
        length = observed * (len(self._pays) - 1) + 1
        shape = (self._lots + 1, length)
        options = np.zeros((3, *shape))
        options[1:] = -np.inf
        if day < self._looks:
            beliefs = self._beliefs(observed, length)
            options[LOOK, 1:] = self._look(beliefs @ self._laws, self._value[day + 1, studied])
            if studied < self._most:
                options[STUDY, 1:] = self._study(beliefs @ self._sums, self._value[day + 1, studied + 1])
        self._act[day, studied] = options.argmax(axis=0)
        self._value[day, studied] = options.max(axis=0)

    def _look(self, chances: Array, after: Array) -> Array:
        length = len(chances)
        total = np.full((self._lots, length), -float(self._costs[0]))
        for grade, pay in enumerate(self._pays):
            then = after[:, grade : grade + length]
            total += chances[:, grade] * np.maximum(pay + then[:-1], then[1:])
        return total

    def _study(self, chances: Array, after: Array) -> Array:
        length = len(chances)
        total = np.full((self._lots, length), -float(self._costs[1]))
        for more in range(chances.shape[1]):
            total += chances[:, more] * after[1:, more : more + length]
        return total


class RankBelief:
    """Best play by rank where each of several numbers of offers is equally likely at first."""

    def __init__(
        self, pays: tuple[int, ...], numbers: Sequence[int], lots: int, look_cost: int, study_cost: int
    ) -> None:
        """Solve.

        Args:
            pays: by final place.
            numbers: how many offers there may be, ascending.
            lots: to sell.
            look_cost: of a look.
            study_cost: of learning the number of offers.
        """
        self._pays, self._all, self._lots = pays, numbers, lots
        self._look_cost, self._study_cost = look_cost, study_cost
        self.markets = {number: rank_market(pays, number, lots, look_cost) for number in numbers}
        self._known = {number: values(market) for number, market in self.markets.items()}
        self._value = [[0.0] * (lots + 1)]
        self._act = [[STOP] * (lots + 1)]
        for day in range(numbers[-1] - 1, -1, -1):
            row = [self._options(day, left) for left in range(lots + 1)]
            self._value.insert(0, [max(options) for options in row])
            self._act.insert(0, [options.index(max(options)) for options in row])

    @property
    def value(self) -> float:
        """Expectation under the prior."""
        return self._value[0][self._lots]

    def act(self, day: int, left: int) -> int:
        """What to do after `day` offers while their number is not known."""
        return self._act[day][left]

    def takes(self, day: int, left: int, place: int) -> bool:
        """Whether to accept the offer of this day."""
        return self._pay(day, place) + self._value[day][left - 1] >= self._value[day][left]

    def worth(self, truth: int) -> float:
        """Expectation of this play where the number of offers is `truth`."""
        prices = {STOP: 0, LOOK: self._look_cost, STUDY: self._study_cost}
        after = [0.0] + [-float(prices[self._act[truth][left]]) for left in range(1, self._lots + 1)]
        for day in range(truth - 1, -1, -1):
            after = [self._worth(truth, day, left, after) for left in range(self._lots + 1)]
        return after[self._lots]

    def _worth(self, truth: int, day: int, left: int, after: list[float]) -> float:
        act = self._act[day][left] if left else STOP
        if act == STOP:
            return 0.0
        if act == STUDY:
            return self._known[truth][day][left] - self._study_cost
        total = -float(self._look_cost)
        for one in self.markets[truth].days[day]:
            taken = self.takes(day + 1, left, one.shown)
            total += one.chance * (one.pays + after[left - 1] if taken else after[left])
        return total

    def _numbers(self, day: int) -> list[int]:
        """Numbers of offers that are possible once `day` have come."""
        return [number for number in self._all if number >= day]

    def _pay(self, day: int, place: int) -> float:
        numbers = self._numbers(day)
        return sum(self.markets[number].days[day - 1][place - 1].pays for number in numbers) / len(numbers)

    def _options(self, day: int, left: int) -> tuple[float, float, float]:
        """Expectation of stopping, looking and studying after `day` offers."""
        if not left:
            return 0.0, -np.inf, -np.inf
        after = self._value[0]
        comes = len(self._numbers(day + 1)) / len(self._numbers(day))
        hope = sum(
            max(self._pay(day + 1, place) + after[left - 1], after[left]) for place in range(1, day + 2)
        ) / (day + 1)  # fmt: skip
        known = [self._known[number][day][left] for number in self._numbers(day)]
        return 0.0, comes * hope - self._look_cost, sum(known) / len(known) - self._study_cost
