"""`pricing`: a finite stock, a finite season, one visitor a day, and a market of unknown kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._pricing_solver import (
    Counts,
    Curve,
    PriceTable,
    Season,
    after,
    bayes_takings,
    belief_programme,
    best_value,
    price_table,
    table_value,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_STEP = 5
"""Chances are multiples of 5 percent, so that they are stated exactly."""


class _Size(NamedTuple):
    days: int
    stock: int
    kinds: int


_SIZES = {
    1: _Size(13, 4, 3),
    2: _Size(14, 4, 4),
    3: _Size(15, 4, 5),
    4: _Size(15, 5, 6),
    5: _Size(15, 5, 7),
}
_TIGHT = {1: (0.42, 0.7), 2: (0.4, 0.68), 3: (0.38, 0.66), 4: (0.36, 0.64), 5: (0.32, 0.6)}
"""Where a draw's default must lie in expectation, by level."""
_SIMPLE = 0.92
"""Most of the optimum that a rule which looks at nothing may bring; the best one price is rarely below nine tenths."""
_TRUSTED = 0.8
"""Most of the optimum that the trusted claim may bring."""
_TURNS = 0.82
"""Most of the optimum that all prices in turn may bring."""
_TRIES = 12
"""Claims tried for one market."""
_LADDER = ((4, 5), (7, 9), (12, 16))
"""Ranges of the prices, in units of money."""


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
    """The kind that it is said to be."""
    unit: int

    @property
    def season(self) -> Season:
        """What the solver needs besides a curve."""
        return self.prices, self.days, self.stock


@dataclass(frozen=True)
class Visitors:
    """Tape: a visitor buys where the chance of a sale, in percent, exceeds the draw (0, 5, ... 95), by day."""

    draws: tuple[int, ...]


