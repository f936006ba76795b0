"""Parameters of `stopping`, and the bars that need no knowledge of the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import NamedTuple

from envsynth.generators.mechanism.families._stopping_solver import (
    Bars,
    LawBelief,
    Market,
    RankBelief,
    best_bars,
    law_market,
    rank_market,
)

SHOWS = 6
"""Past offers that one study shows."""
STUDIES = 3
"""Studies that are allowed where they show past offers."""


@dataclass(frozen=True)
class Stopping:
    """Parameters: by grades where there are laws, else by rank."""

    lots: int
    looks: int
    """Offers that there can be at most."""
    numbers: tuple[int, ...]
    """By rank: how many offers may come, ascending; else empty."""
    pays: tuple[int, ...]
    """Minor units by grade, worst first; by rank: by final place, best first, nothing for those after."""
    laws: tuple[tuple[int, ...], ...]
    """By market: weight of each grade."""
    truth: int
    """The market; by rank: the number of offers."""
    claimed: int
    """What is said of `truth`; always wrong."""
    look_cost: int
    study_cost: int

    @property
    def by_rank(self) -> bool:
        """Whether offers are only compared with those before."""
        return not self.laws

    @property
    def truths(self) -> tuple[int, ...]:
        """What `truth` may be, each equally likely."""
        return self.numbers or tuple(market for market in range(len(self.laws)) if market != self.claimed)

    @property
    def public(self) -> Stopping:
        """The same whatever the truth is."""
        return replace(self, truth=self.truths[0])

    def market(self, truth: int) -> Market:
        """What a player knows who takes this for the truth."""
        if self.by_rank:
            return rank_market(self.pays, truth, self.lots, self.look_cost)
        return law_market(self.pays, self.laws[truth], self.looks, self.lots, self.look_cost)


class Notable(NamedTuple):
    """Bars that need no solver."""

    any: int
    good: int
    """At or above the mean of the claimed market; by rank: the best so far."""
    top: int
    none: int


def bars_of_note(parameters: Stopping) -> Notable:
    """By what is said alone."""
    if parameters.by_rank:
        return Notable(parameters.looks, 1, 1, 0)
    law, top = parameters.laws[parameters.claimed], len(parameters.pays) - 1
    mean = sum(weight * pay for weight, pay in zip(law, parameters.pays, strict=True)) / sum(law)
    good = next(grade for grade, pay in enumerate(parameters.pays) if pay >= mean)
    return Notable(0, good, top, top + 1)


def spots(parameters: Stopping) -> list[tuple[int, int]]:
    """Day and lots left, wherever a policy can be."""
    return [
        (day, left)
        for day in range(1, parameters.looks + 1)
        for left in range(1, parameters.lots + 1)
        if parameters.lots - left < day
    ]


def default_bars(parameters: Stopping) -> Bars:
    """A lot in every equal share of the days, to the first offer that the claims call good."""
    notable = bars_of_note(parameters)
    days = parameters.claimed if parameters.by_rank else parameters.looks
    bars = {}
    for day, left in spots(parameters):
        if day <= days:
            sold = parameters.lots - left
            first, last = days * sold // parameters.lots, days * (sold + 1) // parameters.lots
            waits = parameters.by_rank and day <= first + (last - first) // 3
            bars[day, left] = notable.any if day >= last else notable.none if waits else notable.good
    return bars


def attack_bars(parameters: Stopping) -> Mapping[str, Bars]:
    """Take the first offers; hold out for the best; what sounds good (by rank: the best two)."""
    notable, everywhere = bars_of_note(parameters), spots(parameters)
    greedy = 2 if parameters.by_rank else notable.good
    constant = {"no_probing": notable.any, "constant": notable.top, "greedy": greedy}
    return {name: dict.fromkeys(everywhere, bar) for name, bar in constant.items()}


def guess_bars(parameters: Stopping) -> Mapping[str, Bars]:
    """For who knows how truths are drawn and learns nothing: one bar for all days; as if for a truth, or the claim."""
    everywhere = spots(parameters)
    fixed = range(1, 4) if parameters.by_rank else range(len(parameters.pays))
    found: dict[str, Bars] = {f"bar {bar}": dict.fromkeys(everywhere, bar) for bar in fixed}
    supposed = (*parameters.truths, parameters.claimed)
    found.update({f"as if {truth}": best_bars(parameters.market(truth)) for truth in supposed})
    if not parameters.by_rank:
        market = law_market(
            parameters.pays, _mean_law(parameters), parameters.looks, parameters.lots, parameters.look_cost
        )
        found["mean"] = best_bars(market)
    return {**found, **attack_bars(parameters)}


def _mean_law(parameters: Stopping) -> tuple[int, ...]:
    laws = [parameters.laws[truth] for truth in parameters.truths]
    common = lcm(*(sum(law) for law in laws))
    return tuple(sum(common // sum(law) * law[grade] for law in laws) for grade in range(len(parameters.pays)))


def law_belief(parameters: Stopping) -> LawBelief:
    """The best play by grades where the truth is one of `truths`; laws are numbered by their order there."""
    return _law_belief(parameters.public)


@lru_cache(maxsize=64)
def _law_belief(public: Stopping) -> LawBelief:
    laws = [public.laws[truth] for truth in public.truths]
    costs = (public.look_cost, public.study_cost)
    return LawBelief(public.pays, laws, public.looks, public.lots, costs, (STUDIES, SHOWS))


def rank_belief(parameters: Stopping) -> RankBelief:
    """The best play by rank where the truth is one of `truths`."""
    return _rank_belief(parameters.public)


@lru_cache(maxsize=64)
def _rank_belief(public: Stopping) -> RankBelief:
    return RankBelief(public.pays, public.numbers, public.lots, public.look_cost, public.study_cost)


def bayes_worth(parameters: Stopping, truth: int) -> float:
    """Expectation of the best uninformed play where this is the truth."""
    if parameters.by_rank:
        return rank_belief(parameters).worth(truth)
    return law_belief(parameters).worth(parameters.truths.index(truth))
