"""`inventory`: fixed order cost, lead time, unmet demand waits, unknown demand, and a forecast that misleads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from random import Random
from statistics import fmean
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._inventory_solver import (
    Rules,
    Stock,
    base_stock,
    bayes_target,
    best_in_hindsight,
    expected_cost,
    realised_cost,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_NEVER = -1000
"""Threshold of a day on which nothing is ever ordered."""


class _Size(NamedTuple):
    days: int
    customers: int
    delay: int


_SIZES = {1: _Size(8, 4, 1), 2: _Size(9, 5, 1), 3: _Size(10, 4, 2), 4: _Size(11, 5, 2), 5: _Size(13, 5, 2)}
_CHANCES = ((15, 20, 70, 90), (15, 20, 80, 90))
"""What the true chance may be, in percent: on both sides of any claim, and far apart."""
_CLAIMS = (40, 50, 60)
_HALF = 50
"""Never the true chance; what a player assumes who knows how chances are drawn, and does not look."""
_GUESSES = (20, 30, 40, _HALF, 60, 80)
"""Chances that such a player may assume, in percent."""
_TIGHT = (0.2, 0.85)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""
_GUESSED = {"oracle": 0.74, "bayes": 0.78}
"""Most of the way from the default to a reference that one guess may bring on average over the chances."""


@dataclass(frozen=True)
class Inventory:
    """Parameters; amounts of money in units of `unit` minor units."""

    stock: Stock
    chance: int
    """True chance that a customer asks for one on a day, in percent."""
    claim: int
    """The forecast's chance, in percent."""
    unit: int

    @property
    def claimed(self) -> int:
        """Daily demand by the forecast, rounded; at least one."""
        return max(1, round(self.stock.customers * self.claim / 100))

    @property
    def enough(self) -> int:
        """What will be asked for by the forecast until an order of today has served its first day."""
        return min(self.stock.room, self.claimed * (self.stock.delay + 1))


@dataclass(frozen=True)
class Demands:
    """Tape: units asked for, by day."""

    wanted: tuple[int, ...]