class PricingFamily(Family[Pricing, Visitors]):
    """Revenue from a finite stock by a finite price list.

    `bayes` is exact: the prior is uniform over the listed kinds of market, and the belief programme runs over sales
    and refusals at each price, of which stock and day follow.
    """

    name: ClassVar[str] = "pricing"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Pricing a finite stock over a finite season"
    kin: ClassVar[str] = "control"
    band: ClassVar[tuple[float, float]] = (0.15, 0.9)
    sources: ClassVar[tuple[str, ...]] = (
        "Gallego and van Ryzin 1994, Optimal dynamic pricing of inventories with stochastic demand over finite"
        " horizons",
        "Aviv and Pazgal 2005, A partially observed Markov decision process for dynamic pricing",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Pricing:
        """A market in which no simple rule comes near, then other kinds, one of them claimed, until that misleads."""
        size, (low, high) = _SIZES[level], _TIGHT[level]
        while True:
            prices, curve = tuple(rng.randint(*bounds) for bounds in _LADDER), _draw_curve(rng)
            market = Pricing(prices, size.days, size.stock, (curve,), 0, 0, unit)
            shares = [_share(market, _usual_table(market, price)) for price in range(len(prices))]
            if not any(low <= share <= high for share in shares) or not _is_subtle(market):
                continue
            for _ in range(_TRIES):
                kinds = _draw_kinds(size.kinds, curve, rng)
                kind = kinds.index(curve)
                claim = rng.choice([number for number in range(size.kinds) if number != kind])
                drawn = Pricing(prices, size.days, size.stock, kinds, kind, claim, unit)
                if not low <= shares[_fluid_price(drawn)] <= high:
                    continue
                if _share(drawn, price_table(drawn.season, kinds[claim])) <= _TRUSTED:
                    return drawn

    def tape(self, parameters: Pricing, rng: Random) -> Visitors:
        """One draw a day."""
        return Visitors(tuple(_STEP * rng.randrange(100 // _STEP) for _ in range(parameters.days)))

    def labels(self, parameters: Pricing) -> int:
        """One a kind of market."""
        return len(parameters.kinds)

    def world(self, parameters: Pricing, tape: Visitors, look: Look) -> World:
        """Interactive: `status`, `record`, `ask`; `law_book` where revealed. Written: `submit` a price table."""
        amounts = [price * parameters.unit for price in parameters.prices]
        labels = look.labels
        return World(
            id="pricing",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, parameters.stock, 0),),
                "kinds": tuple((kind, labels[kind - 1]) for kind in range(1, len(parameters.kinds) + 1)),
                "curves": tuple(
                    (kind, price, chance)
                    for kind, curve in enumerate(parameters.kinds, 1)
                    for price, chance in zip(amounts, curve, strict=True)
                ),
                "claims": ((1, parameters.claim + 1),),
                "law": ((1, parameters.kind + 1),),
                "tape": tuple(enumerate(tape.draws, 1)),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT stock = 0 OR day > {parameters.days} FROM state",
        )

    def utility(self, parameters: Pricing) -> str:
        """What was taken."""
        return "SELECT earned FROM state"

    def policies(self, parameters: Pricing, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle prices by day and stock; the default believes the claim, and tries every price."""
        best = price_table(parameters.season, parameters.kinds[parameters.kind])
        found = {
            "oracle": _by_table(parameters, best, presentation),
            "default": _by_table(parameters, _default_table(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(parameters)
        return found

    def attacks(self, parameters: Pricing, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Trust the claim; the dearest, the cheapest or the middle price all along; all in turn."""
        trusted = price_table(parameters.season, parameters.kinds[parameters.claim])
        tables = {"no_probing": trusted, "in_turn": _in_turn(parameters), **_simple_tables(parameters)}
        return {name: _by_table(parameters, table, presentation) for name, table in tables.items()}

    def solved(self, parameters: Pricing, tape: Visitors) -> float:
        """What the oracle's price table takes on the tape."""
        curve = parameters.kinds[parameters.kind]
        table, stock, earned = price_table(parameters.season, curve), parameters.stock, 0
        for day, draw in enumerate(tape.draws):
            if stock:
                price = table[day][stock]
                sold = draw < curve[price]
                earned, stock = earned + sold * parameters.prices[price], stock - sold
        return float(parameters.unit * earned)

    def expected(self, parameters: Pricing) -> Mapping[str, float]:
        """Given the kind, all exact; so `bayes` is not what its player expects, but what the kind lets it have."""
        season, curve = parameters.season, parameters.kinds[parameters.kind]
        takings = {
            "oracle": best_value(season, curve),
            "bayes": bayes_takings(season, parameters.kinds, curve),
            "default": table_value(season, curve, _default_table(parameters)),
            "idle": 0.0,
        }
        return {name: parameters.unit * earned for name, earned in takings.items()}

    def hindsight(self, parameters: Pricing, tape: Visitors) -> float:
        """The stock sold to those who pay the most, each at the dearest price they take."""
        curve = parameters.kinds[parameters.kind]
        most = [
            max((price for price, chance in zip(parameters.prices, curve, strict=True) if draw < chance), default=0)
            for draw in tape.draws
        ]
        return float(parameters.unit * sum(sorted(most, reverse=True)[: parameters.stock]))

    def facts(self, parameters: Pricing, presentation: Presentation) -> Mapping[str, Fact]:
        """Days, stock, prices, every kind of market; in `written` the true one."""
        amounts = [price * parameters.unit for price in parameters.prices]
        numbered = tuple((kind, *curve) for kind, curve in enumerate(parameters.kinds, 1))
        facts: dict[str, Fact] = {
            "days": parameters.days, "stock_at_start": parameters.stock, "kinds_count": len(parameters.kinds),
            "price_list": ", ".join(map(str, amounts[:-1])) + f" or {amounts[-1]}", "claim": parameters.claim + 1,
            "entries": parameters.days * parameters.stock, "first_price": str(amounts[0]),
            "curves_grid": Grid(("kind", *(f"% at {amount}" for amount in amounts)), numbered),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            chances = zip(amounts, parameters.kinds[parameters.kind], strict=True)
            facts["true_kind"] = parameters.kind + 1
            facts["law_grid"] = Grid(("price", "chance"), tuple(chances))
        return facts

    def turns(self, parameters: Pricing, presentation: Presentation) -> int:
        """Every day a price and two looks."""
        return 5 if presentation is Presentation.WRITTEN else 3 * parameters.days + 10


def _draw_curve(rng: Random) -> Curve:
    """A curve that falls from price to price."""
    while True:
        curve = [rng.randint(6, 19)]
        while len(curve) < len(_LADDER):
            curve.append(curve[-1] - rng.randint(1, 9))
        if curve[-1] > 0:
            return tuple(_STEP * chance for chance in curve)


def _draw_kinds(number: int, curve: Curve, rng: Random) -> tuple[Curve, ...]:
    """So many distinct curves in any order, the given one among them."""
    kinds = [curve]
    while len(kinds) < number:
        other = _draw_curve(rng)
        if other not in kinds:
            kinds.append(other)
    rng.shuffle(kinds)
    return tuple(kinds)


def _fluid_price(parameters: Pricing) -> int:
    """The one price that sells best if demand is its average and the claim is true (Gallego and van Ryzin 1994)."""
    curve = parameters.kinds[parameters.claim]
    return max(
        range(len(curve)),
        key=lambda price: parameters.prices[price] * min(100 * parameters.stock, parameters.days * curve[price]),
    )


def _fixed_table(parameters: Pricing, price: int) -> PriceTable:
    return ((price,) * (parameters.stock + 1),) * parameters.days


def _default_table(parameters: Pricing) -> PriceTable:
    """The price that is best on average if the claim is true; every third day each price in turn."""
    return _usual_table(parameters, _fluid_price(parameters))


def _usual_table(parameters: Pricing, price: int) -> PriceTable:
    """A price, and on every third day each one in turn."""
    asked = [(day // 3) % len(parameters.prices) if day % 3 == 2 else price for day in range(parameters.days)]
    return tuple((one,) * (parameters.stock + 1) for one in asked)


def _share(parameters: Pricing, table: PriceTable) -> float:
    """What a table of prices takes of what the best one does, in expectation."""
    season, curve = parameters.season, parameters.kinds[parameters.kind]
    return table_value(season, curve, table) / best_value(season, curve)


def _is_subtle(parameters: Pricing) -> bool:
    """Whether no rule that looks at nothing comes near the optimum."""
    constant = _simple_tables(parameters).values()
    return _share(parameters, _in_turn(parameters)) <= _TURNS and all(
        _share(parameters, table) <= _SIMPLE for table in constant
    )


def _in_turn(parameters: Pricing) -> PriceTable:
    prices = len(parameters.prices)
    return tuple((day % prices,) * (parameters.stock + 1) for day in range(parameters.days))


def _simple_tables(parameters: Pricing) -> dict[str, PriceTable]:
    """Rules that look at nothing but the calendar."""
    days, prices = range(parameters.days), len(parameters.prices)
    asked = {
        "greedy": [prices - 1 for _ in days],
        "sell_off": [0 for _ in days],
        "constant": [prices // 2 for _ in days],
    }
    return {name: tuple((price,) * (parameters.stock + 1) for price in row) for name, row in asked.items()}


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def whole(*names: str, keys: tuple[str, ...] = ()) -> tuple[Column, ...]:
        return tuple(Column(name=name, type="integer", role="key" if name in keys else "hard") for name in names)

    label = Column(name="label", type="text")
    return (
        Table(name="state", columns=whole("day", "stock", "earned")),
        Table(name="kinds", columns=(*whole("kind", keys=("kind",)), label)),
        Table(name="curves", columns=whole("kind", "price", "chance", keys=("kind", "price"))),
        Table(name="claims", columns=whole("id", "kind", keys=("id",))),
        Table(name="sales", columns=whole("day", "price", "sold", keys=("day",))),
        Table(name="law", hidden=presentation is not Presentation.REVEALED, columns=whole("id", "kind", keys=("id",))),
        Table(name="tape", hidden=True, columns=whole("day", "draw", keys=("day",))),
    )


_ASKING = (
    "INSERT INTO sales(day, price, sold) SELECT state.day, :price, tape.draw < curves.chance FROM state"
    " JOIN tape ON tape.day = state.day CROSS JOIN law"
    " JOIN curves ON curves.kind = law.kind AND curves.price = :price{condition}",
    "UPDATE state SET earned = earned + :price * (SELECT sales.sold FROM sales WHERE sales.day = state.day),"
    " stock = stock - (SELECT sales.sold FROM sales WHERE sales.day = state.day), day = day + 1"
    " WHERE day = (SELECT max(sales.day) FROM sales)",
)


def _tools(parameters: Pricing, presentation: Presentation) -> tuple[Tool, ...]:
    amounts = tuple(price * parameters.unit for price in parameters.prices)
    price = Parameter(name="price", type="integer", enum=amounts)
    effects = tuple(sql.format(condition="") for sql in _ASKING)
    if presentation is Presentation.WRITTEN:
        return (_submit(parameters, price),)
    guards = (
        Guard(sql=f"SELECT day <= {parameters.days} FROM state", error="the {season_word} is over"),
        Guard(sql="SELECT stock > 0 FROM state", error="there is nothing left to sell"),
    )
    tools = [
        Tool(name="status", kind="read", shape="row",
             result="SELECT day, stock, earned, claims.kind, label FROM state CROSS JOIN claims"
                    " JOIN kinds ON kinds.kind = claims.kind LIMIT 1"),
        Tool(name="market", kind="read",
             result="SELECT kinds.kind, label, price, chance FROM curves JOIN kinds ON kinds.kind = curves.kind"
                    " ORDER BY kinds.kind, price"),
        Tool(name="record", kind="read", result="SELECT day, price, sold FROM sales ORDER BY day"),
        Tool(name="ask", kind="clock", parameters=(price,), guards=guards, effects=effects, shape="row",
             result="SELECT price, sold, state.day, stock, earned FROM sales CROSS JOIN state"
                    " ORDER BY sales.day DESC LIMIT 1"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(
            Tool(name="law_book", kind="read",
                 result="SELECT law.kind, price, chance FROM law JOIN curves ON curves.kind = law.kind ORDER BY price")
        )  # fmt: skip
    return tuple(tools)


def _submit(parameters: Pricing, price: Parameter) -> Tool:
    """A price by day and stock; an entry counts where the season comes to just this stock on this day."""
    stock = parameters.stock
    day = Parameter(name="day", type="integer", minimum=1, maximum=parameters.days)
    left = Parameter(name="left_over", type="integer", minimum=1, maximum=stock)
    order = Guard(
        sql=f"SELECT :position = (:day - 1) * {stock} + :left_over - 1",
        error="every {day} with every {left_over} from 1 to {stock_at_start}, in this order, none left out",
    )
    condition = " WHERE state.day = :day AND state.stock = :left_over"
    effects = (
        _ASKING[0].format(condition=condition),
        _ASKING[1] + " AND day = :day AND stock = :left_over",
    )
    return Tool(
        name="submit", kind="submit", parameters=(Parameter(name="plan", type="string"),),
        each=Each(parameter="plan", fields=(day, left, price), maximum=parameters.days * stock), guards=(order,),
        effects=effects,
    )  # fmt: skip


def _by_table(parameters: Pricing, table: PriceTable, presentation: Presentation) -> Policy:
    """Ask what a table says until the season or the stock is over."""
    amounts = [price * parameters.unit for price in parameters.prices]

    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            plan = [
                {"day": day + 1, "left_over": left, "price": amounts[table[day][left]]}
                for day in range(parameters.days)
                for left in range(1, parameters.stock + 1)
            ]
            player.call("submit", plan=json.dumps(plan))
            return
        stock = parameters.stock
        for day in range(parameters.days):
            if stock:
                stock -= player.call("ask", price=amounts[table[day][stock]])["sold"]

    return play


def _bayes(parameters: Pricing) -> Policy:
    """Maximise the expected takings under the uniform prior over kinds."""

    def play(player: Player) -> None:
        programme = belief_programme(parameters.season, parameters.kinds)
        counts: Counts = ((0, 0),) * len(parameters.prices)
        stock = parameters.stock
        for _ in range(parameters.days):
            if stock:
                price = programme.best(counts)
                sold = player.call("ask", price=parameters.prices[price] * parameters.unit)["sold"]
                counts, stock = after(counts, price, sold), stock - sold

    return play
