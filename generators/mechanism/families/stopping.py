"""`stopping`: sell lots to offers that come one by one and lapse; by a known law, or by rank among a number unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._stopping_solver import (
    LOOK,
    STOP,
    STUDY,
    Bars,
    LawBelief,
    Market,
    RankBelief,
    best_bars,
    law_market,
    rank_market,
    worth,
)
from envsynth.generators.mechanism.families._stopping_world import Terms, plan_tools, tables, tools
from envsynth.models import World

_MARKETS = 3
_SHOWS = 4
"""Past offers that one study shows."""
_STUDIES = 3
"""Studies that are allowed where they show past offers."""
_TIGHT = (0.3, 0.7)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""


class _Size(NamedTuple):
    lots: int
    looks: int
    """Most offers; by rank: the most that may come."""
    grades: int
    """0: by rank."""
    steep: tuple[int, int]
    """Ratio by which a better market favours each grade over the one below."""


_SIZES = {
    1: _Size(3, 10, 5, (2, 1)),
    2: _Size(3, 14, 6, (2, 1)),
    3: _Size(3, 18, 7, (2, 1)),
    4: _Size(3, 16, 0, (1, 1)),
    5: _Size(4, 24, 0, (1, 1)),
}


@dataclass(frozen=True)
class Stopping:
    """Parameters: by grades where there are laws, else by rank."""

    lots: int
    looks: int
    """Offers that there can be at most."""
    fewest: int
    """Offers that there are at least."""
    pays: tuple[int, ...]
    """Minor units by grade, worst first; by rank: by final place, best first, nothing for those after."""
    laws: tuple[tuple[int, ...], ...]
    """By market: weight of each grade."""
    truth: int
    """The market; by rank: the number of offers."""
    claimed: int
    """What is said of `truth`."""
    look_cost: int
    study_cost: int

    @property
    def by_rank(self) -> bool:
        """Whether offers are only compared with those before."""
        return not self.laws

    def market(self, truth: int) -> Market:
        """What a player knows who takes this for the truth."""
        if self.by_rank:
            return rank_market(self.pays, truth, self.lots, self.look_cost)
        return law_market(self.pays, self.laws[truth], self.looks, self.lots, self.look_cost)


@dataclass(frozen=True)
class Offers:
    """Tape."""

    shown: tuple[int, ...]
    """By day: the offer's grade; by rank: its place among those so far."""
    pays: tuple[int, ...]
    """By day: what it brings when it is accepted."""
    found: tuple[tuple[int, ...], ...]
    """By study: what it finds."""


