"""Exact solutions of `pricing`: a price table for a known market, a belief programme for an unknown one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul, sub

_CLOSE = 1e-9
"""Values that differ by less are equal; then the lowest price is asked."""

Curve = tuple[int, ...]
"""Chance of a sale at each price, in percent."""
Counts = tuple[tuple[int, int], ...]
"""Sales and refusals at each price."""
Season = tuple[tuple[int, ...], int, int]
"""Prices, days and stock."""
PriceTable = tuple[tuple[int, ...], ...]
"""Index of the price to ask, by day (from 0) and stock left."""


@lru_cache(maxsize=1024)
def _solve(season: Season, curve: Curve) -> tuple[tuple[tuple[float, ...], ...], PriceTable]:
    """Backward induction (Gallego and van Ryzin 1994): values and prices by day and stock left."""
    prices, days, stock = season
    values: list[tuple[float, ...]] = [(0.0,) * (stock + 1)]
    tables: list[tuple[int, ...]] = []
    for _ in range(days):
        then, now, asked = values[0], [0.0], [0]
        for left in range(1, stock + 1):
            gains = [
                chance / 100 * (price + then[left - 1] - then[left])
                for price, chance in zip(prices, curve, strict=True)
            ]
            choice = next(number for number, gain in enumerate(gains) if gain >= max(gains) - _CLOSE)
            now.append(then[left] + gains[choice])
            asked.append(choice)
        values.insert(0, tuple(now))
        tables.insert(0, tuple(asked))
    return tuple(values), tuple(tables)


def price_table(season: Season, curve: Curve) -> PriceTable:
    """The best prices for a known curve."""
    return _solve(season, curve)[1]


def table_value(season: Season, curve: Curve, table: PriceTable) -> float:
    """Expected takings of a price table."""
    prices, _, stock = season
    then = [0.0] * (stock + 1)
    for asked in reversed(table):
        sold = [curve[price] / 100 for price in asked]
        then = [0.0] + [
            sold[left] * (prices[asked[left]] + then[left - 1]) + (1 - sold[left]) * then[left]
            for left in range(1, stock + 1)
        ]
    return then[stock]


def best_value(season: Season, curve: Curve) -> float:
    """Expected takings of the best prices for a known curve."""
    return _solve(season, curve)[0][0][season[2]]


def expected_takings(season: Season, curve: Curve, choose: Callable[[Counts], int]) -> float:
    """Expected takings of a policy that looks at sales and refusals so far."""
    prices, days, stock = season
    beliefs: dict[Counts, float] = {((0, 0),) * len(prices): 1.0}
    total = 0.0
    for _ in range(days):
        following: dict[Counts, float] = {}
        for counts, share in beliefs.items():
            price = choose(counts)
            sold = share * curve[price] / 100
            total += sold * prices[price]
            won, lost = after(counts, price, 1), after(counts, price, 0)
            if sum(sales for sales, _ in won) < stock:
                following[won] = following.get(won, 0.0) + sold
            following[lost] = following.get(lost, 0.0) + share - sold
        beliefs = following
    return total


def after(counts: Counts, price: int, sold: int) -> Counts:
    """Sales and refusals after one more visitor at a price."""
    sales, refusals = counts[price]
    return (*counts[:price], (sales + sold, refusals + 1 - sold), *counts[price + 1 :])


class BeliefProgramme:
    """The best uninformed player under a uniform prior over kinds.

    Values are weighted with the chance of what was seen, so that no belief need be normalised. Sales and refusals are
    kept as digits of one number, to the base `days + 1`.
    """

    def __init__(self, season: Season, kinds: Sequence[Curve]) -> None:
        """A programme for one season.

        Args:
            season: prices, days and stock.
            kinds: the curves, each equally likely.
        """
        self._prices, self._days, self._stock = season
        self._sold = [[curve[price] / 100 for curve in kinds] for price in range(len(self._prices))]
        self._kinds = len(kinds)
        self._steps = [((self._days + 1) ** (2 * price), (self._days + 1) ** (2 * price + 1))
                       for price in range(len(self._prices))]  # fmt: skip
        self._values: dict[int, tuple[float, int]] = {}

    def best(self, counts: Counts) -> int:
        """Index of the price to ask after these sales and refusals."""
        key = sum(
            sales * sale + refusals * refusal
            for (sales, refusals), (sale, refusal) in zip(counts, self._steps, strict=True)
        )
        tried, sold = sum(map(sum, counts)), sum(sales for sales, _ in counts)
        if tried >= self._days or sold >= self._stock:
            return 0
        return self._solved(key, self._days - tried, self._stock - sold, self._weights(counts))[1]

    @property
    def value(self) -> float:
        """Expected takings from the start."""
        return self._solved(0, self._days, self._stock, [1 / self._kinds] * self._kinds)[0]

    def _weights(self, counts: Counts) -> list[float]:
        weights = [1 / self._kinds] * self._kinds
        for (sales, refusals), sold in zip(counts, self._sold, strict=True):
            weights = [w * chance**sales * (1 - chance) ** refusals for w, chance in zip(weights, sold, strict=True)]
        return weights

    def _solved(self, key: int, days: int, stock: int, weights: list[float]) -> tuple[float, int]:
        """Value and price with this many days and pieces left, of which there is at least one each."""
        known = self._values.get(key)
        if known is not None:
            return known
        best, choice, tolerance = -1.0, 0, _CLOSE * sum(weights)
        for price, (sale, refusal) in enumerate(self._steps):
            won = list(map(mul, weights, self._sold[price]))
            value = self._prices[price] * sum(won)
            if days > 1:
                value += self._solved(key + refusal, days - 1, stock, list(map(sub, weights, won)))[0]
                if stock > 1:
                    value += self._solved(key + sale, days - 1, stock - 1, won)[0]
            if value > best + tolerance:
                best, choice = value, price
        self._values[key] = best, choice
        return best, choice


@lru_cache(maxsize=8)
def belief_programme(season: Season, kinds: tuple[Curve, ...]) -> BeliefProgramme:
    """The programme of a season; kept, since several policies and figures of one draw ask for it."""
    return BeliefProgramme(season, kinds)


def bayes_takings(season: Season, kinds: tuple[Curve, ...], curve: Curve) -> float:
    """Expected takings of the best uninformed player where the market has this curve."""
    return expected_takings(season, curve, belief_programme(season, kinds).best)
