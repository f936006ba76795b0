"""`pricing`: a finite stock, a finite season, one visitor a day, and a market of unknown kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._pricing_market import (
    STEP,
    Pricing,
    attack_tables,
    default_table,
    draw_market,
)
from envsynth.generators.mechanism.families._pricing_solver import (
    Counts,
    PriceTable,
    after,
    bayes_takings,
    belief_programme,
    best_value,
    price_table,
    table_value,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World


@dataclass(frozen=True)
class Visitors:
    """Tape: a visitor buys where the chance of a sale, in percent, exceeds the draw (0, 5, ... 95), by day."""

    draws: tuple[int, ...]


class PricingFamily(Family[Pricing, Visitors]):
    """Revenue from a finite stock by a finite price list.

    The true kind is drawn evenly from those listed but for the claimed one, after all else has been drawn so that each
    of them would do. `bayes` is exact: the prior is that law, and the belief programme runs over sales and refusals at
    each price, of which stock and day follow.
    """

    name: ClassVar[str] = "pricing"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Pricing a finite stock over a finite season"
    kin: ClassVar[str] = "control"
    band: ClassVar[tuple[float, float]] = (0.1, 0.9)
    sources: ClassVar[tuple[str, ...]] = (
        "Gallego and van Ryzin 1994, Optimal dynamic pricing of inventories with stochastic demand over finite"
        " horizons",
        "Aviv and Pazgal 2005, A partially observed Markov decision process for dynamic pricing",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Pricing:
        """Claim and kinds until no guess is good for all kinds, and the default for none; the true one comes last."""
        return draw_market(level, rng, unit)

    def tape(self, parameters: Pricing, rng: Random) -> Visitors:
        """One draw a day."""
        return Visitors(tuple(STEP * rng.randrange(100 // STEP) for _ in range(parameters.days)))

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
            "default": _by_table(parameters, default_table(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(parameters)
        return found

    def attacks(self, parameters: Pricing, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Trust the claim; all prices in turn; and one price all along or the best on average, where these are bad."""
        tables = attack_tables(parameters)
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
            "bayes": bayes_takings(season, parameters.possible, curve),
            "default": table_value(season, curve, default_table(parameters)),
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
            "others_count": len(parameters.possible),
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
    """Maximise the expected takings under the uniform prior over the kinds that are possible."""

    def play(player: Player) -> None:
        programme = belief_programme(parameters.season, parameters.possible)
        counts: Counts = ((0, 0),) * len(parameters.prices)
        stock = parameters.stock
        for _ in range(parameters.days):
            if stock:
                price = programme.best(counts)
                sold = player.call("ask", price=parameters.prices[price] * parameters.unit)["sold"]
                counts, stock = after(counts, price, sold), stock - sold

    return play