class StoppingFamily(Family[Stopping, Offers]):
    """Multiple optimal stopping without recall, at a price for every look.

    Levels 1 to 3: grades from one of three laws, a uniform prior over which `bayes` is exact. Levels 4 and 5: the
    secretary problem with pay by final place, in which even the oracle knows no law; hidden is the number of offers,
    uniform over a stated range, over which `bayes` is exact.
    """

    name: ClassVar[str] = "stopping"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Optimal stopping without recall"
    kin: ClassVar[str] = "search"
    sources: ClassVar[tuple[str, ...]] = (
        "Lindley 1961, Dynamic programming and decision theory",
        "Gilbert and Mosteller 1966, Recognizing the maximum of a sequence",
        "Chow, Robbins and Siegmund 1971, Great Expectations: The Theory of Optimal Stopping",
        "Derman, Lieberman and Ross 1972, A sequential stochastic assignment problem",
        "Presman and Sonin 1972, The best choice problem for a random number of objects",
    )
    band: ClassVar[tuple[float, float]] = (0.1, 0.9)

    def sample(self, level: int, rng: Random, unit: int) -> Stopping:
        """Drawn again until the default, deceived about the market, is worth beating."""
        size = _SIZES[level]
        while True:
            found = _by_grades(size, rng, unit) if size.grades else _by_rank(size, rng, unit)
            market = found.market(found.truth)
            share = worth(market, _default_bars(found)) / worth(market, _oracle_bars(found))
            if _TIGHT[0] <= share <= _TIGHT[1]:
                return found

    def tape(self, parameters: Stopping, rng: Random) -> Offers:
        """Offers day by day, and what studies find."""
        if parameters.by_rank:
            order = list(range(1, parameters.truth + 1))
            rng.shuffle(order)
            shown = tuple(sum(other <= final for other in order[:day]) for day, final in enumerate(order, 1))
            paid = (*parameters.pays, *[0] * parameters.truth)
            return Offers(shown, tuple(paid[final - 1] for final in order), ((parameters.truth,),))
        grades, law = range(len(parameters.pays)), parameters.laws[parameters.truth]
        shown = tuple(rng.choices(grades, law, k=parameters.looks))
        found = tuple(tuple(rng.choices(grades, law, k=_SHOWS)) for _ in range(_STUDIES))
        return Offers(shown, tuple(parameters.pays[grade] for grade in shown), found)

    def labels(self, parameters: Stopping) -> int:
        """Offers have no names."""
        return 0

    def variant(self, parameters: Stopping) -> str:
        """By rank the texts are others."""
        return "rank" if parameters.by_rank else ""

    def world(self, parameters: Stopping, tape: Offers, look: Look) -> World:
        """Interactive: `status`, `look`, `accept`, `study`; `market` where revealed. Written: `submit` with bars."""
        terms = Terms(
            parameters.looks, parameters.lots, 0 if parameters.by_rank else len(parameters.pays),
            parameters.look_cost, parameters.study_cost, _most_studies(parameters),
        )  # fmt: skip
        return World(
            id="stopping",
            clock=look.clock,
            tables=tables(look.presentation),
            rows={
                "state": ((0, parameters.lots, 0, 0, 0, 0),),
                "theta": ((parameters.truth,),),
                "tape": tuple((day, *pair) for day, pair in enumerate(zip(tape.shown, tape.pays, strict=True), 1)),
                "past": tuple((study, found) for study, row in enumerate(tape.found, 1) for found in row),
            },
            tools=plan_tools(terms) if look.presentation is Presentation.WRITTEN else tools(terms, look.presentation),
            over="SELECT lots_left = 0 OR closed FROM state",
        )

    def utility(self, parameters: Stopping) -> str:
        """What the accepted offers bring, less looks and studies."""
        brought = "SELECT sum(tape.pays) FROM sales JOIN tape ON tape.day = sales.day"
        return f"SELECT coalesce(({brought}), 0) - spent FROM state"

    def policies(self, parameters: Stopping, presentation: Presentation) -> Mapping[str, Policy]:
        """The default sells a lot in every equal share of the days, to the first offer that the claims call good."""
        found = {
            "oracle": _policy(parameters, _oracle_bars(parameters), presentation),
            "default": _policy(parameters, _default_bars(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _rank_bayes(parameters) if parameters.by_rank else _law_bayes(parameters)
        return found

    def attacks(self, parameters: Stopping, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Take the first offers; hold out for the best; take what sounds good (by rank: the best two); never sell."""
        any_bar, good, top, none = _bars_of_note(parameters)
        greedy = 2 if parameters.by_rank else good
        bars = {"no_probing": any_bar, "constant": top, "greedy": greedy, "never_accept": none}
        spots = _spots(parameters)
        return {
            name: _policy(parameters, dict.fromkeys(spots, bar), presentation) for name, bar in bars.items()
        }  # fmt: skip

    def solved(self, parameters: Stopping, tape: Offers) -> float:
        """The oracle's bars on the tape."""
        bars, market = _oracle_bars(parameters), parameters.market(parameters.truth)
        left, total = parameters.lots, 0
        for day, (shown, pays) in enumerate(zip(tape.shown, tape.pays, strict=True), 1):
            if (day, left) not in bars:
                break
            total -= parameters.look_cost
            if market.takes(bars[day, left], shown):
                total, left = total + pays, left - 1
        return float(total)

    def expected(self, parameters: Stopping) -> Mapping[str, float]:
        """Given the truth; exact for all."""
        market = parameters.market(parameters.truth)
        bayes = _rank_belief(parameters) if parameters.by_rank else _law_belief(parameters)
        return {
            "oracle": worth(market, _oracle_bars(parameters)),
            "bayes": bayes.worth(parameters.truth),
            "default": worth(market, _default_bars(parameters)),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Stopping, tape: Offers) -> float:
        """The best offers among the first few, for the best number of looks."""
        totals = [0]
        for looks in range(1, len(tape.pays) + 1):
            best = sorted(tape.pays[:looks])[-parameters.lots :]
            totals.append(sum(best) - looks * parameters.look_cost)
        return float(max(totals))

    def facts(self, parameters: Stopping, presentation: Presentation) -> Mapping[str, Fact]:
        """Everything but the truth; in `written` that too."""
        facts: dict[str, Fact] = {
            "stock": parameters.lots, "looks": parameters.looks, "fewest": parameters.fewest,
            "look_cost": parameters.look_cost, "study_cost": parameters.study_cost, "claimed": parameters.claimed,
            "shows": _SHOWS, "most_studies": _most_studies(parameters), "places": len(parameters.pays),
            "top": len(parameters.pays) - 1, "pay_table": _pay_table(parameters),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            facts["actual"] = parameters.truth
        return facts

    def turns(self, parameters: Stopping, presentation: Presentation) -> int:
        """Every look, sale and study, and as many glances at the state."""
        return 5 if presentation is Presentation.WRITTEN else 2 * (parameters.looks + parameters.lots) + 15


def _by_grades(size: _Size, rng: Random, unit: int) -> Stopping:
    pays = [rng.randint(8, 14)]
    while len(pays) < size.grades:
        pays.append(pays[-1] + rng.randint(pays[-1] * 2 // 5, pays[-1] * 9 // 10))
    base = [rng.randint(2, 4) for _ in pays]
    high, low = size.steep
    laws = tuple(
        tuple(weight * up**grade * down ** (size.grades - 1 - grade) for grade, weight in enumerate(base))
        for up, down in ((low, high), (1, 1), (high, low))
    )
    truth = rng.randrange(_MARKETS)
    claimed = rng.choice([market for market in range(_MARKETS) if market != truth])
    cost = unit * rng.randint(2, 4)
    return Stopping(
        lots=size.lots, looks=size.looks, fewest=size.looks, pays=tuple(unit * pay for pay in pays), laws=laws,
        truth=truth, claimed=claimed, look_cost=cost, study_cost=cost,
    )  # fmt: skip


def _by_rank(size: _Size, rng: Random, unit: int) -> Stopping:
    steps = [rng.randint(4, 12) for _ in range(size.lots + 3)]
    pays = sorted(accumulate(steps), reverse=True)
    fewest = size.looks // 3
    truth, claimed = rng.randint(fewest, size.looks), rng.randint(fewest, size.looks)
    cost = unit * rng.randint(1, 2)
    return Stopping(
        lots=size.lots, looks=size.looks, fewest=fewest, pays=tuple(unit * pay for pay in pays), laws=(),
        truth=truth, claimed=claimed, look_cost=cost, study_cost=3 * cost,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _oracle_bars(parameters: Stopping) -> Bars:
    return best_bars(parameters.market(parameters.truth))


@lru_cache(maxsize=64)
def _law_belief(parameters: Stopping) -> LawBelief:
    costs = (parameters.look_cost, parameters.study_cost)
    return LawBelief(
        parameters.pays, parameters.laws, parameters.looks, parameters.lots, costs, (_STUDIES, _SHOWS)
    )  # fmt: skip


@lru_cache(maxsize=64)
def _rank_belief(parameters: Stopping) -> RankBelief:
    numbers = (parameters.fewest, parameters.looks)
    return RankBelief(parameters.pays, numbers, parameters.lots, parameters.look_cost, parameters.study_cost)


class _Notable(NamedTuple):
    """Bars that need no solver."""

    any: int
    good: int
    """At or above the mean of the claimed market; by rank: the best so far."""
    top: int
    none: int


def _bars_of_note(parameters: Stopping) -> _Notable:
    if parameters.by_rank:
        return _Notable(parameters.looks, 1, 1, 0)
    law, top = parameters.laws[parameters.claimed], len(parameters.pays) - 1
    mean = sum(weight * pay for weight, pay in zip(law, parameters.pays, strict=True)) / sum(law)
    good = next(grade for grade, pay in enumerate(parameters.pays) if pay >= mean)
    return _Notable(0, good, top, top + 1)


def _default_bars(parameters: Stopping) -> Bars:
    notable = _bars_of_note(parameters)
    days = parameters.claimed if parameters.by_rank else parameters.looks
    bars = {}
    for day, left in _spots(parameters):
        if day <= days:
            sold = parameters.lots - left
            first, last = days * sold // parameters.lots, days * (sold + 1) // parameters.lots
            waits = parameters.by_rank and day <= first + (last - first) // 3
            bars[day, left] = notable.any if day >= last else notable.none if waits else notable.good
    return bars


def _spots(parameters: Stopping) -> list[tuple[int, int]]:
    """Day and lots left, wherever a policy can be."""
    return [
        (day, left)
        for day in range(1, parameters.looks + 1)
        for left in range(1, parameters.lots + 1)
        if parameters.lots - left < day
    ]


def _pay_table(parameters: Stopping) -> Grid:
    if parameters.by_rank:
        return Grid(("{place}", "{pay} ({money})"), tuple(enumerate(parameters.pays, 1)))
    columns = (tuple(f"{weight} / {sum(law)}" for weight in law) for law in parameters.laws)
    grades = range(len(parameters.pays))
    heads = (f"{{chance}} {market}" for market in range(_MARKETS))
    return Grid(
        ("{grade_word}", "{pay} ({money})", *heads), tuple(zip(grades, parameters.pays, *columns, strict=True))
    )  # fmt: skip


def _most_studies(parameters: Stopping) -> int:
    return 1 if parameters.by_rank else _STUDIES


def _policy(parameters: Stopping, bars: Bars, presentation: Presentation) -> Policy:
    market = parameters.market(parameters.truth)

    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            rows = [{"day": day, "lots": left, "bar": bar} for (day, left), bar in sorted(bars.items())]
            player.call("submit", plan=json.dumps(rows))
            return
        day, left = 0, parameters.lots
        while not player.over and (day + 1, left) in bars:
            day += 1
            shown = player.call("look")["shown"]
            if shown is not None and market.takes(bars[day, left], shown):
                player.call("accept")
                left -= 1

    return play


def _law_bayes(parameters: Stopping) -> Policy:
    def play(player: Player) -> None:
        belief = _law_belief(parameters)
        left, studied, seen = parameters.lots, 0, 0
        for day in range(parameters.looks):
            act = belief.act(day, left, studied, seen)
            if act == STOP:
                return
            if act == LOOK:
                grade = player.call("look")["shown"]
                seen += grade
                if belief.takes(day + 1, left, studied, seen, grade):
                    player.call("accept")
                    left -= 1
            else:
                seen += sum(row["found"] for row in player.call("study"))
                studied += 1
            if not left:
                return

    return play


def _rank_bayes(parameters: Stopping) -> Policy:
    def play(player: Player) -> None:
        belief = _rank_belief(parameters)
        day, left = 0, parameters.lots
        bars: Bars | None = None
        while not player.over:
            act = belief.act(day, left) if bars is None else LOOK if (day + 1, left) in bars else STOP
            if act == STOP:
                return
            if act == STUDY:
                bars = best_bars(belief.markets[player.call("study")[0]["found"]])
                continue
            day += 1
            place = player.call("look")["shown"]
            if place is None:
                return
            if belief.takes(day, left, place) if bars is None else place <= bars[day, left]:
                player.call("accept")
                left -= 1

    return play