class InventoryFamily(Family[Inventory, Demands]):
    """Periodic review with fixed cost, lead time and backlog over a finite horizon.

    The true chance is drawn evenly from four that everybody is told, whatever is forecast, after all else has
    been drawn so that each of them would do. `bayes` is exact: the prior is that law, demand is seen in full because
    it waits, so the belief is (days, units asked for) and the programme runs over day, inventory position and that
    count.
    """

    name: ClassVar[str] = "inventory"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Stock control with fixed order cost and lead time"
    kin: ClassVar[str] = "control"
    band: ClassVar[tuple[float, float]] = (0.15, 0.9)
    sources: ClassVar[tuple[str, ...]] = (
        "Scarf 1960, The optimality of (S, s) policies in the dynamic inventory problem",
        "Scarf 1959, Bayes solutions of the statistical inventory problem",
        "Wagner and Whitin 1958, Dynamic version of the economic lot size model",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Inventory:
        """All but the true chance is drawn again until no guess is good for every chance, and the default for none."""
        size = _SIZES[level]
        while True:
            cost = rng.randint(1, 3)
            stock = Stock(
                days=size.days, customers=size.customers, delay=size.delay, room=6 * size.customers,
                start=rng.randint(1, size.customers), fixed=rng.randint(2, 5), cost=cost, hold=rng.randint(2, 3),
                wait=rng.randint(2, 5), rush=cost + rng.randint(6, 14), chances=rng.choice(_CHANCES),
            )  # fmt: skip
            claim = rng.choice(_CLAIMS)
            if _is_fair([Inventory(stock, chance, claim, unit) for chance in stock.chances]):
                return Inventory(stock, rng.choice(stock.chances), claim, unit)

    def tape(self, parameters: Inventory, rng: Random) -> Demands:
        """One draw a customer and day."""
        stock = parameters.stock
        return Demands(
            tuple(
                sum(rng.randrange(100) < parameters.chance for _ in range(stock.customers)) for _ in range(stock.days)
            )
        )

    def labels(self, parameters: Inventory) -> int:
        """Nothing has a name of its own."""
        return 0

    def world(self, parameters: Inventory, tape: Demands, look: Look) -> World:
        """Interactive: `status`, `record`, `buy`, `close`; `law` where revealed. Written: `submit` thresholds."""
        stock = parameters.stock
        return World(
            id="inventory",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, stock.start, 0, 0),),
                "forecasts": ((1, parameters.claim),),
                "law": ((1, parameters.chance),),
                "tape": tuple((day, wanted) for day, wanted in enumerate(tape.wanted, 1)),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT day > {stock.days} FROM state",
        )

    def utility(self, parameters: Inventory) -> str:
        """Minus all costs; days that were not closed are settled as if nothing more had been ordered."""
        stock, unit = parameters.stock, parameters.unit
        return (
            "SELECT -state.spent - coalesce((SELECT sum(CASE WHEN level >= 0"
            f" THEN {stock.hold * unit} * level ELSE -({stock.wait * unit} + CASE WHEN today = {stock.days}"
            f" THEN {stock.rush * unit} ELSE 0 END) * level END) FROM (SELECT tape.day AS today, state.stock"
            " + coalesce((SELECT sum(incoming.quantity) FROM incoming WHERE incoming.due > state.day"
            " AND incoming.due <= tape.day), 0) - (SELECT sum(earlier.wanted) FROM tape AS earlier"
            " WHERE earlier.day >= state.day AND earlier.day <= tape.day) AS level"
            " FROM tape WHERE tape.day >= state.day)), 0) FROM state"
        )

    def policies(self, parameters: Inventory, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle keeps to its (s, S) of each day; the default orders by the forecast every day."""
        stock = parameters.stock
        found = {
            "oracle": _thresholds(stock, base_stock(stock, parameters.chance), presentation),
            "default": _default(parameters, presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(stock)
        return found

    def attacks(self, parameters: Inventory, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Order without looking: all days' forecast at once, the most, too little, nothing, hoards; as for 50 %."""
        stock = parameters.stock
        days, room = stock.days, stock.room
        always, hoard = [(room - 1, room)] * days, [(room // 2, room)] * days
        all_days = min(room, stock.start + parameters.claimed * days)
        once = [(all_days - 1, all_days)] + [(_NEVER, 1)] * (days - 1)
        late = [(_NEVER, 1)] * (days // 2) + [(rng.randint(0, 2), room)] * (days - days // 2)
        return {
            "no_probing": _thresholds(stock, once, presentation),
            "constant": _thresholds(stock, always, presentation),
            "greedy": _thresholds(stock, hoard, presentation),
            "hand_to_mouth": _thresholds(stock, [(0, 1)] * days, presentation),
            "clock_only": _thresholds(stock, [(_NEVER, 1)] * days, presentation),
            "late": _thresholds(stock, late, presentation),
            "half": _thresholds(stock, base_stock(stock, _HALF), presentation),
        }

    def solved(self, parameters: Inventory, tape: Demands) -> float:
        """Costs of the oracle's thresholds on the tape."""
        rules = base_stock(parameters.stock, parameters.chance)
        return float(-parameters.unit * realised_cost(parameters.stock, rules, tape.wanted))

    def expected(self, parameters: Inventory) -> Mapping[str, float]:
        """Given the true chance, all exact."""
        return {name: -parameters.unit * cost for name, cost in _costs(parameters, bayes=True).items()}

    def hindsight(self, parameters: Inventory, tape: Demands) -> float:
        """The cheapest orders, demands known in advance."""
        return float(-parameters.unit * best_in_hindsight(parameters.stock, tape.wanted))

    def facts(self, parameters: Inventory, presentation: Presentation) -> Mapping[str, Fact]:
        """Costs and times for everybody; in `written` the true chance too."""
        stock, unit = parameters.stock, parameters.unit
        facts: dict[str, Fact] = {
            "days": stock.days, "customers": stock.customers, "delay": stock.delay, "start": stock.start,
            "room": stock.room, "fixed": stock.fixed * unit, "cost": stock.cost * unit, "hold": stock.hold * unit,
            "wait": stock.wait * unit, "rush": stock.rush * unit, "claim": parameters.claim,
            "claimed": parameters.claimed, "arrival": _arrival(stock.delay),
            "chances": ", ".join(map(str, stock.chances[:-1])) + f" or {stock.chances[-1]}",
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            facts["chance"] = parameters.chance
            facts["odds"] = Grid(("wanted", "probability"), _odds(stock.customers, parameters.chance))
        return facts

    def turns(self, parameters: Inventory, presentation: Presentation) -> int:
        """Every day an order, a close and two looks."""
        return 5 if presentation is Presentation.WRITTEN else 4 * parameters.stock.days + 10


def _arrival(delay: int) -> str:
    if delay == 0:
        return "at once, before that day's demand"
    return f"{delay} {'day' if delay == 1 else 'days'} later, in the morning, before that day's demand"


def _odds(customers: int, chance: int) -> tuple[tuple[int, str], ...]:
    share = chance / 100
    odds = [comb(customers, k) * share**k * (1 - share) ** (customers - k) for k in range(customers + 1)]
    return tuple((wanted, f"{odd:.5f}") for wanted, odd in enumerate(odds))


Target = Callable[[int, int, int], int]
"""Position to order up to, from day, position and units seen."""


def _kept(rules: Rules) -> Target:
    """The target of (s, S) rules."""

    def target(day: int, position: int, seen: int) -> int:
        low, high = rules[day]
        return max(position, high) if position <= low else position

    return target


@lru_cache(maxsize=256)
def _costs(parameters: Inventory, *, bayes: bool) -> Mapping[str, float]:
    stock, chance, claimed = parameters.stock, parameters.chance, parameters.claimed

    def default(day: int, position: int, seen: int) -> int:
        if day >= stock.days - stock.delay:
            return position
        return max(position, min(position + claimed, parameters.enough))

    policies: dict[str, Target] = {
        "oracle": _kept(base_stock(stock, chance)), "default": default, "idle": lambda day, position, seen: position,
    }  # fmt: skip
    if bayes:
        policies["bayes"] = lambda day, position, seen: bayes_target(stock, day, position, seen)
    return {name: expected_cost(stock, chance, policy, counts=name == "bayes") for name, policy in policies.items()}


def _default_share(parameters: Inventory) -> float:
    costs = _costs(parameters, bayes=False)
    if costs["idle"] - costs["oracle"] < 0.2 * costs["idle"]:
        return 0.0
    return (costs["idle"] - costs["default"]) / (costs["idle"] - costs["oracle"])


def guess_score(parameters: Inventory, guess: int, reference: str) -> float:
    """Expected place, between default (0) and reference (1), of the best rules for a guessed chance, in percent."""
    costs = _costs(parameters, bayes=reference == "bayes")
    cost = expected_cost(parameters.stock, parameters.chance, _kept(base_stock(parameters.stock, guess)))
    return min(1.0, max(0.0, (costs["default"] - cost) / (costs["default"] - costs[reference])))


def _is_fair(cases: list[Inventory]) -> bool:
    """Whether the default misleads whichever case is true, and no guess is good enough for all of them."""
    if not all(_TIGHT[0] <= _default_share(case) <= _TIGHT[1] for case in cases):
        return False
    return all(
        fmean(guess_score(case, guess, reference) for case in cases) <= most
        for reference, most in _GUESSED.items()
        for guess in _GUESSES
    )


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def whole(*names: str, key: str = "") -> tuple[Column, ...]:
        return tuple(Column(name=name, type="integer", role="key" if name == key else "hard") for name in names)

    return (
        Table(name="state", columns=whole("day", "stock", "bought", "spent")),
        Table(name="forecasts", columns=whole("id", "claimed", key="id")),
        Table(name="incoming", columns=whole("id", "placed", "due", "quantity", key="id")),
        Table(name="sales", columns=whole("day", "wanted", "stock", "spent", key="day")),
        Table(name="law", hidden=presentation is not Presentation.REVEALED, columns=whole("id", "chance", key="id")),
        Table(name="tape", hidden=True, columns=whole("day", "wanted", key="day")),
    )


_POSITION = "(stock + coalesce((SELECT sum(incoming.quantity) FROM incoming WHERE incoming.due > state.day), 0))"
_SHOWN = "day, state.stock, bought, spent"


def _tools(parameters: Inventory, presentation: Presentation) -> tuple[Tool, ...]:
    stock, unit = parameters.stock, parameters.unit
    running = Guard(sql=f"SELECT day <= {stock.days} FROM state", error="the last day is closed")
    if presentation is Presentation.WRITTEN:
        return (_submit(stock, unit, running),)
    tools = [
        Tool(name="status", kind="read", shape="row",
             result=f"SELECT {_SHOWN}, claimed FROM state CROSS JOIN forecasts LIMIT 1"),
        Tool(name="deliveries", kind="read",
             result="SELECT placed, due, quantity FROM incoming CROSS JOIN state WHERE due > day ORDER BY id"),
        Tool(name="record", kind="read", result="SELECT day, wanted, stock, spent FROM sales ORDER BY day"),
        Tool(name="buy", kind="write", shape="row",
             parameters=(Parameter(name="quantity", type="integer", minimum=1, maximum=stock.room + 1000),),
             guards=(
                 running,
                 Guard(sql="SELECT bought = 0 FROM state", error="one order a day: today's is placed already"),
                 Guard(sql=f"SELECT {_POSITION} + :quantity <= {stock.room} FROM state",
                       error="more than {room}: what is there, less what is owed, plus what is on its way"),
             ),
             effects=_buying(stock, unit, ":quantity", ""),
             result="SELECT placed, due, quantity, spent FROM incoming CROSS JOIN state ORDER BY id DESC LIMIT 1"),
        Tool(name="close", kind="clock", guards=(running,), effects=_closing(stock, unit), shape="row",
             result="SELECT sales.day, wanted, state.stock, state.spent FROM sales CROSS JOIN state"
                    " ORDER BY sales.day DESC LIMIT 1"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(Tool(name="law_book", kind="read", shape="row", result="SELECT chance FROM law"))
    return tuple(tools)


def _submit(stock: Stock, unit: int, running: Guard) -> Tool:
    low = Parameter(name="low", type="integer", minimum=_NEVER, maximum=stock.room - 1)
    high = Parameter(name="high", type="integer", minimum=1, maximum=stock.room)
    most = Parameter(name="most", type="integer", minimum=1, maximum=stock.room + 1000, required=False)
    above = Guard(sql="SELECT :low < :high", error="{high} must be above {low}")
    wished = f"min(:high - {_POSITION}, coalesce(:most, :high - {_POSITION}))"
    return Tool(
        name="submit", kind="submit", parameters=(Parameter(name="plan", type="string"),),
        each=Each(parameter="plan", fields=(low, high, most), maximum=stock.days), guards=(running, above),
        effects=(*_buying(stock, unit, wished, f" AND {_POSITION} <= :low"), *_closing(stock, unit)),
    )  # fmt: skip


def _buying(stock: Stock, unit: int, quantity: str, condition: str) -> tuple[str, ...]:
    """An order of `quantity`, under a condition; `state.bought` says how much was ordered this day."""
    arrived = " stock = stock + bought," if stock.delay == 0 else ""
    return (
        f"UPDATE state SET bought = {quantity} WHERE bought = 0{condition}",
        f"INSERT INTO incoming(placed, due, quantity) SELECT day, day + {stock.delay}, bought FROM state"
        " WHERE bought > 0",
        f"UPDATE state SET{arrived} spent = spent + {stock.fixed * unit} + {stock.cost * unit} * bought"
        " WHERE bought > 0",
    )


def _closing(stock: Stock, unit: int) -> tuple[str, ...]:
    """Demand comes, the day is charged, the next morning's delivery arrives."""
    late = f"({stock.wait * unit} + CASE WHEN day = {stock.days} THEN {stock.rush * unit} ELSE 0 END)"
    return (
        "UPDATE state SET stock = stock - (SELECT tape.wanted FROM tape WHERE tape.day = state.day)",
        f"UPDATE state SET spent = spent + CASE WHEN stock >= 0 THEN {stock.hold * unit} * stock"
        f" ELSE -{late} * stock END",
        "INSERT INTO sales(day, wanted, stock, spent) SELECT tape.day, tape.wanted, state.stock, state.spent"
        " FROM state JOIN tape ON tape.day = state.day",
        "UPDATE state SET day = day + 1, bought = 0",
        "UPDATE state SET stock = stock + coalesce((SELECT sum(incoming.quantity) FROM incoming"
        " WHERE incoming.due = state.day AND incoming.placed < state.day), 0)",
    )


def _thresholds(
    stock: Stock, rules: list[tuple[int, int]], presentation: Presentation, most: int | None = None
) -> Policy:
    """On each day: at or below `low`, order up to `high`, but no more than `most`."""

    def target(day: int, position: int, seen: int) -> int:
        low, high = rules[day]
        wished = max(position, high) if position <= low else position
        return wished if most is None else min(wished, position + most)

    if presentation is Presentation.WRITTEN:
        cap = {} if most is None else {"most": most}
        plan = json.dumps([{"low": low, "high": high, **cap} for low, high in rules])
        return lambda player: player.call("submit", plan=plan)
    return _interactive(stock, target)


def _default(parameters: Inventory, presentation: Presentation) -> Policy:
    """The forecast of a day, every day on which an order can still arrive, while more seems to be needed till then."""
    stock = parameters.stock
    enough = parameters.enough
    rules = [(enough - 1, enough)] * (stock.days - stock.delay) + [(_NEVER, 1)] * stock.delay
    return _thresholds(stock, rules, presentation, most=parameters.claimed)


def _bayes(stock: Stock) -> Policy:
    """Minimise the expected cost under the uniform prior."""
    return _interactive(stock, lambda day, position, seen: bayes_target(stock, day, position, seen))


def _interactive(stock: Stock, target: Callable[[int, int, int], int]) -> Policy:
    """Order up to `target(day, position, units seen)` each day; days from 0."""

    def play(player: Player) -> None:
        position, seen = stock.start, 0
        for day in range(stock.days):
            wished = target(day, position, seen)
            if wished > position:
                player.call("buy", quantity=wished - position)
                position = wished
            wanted = player.call("close")["wanted"]
            position, seen = position - wanted, seen + wanted

    return play
