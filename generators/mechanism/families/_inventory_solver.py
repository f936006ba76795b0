"""Exact solutions of the stock control of `inventory`: (s, S) for a known law, its Bayes version, and hindsight.

Demand of a day is binomial, unmet demand waits, and an order of day t can first serve the end of day t + delay. So the
state is the inventory position (stock, less what is owed, plus what is on its way), and an order that raises it to y
on day t settles the expected cost of day t + delay (Scarf 1960). Days count from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

_CLOSE = 1e-9
"""Costs that differ by less are equal; then nothing is ordered."""
_NEVER = -1000

Rules = list[tuple[int, int]]
"""By day: at or below the first, order up to the second."""


@dataclass(frozen=True)
class Stock:
    """What everybody is told; money in whole units."""

    days: int
    customers: int
    delay: int
    """Days from order to delivery."""
    room: int
    """Most that the position may ever be."""
    start: int
    fixed: int
    """Cost of an order, whatever its size."""
    cost: int
    """Cost of a piece ordered."""
    hold: int
    """Cost of a piece left at the end of a day."""
    wait: int
    """Cost of a piece owed at the end of a day."""
    rush: int
    """Further cost of a piece owed at the end of the last day."""
    chances: tuple[int, ...]
    """What a customer's daily chance may be, in percent; each equally likely."""

    @property
    def floor(self) -> int:
        """A position at or below which ordering is best on every day on which it can still arrive.

        Waiting one day more with -F owed costs `wait` apiece, and saves one fixed cost at most; on the last such day
        not ordering costs `wait + rush - cost` apiece.
        """
        slope = min(self.wait, self.wait + self.rush - self.cost)
        return -(self.fixed // slope) - 1

    def charge(self, day: int, level: int) -> int:
        """What the end of a day costs."""
        if level >= 0:
            return self.hold * level
        return -level * (self.wait + (self.rush if day == self.days - 1 else 0))


@lru_cache(maxsize=512)
def odds(customers: int, chance: int) -> tuple[float, ...]:
    """Chances of 0, 1, ... units on a day, `chance` in percent."""
    share = chance / 100
    return tuple(comb(customers, k) * share**k * (1 - share) ** (customers - k) for k in range(customers + 1))


@lru_cache(maxsize=512)
def base_stock(stock: Stock, chance: int) -> Rules:
    """The optimal (s, S) of each day for a known chance (Scarf 1960, by backward induction).

    Costs of ordering are those of the position, `fixed + cost * quantity`; at equal cost nothing is ordered.
    """
    one, window = odds(stock.customers, chance), odds(stock.customers * (stock.delay + 1), chance)
    last, floor = stock.days - stock.delay, stock.floor
    rules: Rules = [(_NEVER, 1)] * stock.days
    value = _Value(floor, [0.0] * (stock.room - floor + 1), 0)
    for day in range(last - 1, -1, -1):
        then = [
            sum(share * stock.charge(day + stock.delay, position - wanted) for wanted, share in enumerate(window))
            + sum(share * value.at(position - wanted) for wanted, share in enumerate(one))
            for position in range(floor, stock.room + 1)
        ]
        value, rules[day] = _ordered(stock, then)
    return rules


@dataclass(frozen=True)
class _Value:
    """Cost to go by position: a table, and below it a line."""

    floor: int
    table: list[float]
    slope: float

    def at(self, position: int) -> float:
        if position >= self.floor:
            return self.table[position - self.floor]
        return self.table[0] + self.slope * (self.floor - position)


def _ordered(stock: Stock, then: Sequence[float]) -> tuple[_Value, tuple[int, int]]:
    """Value and (s, S) from the cost `then` by position after ordering."""
    floor = stock.floor
    raised = [cost + stock.cost * number for number, cost in enumerate(then)]
    high = min(range(len(raised)), key=lambda number: (raised[number] > min(raised) + _CLOSE, number))
    ordering = stock.fixed + raised[high]
    table, low = list(then), _NEVER
    for number, cost in enumerate(then[:high]):
        price = ordering - stock.cost * number
        if price < cost - _CLOSE:
            table[number], low = price, floor + number
    return _Value(floor, table, stock.cost), (low, floor + high)


@lru_cache(maxsize=4096)
def _posterior(chances: tuple[int, ...], trials: int, seen: int) -> tuple[float, ...]:
    """Chances of the laws after `seen` units in `trials` customers' days."""
    likelihoods = [(c / 100) ** seen * (1 - c / 100) ** (trials - seen) for c in chances]
    return tuple(one / sum(likelihoods) for one in likelihoods)


@lru_cache(maxsize=4096)
def _predicted(chances: tuple[int, ...], trials: int, seen: int, ahead: int) -> tuple[float, ...]:
    """Chances of the units of the next `ahead` customers' days together."""
    laws = [odds(ahead, chance) for chance in chances]
    return tuple(
        sum(weight * law[wanted] for weight, law in zip(_posterior(chances, trials, seen), laws, strict=True))
        for wanted in range(ahead + 1)
    )


@lru_cache(maxsize=16)
def _bayes_rules(stock: Stock) -> list[list[tuple[int, int]]]:
    """The optimal (s, S) by day and units seen, under the uniform prior (Scarf 1959)."""
    floor, positions = stock.floor, stock.room - stock.floor + 1
    below = stock.customers * (stock.delay + 1)
    last = stock.days - stock.delay
    values = [[0.0] * (positions + stock.customers) for _ in range(stock.customers * last + 1)]
    rules: list[list[tuple[int, int]]] = []
    for day in range(last - 1, -1, -1):
        charges = [float(stock.charge(day + stock.delay, level)) for level in range(floor - below, stock.room + 1)]
        found, current = [], []
        for seen in range(stock.customers * day + 1):
            window = _predicted(stock.chances, stock.customers * day, seen, below)
            one = _predicted(stock.chances, stock.customers * day, seen, stock.customers)
            then = [0.0] * positions
            for wanted, share in enumerate(window):
                then = [a + share * b for a, b in zip(then, charges[below - wanted :], strict=False)]
            for wanted, share in enumerate(one):
                after = values[seen + wanted][stock.customers - wanted :]
                then = [a + share * b for a, b in zip(then, after, strict=False)]
            value, rule = _ordered(stock, then)
            found.append(rule)
            current.append([value.at(floor - k) for k in range(stock.customers, 0, -1)] + value.table)
        values = current
        rules.insert(0, found)
    return rules


def bayes_target(stock: Stock, day: int, position: int, seen: int) -> int:
    """The position that the best uninformed player orders up to, `seen` units having been asked for."""
    if day >= stock.days - stock.delay:
        return position
    low, high = _bayes_rules(stock)[day][seen]
    return max(position, high) if position <= low else position


def expected_cost(stock: Stock, chance: int, target: Callable[[int, int, int], int], *, counts: bool = False) -> float:
    """Expected cost of a policy given the law.

    Args:
        stock: what is known.
        chance: of a customer on a day, in percent.
        target: position to order up to, from day, position and units seen.
        counts: whether the policy looks at the units seen; else they are left at 0.
    """
    one, window = odds(stock.customers, chance), odds(stock.customers * (stock.delay + 1), chance)
    total = sum(
        share * stock.charge(day, stock.start - wanted)
        for day in range(stock.delay)
        for wanted, share in enumerate(odds(stock.customers * (day + 1), chance))
    )
    states = {(stock.start, 0): 1.0}
    for day in range(stock.days - stock.delay):
        raised: dict[tuple[int, int], float] = {}
        levels: dict[int, float] = {}
        for (position, seen), share in states.items():
            high = target(day, position, seen)
            if high > position:
                total += share * (stock.fixed + stock.cost * (high - position))
            levels[high] = levels.get(high, 0.0) + share
            raised[high, seen] = raised.get((high, seen), 0.0) + share
        total += sum(
            share * odd * stock.charge(day + stock.delay, level - wanted)
            for level, share in levels.items()
            for wanted, odd in enumerate(window)
        )
        states = {}
        for (position, seen), share in raised.items():
            for wanted, odd in enumerate(one):
                after = (position - wanted, seen + wanted if counts else 0)
                states[after] = states.get(after, 0.0) + share * odd
    return total


def realised_cost(stock: Stock, rules: Rules, demands: Sequence[int]) -> int:
    """Cost of (s, S) rules on realised demands."""
    total, level, position = 0, stock.start, stock.start
    due: dict[int, int] = {}
    for day, wanted in enumerate(demands):
        level += due.pop(day, 0)
        low, high = rules[day]
        quantity = high - position if position <= low and position < high else 0
        if quantity:
            total += stock.fixed + stock.cost * quantity
            position += quantity
            due[day + stock.delay] = quantity
        level += due.pop(day, 0)
        level, position = level - wanted, position - wanted
        total += stock.charge(day, level)
    return total


def best_in_hindsight(stock: Stock, demands: Sequence[int]) -> int:
    """The least cost, demands known: the lot sizes of Wagner and Whitin 1958, with backlog, by position."""
    last = stock.days - stock.delay
    lowest = stock.start - sum(demands)
    positions = range(lowest, stock.room + 1)
    best = [0] * len(positions)
    for day in range(last - 1, -1, -1):
        window = sum(demands[day : day + stock.delay + 1])
        then = [
            stock.charge(day + stock.delay, position - window) + best[max(0, position - demands[day] - lowest)]
            for position in positions
        ]
        best, cheapest = list(then), then[-1] + stock.cost * (len(then) - 1)
        for number in range(len(then) - 1, -1, -1):
            best[number] = min(then[number], stock.fixed + cheapest - stock.cost * number)
            cheapest = min(cheapest, then[number] + stock.cost * number)
    before = sum(stock.charge(day, stock.start - sum(demands[: day + 1])) for day in range(stock.delay))
    return before + best[stock.start - lowest]
