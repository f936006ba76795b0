"""`knapsack`: offers period by period for one budget that is kept over; what sponsors claim of them misleads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from random import Random
from statistics import fmean
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World


class _Size(NamedTuple):
    periods: int
    offers: int
    """A period."""
    sponsors: int
    boasters: int
    swing: int
    """Abstract units by which a payment may differ from the worth."""
    boast: tuple[int, int]
    """Per cent of their claims that boasting sponsors' offers are worth."""
    ratio: tuple[float, float]
    """What the default earns of the optimum, on average over who may be boasting."""


_SIZES = {
    1: _Size(3, 4, 3, 1, 0, (20, 30), (0.68, 0.78)),
    2: _Size(4, 3, 4, 2, 2, (30, 40), (0.61, 0.7)),
    3: _Size(5, 3, 4, 2, 4, (25, 35), (0.57, 0.65)),
    4: _Size(5, 4, 5, 3, 6, (20, 30), (0.5, 0.57)),
    5: _Size(6, 5, 6, 3, 6, (15, 25), (0.42, 0.5)),
}
_HONEST = (92, 108)
"""Per cent of their claims that the other sponsors' offers are worth."""
_APPRAISAL = 1
"""Units of the budget that an appraisal takes."""
_TIGHT = (0.2, 0.85)
"""What the default must earn of the optimum, whoever is boasting."""
_CARELESS = 0.8
"""Most of the way from the default to the optimum that choosing by what is shown may bring, whoever is boasting."""
_GUESSED = 0.65
"""Most of that way that one guess of who is boasting may bring, on average over who may be."""


class Offer(NamedTuple):
    """Something that can be taken in one period only; amounts of money are minor units."""

    period: int
    """From 1."""
    sponsor: int
    """From 1."""
    cost: int
    """Units of the budget."""
    claimed: int
    worth: int
    """Payment on average."""


@dataclass(frozen=True)
class Knapsack:
    """Parameters."""

    offers: tuple[Offer, ...]
    """In the order of their periods; numbered from 1."""
    periods: int
    allowance: int
    """Units of the budget that each period adds; what is left is kept."""
    sponsors: int
    swing: int
    """Abstract units by which a payment may differ from the worth."""
    unit: int
    boasters: int
    """Number of sponsors whose offers are worth much less than claimed."""
    boast: tuple[int, int]
    """Per cent of their claims that these are worth, at least and at most."""


@dataclass(frozen=True)
class Payments:
    """Tape: what each offer pays once it is taken, minor units."""

    paid: tuple[int, ...]


