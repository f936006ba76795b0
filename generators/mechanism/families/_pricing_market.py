"""Markets of `pricing`: what is drawn, what is asked by players who learn nothing, and how far that brings them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import mul
from random import Random
from statistics import fmean
from typing import NamedTuple

from envsynth.generators.mechanism.families._pricing_solver import (
    Curve,
    PriceTable,
    Season,
    bayes_takings,
    best_value,
    price_table,
    table_value,
)

STEP = 5
"""Chances are multiples of 5 percent, so that they are stated exactly."""


class _Size(NamedTuple):
    days: int
    stock: int
    kinds: int
    """Kinds of market, the claimed one among them."""
    taken: tuple[int, int]
    """Chance of a sale at a price that this kind of market pays, in steps."""
    refused: tuple[int, int]
    """Chance of a sale at a price beyond that, in steps."""
    tight: tuple[float, float]
    """Where the default must lie in expectation, of the optimum, whichever kind is the true one."""


_SIZES = {
    1: _Size(12, 8, 4, (15, 19), (1, 2), (0.34, 0.56)),
    2: _Size(12, 8, 5, (15, 19), (1, 3), (0.32, 0.54)),
    3: _Size(12, 8, 5, (14, 19), (1, 4), (0.3, 0.52)),
    4: _Size(12, 9, 6, (13, 19), (1, 4), (0.28, 0.5)),
    5: _Size(13, 9, 7, (12, 19), (1, 4), (0.26, 0.48)),
}
_LADDER = ((5, 6), (9, 11), (16, 20))
"""Ranges of the prices, in units of money: so far apart that the wrong one costs about half of the takings."""
_TRUSTED = 0.75
"""Most of the optimum that the trusted claim, or all prices in turn, may bring in any market that may be the true."""
_WEAK = 0.9
"""A rule that brings more of the optimum in some market is no attack: it may solve that one."""
_GUESSED = {"oracle": 0.74, "bayes": 0.77}
"""Most of the way from the default to a reference that a player who learns nothing may expect, on average."""
_TRIES = 40
"""Curves tried for one claim."""


@dataclass(frozen=True)
class Pricing:
    """Parameters; prices in units of `unit` minor units, ascending."""

    prices: tuple[int, ...]
    days: int
    stock: int
    kinds: tuple[Curve, ...]
    """Every kind of market there is; which one it is, is hidden."""
    kind: int
    claim: int
    """The kind that it is said to be, and is not."""
    unit: int

    @property
    def season(self) -> Season:
        """What the solver needs besides a curve."""
        return self.prices, self.days, self.stock

    @property
    def possible(self) -> tuple[Curve, ...]:
        """The kinds of market that may be the true one."""
        return tuple(curve for number, curve in enumerate(self.kinds) if number != self.claim)


def draw_market(level: int, rng: Random, unit: int) -> Pricing:
    """All but the true kind is drawn until any other than the claimed may be it; then one of these, evenly."""
    while True:
        drawn = _draw_kinds(_SIZES[level], rng, unit)
        if drawn is not None and _is_unguessable(drawn):
            others = [number for number in range(len(drawn.kinds)) if number != drawn.claim]
            return replace(drawn, kind=rng.choice(others))


def _draw_kinds(size: _Size, rng: Random, unit: int) -> Pricing | None:
    """A claim and kinds in which it misleads; None if these are not soon found. The true kind is left open."""
    prices, claimed = tuple(rng.randint(*bounds) for bounds in _LADDER), _draw_curve(size, rng)
    known = Pricing(prices, size.days, size.stock, (claimed,), 0, 0, unit)
    found: list[Curve] = []
    # Where most kinds pay the same price, that price is a good guess.
    room = dict.fromkeys(range(len(prices)), 2 * (size.kinds - 1) // 3)
    room[_best_price(known, claimed)] = 0
    for tried in range(_TRIES):
        if tried > _TRIES // 3 and not found:
            return None
        curve = _draw_curve(size, rng)
        if curve == claimed or curve in found:
            continue
        price = _best_price(known, curve)
        if room[price] and _misleads(known, curve, size.tight):
            room[price] -= 1
            found.append(curve)
        if len(found) == size.kinds - 1:
            kinds = [claimed, *found]
            rng.shuffle(kinds)
            return replace(known, kinds=tuple(kinds), claim=kinds.index(claimed))
    return None


def _draw_curve(size: _Size, rng: Random) -> Curve:
    """A curve that falls from price to price, gently but for one place, which may be beyond the dearest."""
    paid = rng.randint(1, len(_LADDER))
    while True:
        curve = [rng.randint(*(size.taken if number < paid else size.refused)) for number in range(len(_LADDER))]
        if all(dear < cheap for cheap, dear in pairwise(curve)):
            return tuple(STEP * chance for chance in curve)


def _best_price(parameters: Pricing, curve: Curve) -> int:
    """The one price that takes most on average in a market with this curve."""
    return max(
        range(len(curve)),
        key=lambda price: parameters.prices[price] * min(100 * parameters.stock, parameters.days * curve[price]),
    )


def _misleads(parameters: Pricing, curve: Curve, tight: tuple[float, float]) -> bool:
    """Whether the default does so well as it should, and who trusts the claim badly, in a market with this curve."""
    low, high = tight
    default = table_value(parameters.season, curve, default_table(parameters))
    # A bound that costs little; most curves end here.
    if default > high * parameters.days * max(map(mul, parameters.prices, curve)) / 100:
        return False
    best = best_value(parameters.season, curve)
    if not low <= default / best <= high:
        return False
    return all(table_value(parameters.season, curve, table) <= _TRUSTED * best for table in _trusting(parameters))


def _trusting(parameters: Pricing) -> tuple[PriceTable, PriceTable]:
    return price_table(parameters.season, parameters.kinds[parameters.claim]), in_turn(parameters)


def _is_unguessable(parameters: Pricing) -> bool:
    return all(max(blind_scores(parameters, reference).values()) <= most for reference, most in _GUESSED.items())


def blind_scores(parameters: Pricing, reference: str) -> dict[str, float]:
    """Expected place between default (0) and a reference (1), averaged over the possible kinds, of blind rules.

    Args:
        parameters: of which the true kind is not read.
        reference: `oracle` or `bayes`.
    """
    season, kinds = parameters.season, parameters.possible
    default = default_table(parameters)
    reach = []
    for curve in kinds:
        low = table_value(season, curve, default)
        high = best_value(season, curve) if reference == "oracle" else bayes_takings(season, kinds, curve)
        reach.append((curve, low, high))
    return {
        name: fmean(min(1.0, max(0.0, (table_value(season, curve, table) - low) / (high - low)))
                    for curve, low, high in reach)
        for name, table in blind_tables(parameters).items()
    }  # fmt: skip


def blind_tables(parameters: Pricing) -> dict[str, PriceTable]:
    """What is asked by one who knows how markets are drawn, but does not learn: fixed, on average, or a guess."""
    season, possible = parameters.season, parameters.possible
    guesses = {f"kind_{number}": price_table(season, curve) for number, curve in enumerate(possible)}
    trusted, turns = _trusting(parameters)
    everywhere = price_table(season, _mean(parameters.kinds))
    return {"no_probing": trusted, "in_turn": turns, "everywhere": everywhere, **_careless(parameters), **guesses}


def attack_tables(parameters: Pricing) -> Mapping[str, PriceTable]:
    """The blind rules that are good in none of the markets that may be the true one."""
    season, possible = parameters.season, parameters.possible
    trusted, turns = _trusting(parameters)
    weak = {
        name: table
        for name, table in _careless(parameters).items()
        if all(table_value(season, curve, table) <= _WEAK * best_value(season, curve) for curve in possible)
    }
    return {"no_probing": trusted, "in_turn": turns, **weak}


def default_table(parameters: Pricing) -> PriceTable:
    """The one price that is best on average if the claim is true; every third day each price in turn.

    The price is that of the fluid model of Gallego and van Ryzin 1994.
    """
    usual, prices = _best_price(parameters, parameters.kinds[parameters.claim]), len(parameters.prices)
    return _by_day(parameters, [(day // 3) % prices if day % 3 == 2 else usual for day in range(parameters.days)])


def in_turn(parameters: Pricing) -> PriceTable:
    """All prices, one after the other."""
    return _by_day(parameters, [day % len(parameters.prices) for day in range(parameters.days)])


def _careless(parameters: Pricing) -> dict[str, PriceTable]:
    """The best prices for the average market; the dearest, the cheapest and the middle price all along."""
    dearest = len(parameters.prices) - 1
    fixed = {"greedy": dearest, "sell_off": 0, "constant": dearest // 2}
    return {
        "average": price_table(parameters.season, _mean(parameters.possible)),
        **{name: _by_day(parameters, [price] * parameters.days) for name, price in fixed.items()},
    }


def _mean(curves: tuple[Curve, ...]) -> Curve:
    return tuple(round(fmean(chances)) for chances in zip(*curves, strict=True))


def _by_day(parameters: Pricing, asked: list[int]) -> PriceTable:
    return tuple((price,) * (parameters.stock + 1) for price in asked)
