"""`stopping`: sell lots to offers that come one by one and lapse; by a known law, or by rank among a number unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import ClassVar

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._stopping_parameters import (
    SHOWS,
    STUDIES,
    Stopping,
    attack_bars,
    bars_of_note,
    bayes_worth,
    default_bars,
    law_belief,
    rank_belief,
    spots,
)
from envsynth.generators.mechanism.families._stopping_sampler import SIZES, draw_parameters
from envsynth.generators.mechanism.families._stopping_solver import LOOK, STOP, STUDY, Bars, best_bars, worth
from envsynth.generators.mechanism.families._stopping_world import Terms, plan_tools, tables, tools
from envsynth.models import World


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

    Levels 1 to 3: grades from one of three laws, of which the claimed one lies between the other two; the truth is one
    of those. Levels 4 and 5: the secretary problem with pay by final place, in which even the oracle knows no law;
    hidden is the number of offers, one of four, two on either side of the claimed number. The truth is drawn evenly
    after all else has been drawn so that each would do, and `bayes` is exact over that law.
    """

    name: ClassVar[str] = "stopping"
    version: ClassVar[str] = "2"
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
        """All but the truth is drawn again until the default misleads and no guess is good for every truth."""
        return draw_parameters(SIZES[level], rng, unit)

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
        found = tuple(tuple(rng.choices(grades, law, k=SHOWS)) for _ in range(STUDIES))
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
            "default": _policy(parameters, default_bars(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _rank_bayes(parameters) if parameters.by_rank else _law_bayes(parameters)
        return found

    def attacks(self, parameters: Stopping, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Take the first offers; hold out for the best; what sounds good; never sell."""
        bars = dict(attack_bars(parameters))
        bars["never_accept"] = dict.fromkeys(spots(parameters), bars_of_note(parameters).none)
        return {name: _policy(parameters, kept, presentation) for name, kept in bars.items()}

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
        return {
            "oracle": worth(market, _oracle_bars(parameters)),
            "bayes": bayes_worth(parameters, parameters.truth),
            "default": worth(market, default_bars(parameters)),
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
            "stock": parameters.lots, "looks": parameters.looks, "others": _listed(parameters.truths),
            "look_cost": parameters.look_cost, "study_cost": parameters.study_cost, "claimed": parameters.claimed,
            "shows": SHOWS, "most_studies": _most_studies(parameters), "places": len(parameters.pays),
            "top": len(parameters.pays) - 1, "pay_table": _pay_table(parameters),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            facts["actual"] = parameters.truth
        return facts

    def turns(self, parameters: Stopping, presentation: Presentation) -> int:
        """Every look, sale and study, and as many glances at the state."""
        return 5 if presentation is Presentation.WRITTEN else 2 * (parameters.looks + parameters.lots) + 15


@lru_cache(maxsize=256)
def _oracle_bars(parameters: Stopping) -> Bars:
    return best_bars(parameters.market(parameters.truth))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}"


def _pay_table(parameters: Stopping) -> Grid:
    if parameters.by_rank:
        return Grid(("{place}", "{pay} ({money})"), tuple(enumerate(parameters.pays, 1)))
    columns = (tuple(f"{weight} / {sum(law)}" for weight in law) for law in parameters.laws)
    grades = range(len(parameters.pays))
    heads = (f"{{chance}} {market}" for market in range(len(parameters.laws)))
    return Grid(
        ("{grade_word}", "{pay} ({money})", *heads), tuple(zip(grades, parameters.pays, *columns, strict=True))
    )  # fmt: skip


def _most_studies(parameters: Stopping) -> int:
    return 1 if parameters.by_rank else STUDIES


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
        belief = law_belief(parameters)
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
        belief = rank_belief(parameters)
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