class KnapsackFamily(Family[Knapsack, Payments]):
    """0/1 knapsack over periods with a cumulative budget and hidden worths.

    Some sponsors boast; how many and by how much is told. Claims follow one law for all of them, and who boasts is
    drawn last and evenly from all sets of that size, each of which would do. There is no `bayes`: worths of one sponsor
    hang together, so that every appraisal and every payment changes what is believed of all later offers, and a state
    holds each offer's; no exact value in reasonable time is known. The reference is the oracle.
    """

    name: ClassVar[str] = "knapsack"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Offers by period for one budget"
    kin: ClassVar[str] = "planning"
    sources: ClassVar[tuple[str, ...]] = (
        "Bellman 1957, Dynamic Programming",
        "Faaland 1981, The multiperiod knapsack problem",
    )
    band: ClassVar[tuple[float, float]] = (0.15, 0.8)

    def sample(self, level: int, rng: Random, unit: int) -> Knapsack:
        """All but who boasts is drawn again until no guess is good for every set, and the default for none."""
        size = _SIZES[level]
        while True:
            cases = possible_cases(*_draw(size, rng, unit))
            if _is_fair(cases, size):
                return rng.choice(cases)

    def tape(self, parameters: Knapsack, rng: Random) -> Payments:
        """One draw an offer."""
        swing, unit = parameters.swing, parameters.unit
        return Payments(tuple(offer.worth + unit * rng.randint(-swing, swing) for offer in parameters.offers))

    def labels(self, parameters: Knapsack) -> int:
        """One a sponsor."""
        return parameters.sponsors

    def world(self, parameters: Knapsack, tape: Payments, look: Look) -> World:
        """Interactive: `take`, `appraise`, `advance`, and views. Written: `submit` with offers in order."""
        numbered = tuple(enumerate(parameters.offers, 1))
        return World(
            id="knapsack",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, parameters.allowance, 0),),
                "sponsors": tuple((k + 1, look.labels[k]) for k in range(parameters.sponsors)),
                "offers": tuple((n, o.period, o.sponsor, o.cost, o.claimed, None, None) for n, o in numbered),
                "worths": tuple((n, o.worth) for n, o in numbered),
                "tape": tuple(enumerate(tape.paid, 1)),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT period > {parameters.periods} FROM state",
        )

    def utility(self, parameters: Knapsack) -> str:
        """What the taken offers paid."""
        return "SELECT earned FROM state"

    def policies(self, parameters: Knapsack, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle takes the best choice; the default spends each period's allowance at once, by claims."""
        return {
            "oracle": _take(parameters, best_choice(parameters).offers, presentation),
            "default": _take(parameters, _default(parameters), presentation),
        }

    def attacks(self, parameters: Knapsack, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Choices without appraisals; and, where there are appraisals, nothing but these."""
        found = {name: _take(parameters, chosen, presentation) for name, chosen in _careless(parameters).items()}
        if presentation is not Presentation.WRITTEN:
            found["overprobe"] = _overprobe(parameters)
        return found

    def solved(self, parameters: Knapsack, tape: Payments) -> float:
        """What the best choice's offers pay."""
        return float(sum(tape.paid[offer - 1] for offer in best_choice(parameters).offers))

    def expected(self, parameters: Knapsack) -> Mapping[str, float]:
        """Payments differ from worths by a mean of zero."""
        return {
            "oracle": float(best_choice(parameters).value),
            "default": float(_worth(parameters, _default(parameters))),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Knapsack, tape: Payments) -> float:
        """The best choice, payments known in advance."""
        return float(_best(_needs(parameters), tape.paid, parameters.allowance).value)

    def facts(self, parameters: Knapsack, presentation: Presentation) -> Mapping[str, Fact]:
        """Periods, allowance, number of offers, price of an appraisal; in `written` all offers."""
        facts: dict[str, Fact] = {
            "period_count": parameters.periods,
            "offer_count": len(parameters.offers),
            "allowance": parameters.allowance,
            "appraisal": _APPRAISAL,
            "payment_swing": parameters.swing * parameters.unit,
            "sponsor_count": parameters.sponsors,
            "boaster_count": parameters.boasters,
            "boast_low": parameters.boast[0],
            "boast_high": parameters.boast[1],
            "honest_low": _HONEST[0],
            "honest_high": _HONEST[1],
        }
        if presentation is Presentation.WRITTEN:
            facts["offer_grid"] = Grid(
                ("offer", "period", "sponsor", "cost", "claimed", "worth"),
                tuple((number, *offer) for number, offer in enumerate(parameters.offers, 1)),
            )
        return facts

    def turns(self, parameters: Knapsack, presentation: Presentation) -> int:
        """Every offer appraised, looked at and taken, and every period ended."""
        if presentation is Presentation.WRITTEN:
            return 5
        return 3 * len(parameters.offers) + 2 * parameters.periods + 10


class Choice(NamedTuple):
    """Offers to take."""

    value: int
    offers: tuple[int, ...]
    """Numbers from 1, in the order of periods."""


Needs = tuple[tuple[int, int], ...]
"""Period and cost of each offer, in the order of periods."""


def best_choice(parameters: Knapsack) -> Choice:
    """The choice of the largest total worth."""
    return _best(_needs(parameters), tuple(offer.worth for offer in parameters.offers), parameters.allowance)


@lru_cache(maxsize=1024)
def _best(needs: Needs, pays: tuple[int, ...], allowance: int) -> Choice:
    """Dynamic programming from the last offer back over the budget left; what a period leaves is kept.

    Args:
        needs: of each offer.
        pays: what each offer pays; not negative.
        allowance: units that each period adds, the first too.
    """
    most = allowance * (needs[-1][0] if needs else 1)
    after = [0] * (most + 1)
    """Value of the offers to come by units left."""
    tables = []
    gains = _gains(needs, allowance)
    for (_, cost), pay, gain in zip(reversed(needs), reversed(pays), reversed(gains), strict=True):
        tables.append(after)
        taken = [after[left] if left < cost else max(after[left], pay + after[left - cost]) for left in range(most + 1)]
        after = [taken[min(most, left + gain)] for left in range(most + 1)]
    left, value, chosen = allowance, after[allowance], []
    for number, ((_, cost), pay, gain) in enumerate(zip(needs, pays, gains, strict=True), 1):
        later = tables[-number]
        left += gain
        if left >= cost and pay + later[left - cost] > later[left]:
            chosen.append(number)
            left -= cost
    return Choice(value, tuple(chosen))


def _gains(needs: Needs, allowance: int) -> list[int]:
    """Units that come in just before each offer, beyond the first period's."""
    periods = [1, *(period for period, _ in needs)]
    return [allowance * (periods[k + 1] - periods[k]) for k in range(len(needs))]


def _needs(parameters: Knapsack) -> Needs:
    return tuple((offer.period, offer.cost) for offer in parameters.offers)


class Percents(NamedTuple):
    """Per cent of its claim that an offer is worth, by whether its sponsor boasts."""

    honest: int
    boasting: int


def _draw(size: _Size, rng: Random, unit: int) -> tuple[Knapsack, tuple[Percents, ...]]:
    """All that is shown, worths being as claimed, and what they would be of it; nothing depends on who boasts."""
    sponsors: list[int] = []
    while len(sponsors) < size.periods * size.offers:
        sponsors += rng.sample(range(1, size.sponsors + 1), size.sponsors)
    offers, percents = [], []
    for number in range(size.periods * size.offers):
        cost = rng.randint(4, 12)
        # The poorest boast, 15 % of this, is still worth more than payments may differ by: all that is taken pays.
        claimed = max(7 * (size.swing + 1), cost * rng.randint(150, 300) // 10)
        offers.append(Offer(number // size.offers + 1, sponsors[number], cost, unit * claimed, unit * claimed))
        percents.append(Percents(rng.randint(*_HONEST), rng.randint(*size.boast)))
    total = sum(offer.cost for offer in offers)
    allowance = max(12, total * rng.randint(26, 38) // (100 * size.periods))
    return (
        Knapsack(
            tuple(offers), size.periods, allowance, size.sponsors, size.swing, unit, size.boasters, size.boast
        ),
        tuple(percents),
    )  # fmt: skip


def possible_cases(shown: Knapsack, percents: Sequence[Percents]) -> list[Knapsack]:
    """One for each set of sponsors who may be boasting, alike in all that is shown."""

    def worth(offer: Offer, percent: Percents, boasting: Sequence[int]) -> int:
        # Whole abstract units, so that no decision depends on the unit.
        claimed = offer.claimed // shown.unit
        part, least = (percent.boasting, shown.boast[0]) if offer.sponsor in boasting else (percent.honest, _HONEST[0])
        return shown.unit * max(claimed * part // 100, -(-claimed * least // 100))

    return [
        replace(
            shown,
            offers=tuple(
                offer._replace(worth=worth(offer, percent, boasting))
                for offer, percent in zip(shown.offers, percents, strict=True)
            ),
        )
        for boasting in combinations(range(1, shown.sponsors + 1), shown.boasters)
    ]


def choice_place(case: Knapsack, chosen: Sequence[int]) -> float:
    """Expected place of a choice between the default (0) and the optimum (1), cut off at both."""
    default, best = _worth(case, _default(case)), best_choice(case).value
    return min(1.0, max(0.0, (_worth(case, chosen) - default) / (best - default)))


def _is_fair(cases: Sequence[Knapsack], size: _Size) -> bool:
    """Whether the default misleads whoever is boasting, and no guess is good enough for all sets."""
    default = _default(cases[0])
    shares = []
    for case in cases:
        shares.append(_worth(case, default) / best_choice(case).value)
        if not _TIGHT[0] <= shares[-1] <= _TIGHT[1]:
            return False
    if not size.ratio[0] <= fmean(shares) <= size.ratio[1]:
        return False
    careless = _careless(cases[0]).values()
    if any(choice_place(case, chosen) > _CARELESS for case in cases for chosen in careless):
        return False
    guesses = [best_choice(case).offers for case in cases]
    return all(fmean(choice_place(case, chosen) for case in cases) <= _GUESSED for chosen in guesses)


def _worth(parameters: Knapsack, chosen: Sequence[int]) -> int:
    return sum(parameters.offers[number - 1].worth for number in chosen)


def _default(parameters: Knapsack) -> tuple[int, ...]:
    """Each period's allowance is spent in that period, the best claim for its cost first."""
    chosen: list[int] = []
    for period in range(1, parameters.periods + 1):
        left = parameters.allowance
        for number in _by_claim(parameters, period):
            if parameters.offers[number - 1].cost <= left:
                chosen.append(number)
                left -= parameters.offers[number - 1].cost
    return tuple(chosen)


def _by_claim(parameters: Knapsack, period: int) -> list[int]:
    """Offers of a period, the best claim for its cost first."""
    numbers = [number for number, offer in enumerate(parameters.offers, 1) if offer.period == period]
    return sorted(numbers, key=lambda n: (-parameters.offers[n - 1].claimed / parameters.offers[n - 1].cost, n))


def _careless(parameters: Knapsack) -> dict[str, tuple[int, ...]]:
    """Choices that ask for nothing."""
    offers, numbers = parameters.offers, range(1, len(parameters.offers) + 1)
    claims = tuple(offer.claimed for offer in offers)
    last = [number for number in numbers if offers[number - 1].period == parameters.periods]
    return {
        "no_probing": _best(_needs(parameters), claims, parameters.allowance).offers,
        "greedy": _fitting(parameters, sorted(numbers, key=lambda n: (offers[n - 1].period, -claims[n - 1], n))),
        "constant": _fitting(parameters, list(numbers)),
        "hoard": _fitting(parameters, sorted(last, key=lambda n: (-claims[n - 1], n))),
        "largest": _fitting(
            parameters, sorted(numbers, key=lambda n: (offers[n - 1].period, -offers[n - 1].cost, n))
        ),
    }  # fmt: skip


def _fitting(parameters: Knapsack, numbers: Sequence[int]) -> tuple[int, ...]:
    """Of offers in the order of periods, each that can be paid when its turn comes."""
    spent, chosen = 0, []
    for number in numbers:
        offer = parameters.offers[number - 1]
        if spent + offer.cost <= parameters.allowance * offer.period:
            chosen.append(number)
            spent += offer.cost
    return tuple(chosen)


def _take(parameters: Knapsack, chosen: Sequence[int], presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps([{"offer": number} for number in chosen]))
            return
        for period in range(1, parameters.periods + 1):
            for number in chosen:
                if parameters.offers[number - 1].period == period:
                    player.call("take", offer=number)
            player.call("advance")

    return play


def _overprobe(parameters: Knapsack) -> Policy:
    """Spend all of the budget on appraisals while there is anything to appraise."""

    def play(player: Player) -> None:
        numbers = iter(range(1, len(parameters.offers) + 1))
        for _ in range(parameters.periods):
            for _ in range(parameters.allowance // _APPRAISAL):
                number = next(numbers, None)
                if number is not None:
                    player.call("appraise", offer=number)
            player.call("advance")

    return play


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def column(name: str, *, key: bool = False, nullable: bool = False, references: str = "") -> Column:
        role = "key" if key else "hard"
        return Column(name=name, type="integer", role=role, nullable=nullable, references=references)

    offer = column("offer", key=True, references="offers.offer")
    return (
        Table(name="state", columns=tuple(map(column, ("period", "funds", "earned")))),
        Table(name="sponsors", columns=(column("sponsor", key=True), Column(name="label", type="text"))),
        Table(
            name="offers",
            columns=(
                column("offer", key=True),
                column("period"),
                column("sponsor", references="sponsors.sponsor"),
                column("cost"),
                column("claimed"),
                column("worth", nullable=True),
                column("paid", nullable=True),
            ),
        ),
        Table(name="worths", hidden=presentation is not Presentation.REVEALED, columns=(offer, column("worth"))),
        Table(name="tape", hidden=True, columns=(offer, column("paid"))),
    )


def _tools(parameters: Knapsack, presentation: Presentation) -> tuple[Tool, ...]:
    offer = Parameter(name="offer", type="integer", minimum=1, maximum=len(parameters.offers))
    going = Guard(sql=f"SELECT period <= {parameters.periods} FROM state", error="the last {term} is over")
    free = Guard(sql="SELECT paid IS NULL FROM offers WHERE offer = :offer", error="you have that {thing} already")
    affordable = Guard(
        sql=f"SELECT s.funds + {parameters.allowance} * (o.period - s.period) >= o.cost"
        " FROM offers o CROSS JOIN state s WHERE o.offer = :offer",
        error="that {thing} takes more {budget} than are left",
    )
    take = (
        f"UPDATE state SET funds = funds - (SELECT cost FROM offers WHERE offer = :offer)"
        f" + {parameters.allowance} * ((SELECT period FROM offers WHERE offer = :offer) - period),"
        " earned = earned + (SELECT paid FROM tape WHERE offer = :offer),"
        " period = (SELECT period FROM offers WHERE offer = :offer)",
        "UPDATE offers SET paid = (SELECT t.paid FROM tape t WHERE t.offer = :offer) WHERE offer = :offer",
    )
    if presentation is Presentation.WRITTEN:
        ordered = Guard(
            sql="SELECT o.period >= s.period FROM offers o CROSS JOIN state s WHERE o.offer = :offer",
            error="that {thing} belongs to a {term} that is over: list the {things} in the order of their {terms}",
        )
        plan = Parameter(name="plan", type="string")
        each = Each(parameter="plan", fields=(offer,), maximum=len(parameters.offers))
        guards = (going, free, ordered, affordable)
        return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=take),)
    now = Guard(
        sql="SELECT o.period = s.period FROM offers o CROSS JOIN state s WHERE o.offer = :offer",
        error="that {thing} cannot be taken in this {term}",
    )
    shown = "SELECT o.offer, o.worth, o.paid, s.funds, s.earned FROM offers o CROSS JOIN state s WHERE o.offer = :offer"
    tools = [
        Tool(name="view", kind="read", shape="row", result="SELECT period, funds, earned FROM state"),
        Tool(name="browse", kind="read",
             result="SELECT o.offer, o.period, o.sponsor, p.label, o.cost, o.claimed, o.worth, o.paid"
                    " FROM offers o JOIN sponsors p ON p.sponsor = o.sponsor ORDER BY o.offer"),
        Tool(name="appraise", kind="write", parameters=(offer,),
             guards=(
                 going, free,
                 Guard(sql="SELECT worth IS NULL FROM offers WHERE offer = :offer",
                       error="you know what that {thing} is worth already"),
                 Guard(sql=f"SELECT funds >= {_APPRAISAL} FROM state", error="there are no {budget} left for that"),
             ),
             effects=(
                 "UPDATE offers SET worth = (SELECT w.worth FROM worths w WHERE w.offer = :offer) WHERE offer = :offer",
                 f"UPDATE state SET funds = funds - {_APPRAISAL}",
             ),
             shape="row", result=shown),
        Tool(name="take", kind="write", parameters=(offer,), guards=(going, free, now, affordable), effects=take,
             shape="row", result=shown),
        Tool(name="advance", kind="clock", guards=(going,), shape="row",
             effects=(f"UPDATE state SET period = period + 1, funds = funds + {parameters.allowance}",),
             result="SELECT period, funds, earned FROM state"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(Tool(name="reveal", kind="read", result="SELECT offer, worth FROM worths ORDER BY offer"))
    return tuple(tools)
