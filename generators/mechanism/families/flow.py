"""`flow`: weekly shipments from sources to markets over lanes that cost more than their quotes say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import ClassVar, NamedTuple

import networkx as nx

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World


class _Size(NamedTuple):
    sources: int
    markets: int
    weeks: int
    dear: int
    """Chance that a lane costs far more than its quote, per cent."""
    swing: int
    """Abstract units by which a week's cost of a lane may differ from the usual."""
    ratio: tuple[float, float]
    """What the default earns of the optimum."""


_SIZES = {
    1: _Size(2, 3, 2, 35, 0, (0.5, 0.75)),
    2: _Size(3, 3, 2, 40, 1, (0.45, 0.7)),
    3: _Size(3, 4, 3, 40, 1, (0.35, 0.6)),
    4: _Size(3, 5, 3, 45, 2, (0.25, 0.52)),
    5: _Size(4, 6, 4, 45, 2, (0.2, 0.45)),
}
_BEATEN = 0.65
"""Share of the way from the default to the optimum that no play without probing may expect."""

Rates = tuple[tuple[int, ...], ...]
"""Minor units for one piece, by source and market."""


@dataclass(frozen=True)
class Flow:
    """Parameters; sources and markets are numbered from 0 here, from 1 in the world."""

    supplies: tuple[tuple[int, ...], ...]
    """Pieces by week and source; what is not shipped in its week is lost."""
    demands: tuple[tuple[int, ...], ...]
    """Most pieces by week and market."""
    prices: tuple[int, ...]
    """Minor units that a market pays for one piece."""
    quoted: Rates
    usual: Rates
    """What a lane costs on average."""
    swing: int
    """Abstract units by which a week's cost may differ from the usual."""
    trial: int
    """Price of a trial, minor units."""
    unit: int


@dataclass(frozen=True)
class Surcharges:
    """Tape: by week, source and market, what a piece costs above the usual, minor units."""

    extras: tuple[Rates, ...]


class Shipment(NamedTuple):
    """One booking."""

    source: int
    market: int
    amount: int


class FlowFamily(Family[Flow, Surcharges]):
    """Transport problem by week with hidden unit costs, one booking a lane and week.

    A week's surcharge shows only after the booking, so that shipping by the usual costs is the best that the oracle
    can do. There is no `bayes`: up to 24 lanes with independent beliefs make a dynamic programme over polytopes, for
    which no exact method of reasonable time is known. The reference is the oracle.
    """

    name: ClassVar[str] = "flow"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Transport over lanes with hidden unit costs"
    kin: ClassVar[str] = "planning"
    sources: ClassVar[tuple[str, ...]] = (
        "Hitchcock 1941, The distribution of a product from several sources to numerous localities",
        "Orlin 1997, A polynomial time primal network simplex algorithm for minimum cost flows",
    )
    band: ClassVar[tuple[float, float]] = (0.15, 0.8)

    def sample(self, level: int, rng: Random, unit: int) -> Flow:
        """Dear lanes are likelier where the quote is low, so that quotes lead to them."""
        size = _SIZES[level]
        low, high = size.ratio
        while True:
            drawn = _draw(size, rng, unit)
            best, default = _total(drawn, _oracle(drawn)), _total(drawn, _default(drawn))
            if not low * best <= default <= high * best:
                continue
            careless = max(_total(drawn, plan) for plan in _careless(drawn).values())
            if careless - default < _BEATEN * (best - default):
                return drawn

    def tape(self, parameters: Flow, rng: Random) -> Surcharges:
        """One draw a week and lane."""
        swing, unit = parameters.swing, parameters.unit
        return Surcharges(
            tuple(
                tuple(tuple(unit * rng.randint(-swing, swing) for _ in row) for row in parameters.usual)
                for _ in parameters.supplies
            )
        )

    def labels(self, parameters: Flow) -> int:
        """One a source, then one a market."""
        return len(parameters.usual) + len(parameters.prices)

    def world(self, parameters: Flow, tape: Surcharges, look: Look) -> World:
        """Interactive: `ship`, `trial`, `advance`, and views. Written: `submit` with bookings by week."""
        sources = len(parameters.usual)
        lanes = tuple(_lanes(parameters))
        return World(
            id="flow",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, 0),),
                "sources": tuple((i + 1, look.labels[i]) for i in range(sources)),
                "markets": tuple(
                    (j + 1, look.labels[sources + j], price) for j, price in enumerate(parameters.prices)
                ),
                "stock": _by_week(parameters.supplies),
                "wants": _by_week(parameters.demands),
                "lanes": tuple((i + 1, j + 1, parameters.quoted[i][j], None, None) for i, j in lanes),
                "costs": tuple((i + 1, j + 1, parameters.usual[i][j]) for i, j in lanes),
                "tape": tuple(
                    (week, i + 1, j + 1, extras[i][j]) for week, extras in enumerate(tape.extras, 1) for i, j in lanes
                ),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT week > {len(parameters.supplies)} FROM state",
        )  # fmt: skip

    def utility(self, parameters: Flow) -> str:
        """Sales less freight and trials."""
        return "SELECT balance FROM state"

    def policies(self, parameters: Flow, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle ships each week's best flow; the default spreads each source evenly over what quotes allow."""
        return {
            "oracle": _ship(_oracle(parameters), presentation),
            "default": _ship(_default(parameters), presentation),
        }

    def attacks(self, parameters: Flow, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Shipments without trials, weeks left out; and, where there are trials, nothing but these."""
        found = {name: _ship(plan, presentation) for name, plan in _careless(parameters).items()}
        if presentation is not Presentation.WRITTEN:
            found["overprobe"] = _overprobe(parameters)
        return found

    def solved(self, parameters: Flow, tape: Surcharges) -> float:
        """The oracle's shipments at the tape's costs."""
        plans = zip(_oracle(parameters), tape.extras, strict=True)
        return float(sum(_profit(parameters.prices, _sum(parameters.usual, extras), plan) for plan, extras in plans))

    def expected(self, parameters: Flow) -> Mapping[str, float]:
        """Surcharges have mean zero, so that shipments are valued at usual costs."""
        return {
            "oracle": float(_total(parameters, _oracle(parameters))),
            "default": float(_total(parameters, _default(parameters))),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Flow, tape: Surcharges) -> float:
        """The best flow of each week, its costs known in advance."""
        total = 0
        for supply, demand, extras in zip(parameters.supplies, parameters.demands, tape.extras, strict=True):
            rates = _sum(parameters.usual, extras)
            total += _profit(parameters.prices, rates, best_flow(supply, demand, parameters.prices, rates))
        return float(total)

    def facts(self, parameters: Flow, presentation: Presentation) -> Mapping[str, Fact]:
        """Weeks, sources, markets, price of a trial; in `written` all amounts and rates."""
        facts: dict[str, Fact] = {
            "week_count": len(parameters.supplies),
            "source_count": len(parameters.usual),
            "market_count": len(parameters.prices),
            "trial_price": parameters.trial,
            "weekly_swing": parameters.swing * parameters.unit,
        }
        if presentation is Presentation.WRITTEN:
            facts["supply_grid"] = Grid(("week", "source", "supply"), _by_week(parameters.supplies))
            facts["demand_grid"] = Grid(("week", "market", "demand"), _by_week(parameters.demands))
            facts["price_grid"] = Grid(("market", "price"), tuple(enumerate(parameters.prices, 1)))
            facts["lane_grid"] = Grid(
                ("source", "market", "quoted", "usual"),
                tuple((i + 1, j + 1, parameters.quoted[i][j], parameters.usual[i][j]) for i, j in _lanes(parameters)),
            )
        return facts

    def turns(self, parameters: Flow, presentation: Presentation) -> int:
        """Every lane tried, booked every week, and looks between."""
        lanes, weeks = len(parameters.usual) * len(parameters.prices), len(parameters.supplies)
        return 5 if presentation is Presentation.WRITTEN else lanes + weeks * (lanes + 6) + 10


@lru_cache(maxsize=4096)
def best_flow(
    supply: tuple[int, ...], demand: tuple[int, ...], prices: tuple[int, ...], rates: Rates
) -> tuple[Shipment, ...]:
    """The most profitable shipments of one week: a flow of least cost by network simplex, none at a loss.

    Args:
        supply: pieces by source.
        demand: pieces by market.
        prices: by market.
        rates: cost of one piece by source and market.
    """
    graph = nx.DiGraph()
    total = sum(supply)
    graph.add_node("from", demand=-total)
    graph.add_node("to", demand=total)
    graph.add_edge("from", "to", weight=0, capacity=total)
    for i, pieces in enumerate(supply):
        graph.add_edge("from", ("source", i), weight=0, capacity=pieces)
    for j, pieces in enumerate(demand):
        graph.add_edge(("market", j), "to", weight=0, capacity=pieces)
    lanes = [(i, j) for i, j in product(range(len(supply)), range(len(demand))) if prices[j] > rates[i][j]]
    for i, j in lanes:
        graph.add_edge(("source", i), ("market", j), weight=rates[i][j] - prices[j], capacity=min(supply[i], demand[j]))
    flow = nx.network_simplex(graph)[1]
    amounts = ((i, j, flow["source", i]["market", j]) for i, j in lanes)
    return tuple(Shipment(i, j, amount) for i, j, amount in amounts if amount)


Plan = tuple[tuple[Shipment, ...], ...]
"""Shipments by week."""


def _profit(prices: Sequence[int], rates: Rates, shipped: Iterable[Shipment]) -> int:
    return sum(amount * (prices[j] - rates[i][j]) for i, j, amount in shipped)


def _total(parameters: Flow, plan: Plan) -> int:
    """Expected balance."""
    return sum(_profit(parameters.prices, parameters.usual, shipped) for shipped in plan)


def _sum(rates: Rates, extras: Rates) -> Rates:
    return tuple(tuple(map(sum, zip(*rows, strict=True))) for rows in zip(rates, extras, strict=True))


def _lanes(parameters: Flow) -> Iterable[tuple[int, int]]:
    return product(range(len(parameters.usual)), range(len(parameters.prices)))


def _by_week(amounts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int, int], ...]:
    """Week and place, each from 1, and pieces."""
    return tuple(
        (week, place, pieces) for week, row in enumerate(amounts, 1) for place, pieces in enumerate(row, 1)
    )  # fmt: skip


def _draw(size: _Size, rng: Random, unit: int) -> Flow:
    quoted = [[rng.randint(6, 20) for _ in range(size.markets)] for _ in range(size.sources)]
    middle = sorted(rate for row in quoted for rate in row)[size.sources * size.markets // 2]
    usual = [
        [
            max(size.swing + 1, quote * _percent(quote <= middle, size, rng) // 100)
            for quote in row
        ]
        for row in quoted
    ]  # fmt: skip
    supplies = tuple(tuple(rng.randint(10, 25) for _ in range(size.sources)) for _ in range(size.weeks))
    share = size.sources / size.markets
    demands = tuple(tuple(round(rng.randint(10, 25) * share) for _ in range(size.markets)) for _ in range(size.weeks))
    return Flow(
        supplies=supplies,
        demands=demands,
        prices=tuple(unit * rng.randint(20, 32) for _ in range(size.markets)),
        quoted=tuple(tuple(unit * rate for rate in row) for row in quoted),
        usual=tuple(tuple(unit * rate for rate in row) for row in usual),
        swing=size.swing,
        trial=unit * 6,
        unit=unit,
    )


def _percent(cheap: bool, size: _Size, rng: Random) -> int:
    """What a lane costs of its quote; the cheaper half is dear more often."""
    dear = rng.randrange(100) < (size.dear if cheap else size.dear // 3)
    return rng.randint(200, 300) if dear else rng.randint(85, 110)


def _oracle(parameters: Flow) -> Plan:
    return _best(parameters, parameters.usual)


def _best(parameters: Flow, rates: Rates) -> Plan:
    weeks = zip(parameters.supplies, parameters.demands, strict=True)
    return tuple(best_flow(supply, demand, parameters.prices, rates) for supply, demand in weeks)


def _default(parameters: Flow) -> Plan:
    """Each source in equal parts to all markets whose price is above the quote, as far as they take it."""
    plan = []
    for supply, demand in zip(parameters.supplies, parameters.demands, strict=True):
        wanted = list(demand)
        shipped = []
        for i, pieces in enumerate(supply):
            open_to = [j for j in range(len(demand)) if parameters.prices[j] > parameters.quoted[i][j]]
            for k, j in enumerate(open_to):
                share = pieces * (k + 1) // len(open_to) - pieces * k // len(open_to)
                shipped.append(Shipment(i, j, min(share, wanted[j])))
                wanted[j] -= shipped[-1].amount
        plan.append(tuple(one for one in shipped if one.amount))
    return tuple(plan)


def _careless(parameters: Flow) -> dict[str, Plan]:
    """Plans that ask for nothing."""
    lanes = list(_lanes(parameters))
    prices, quoted = parameters.prices, parameters.quoted
    believed = _best(parameters, quoted)
    return {
        "no_probing": believed,
        "greedy": _in_turn(parameters, sorted(lanes, key=lambda lane: (quoted[lane[0]][lane[1]], lane))),
        "constant": _in_turn(parameters, lanes),
        "dearest_market": _in_turn(parameters, sorted(lanes, key=lambda lane: (-prices[lane[1]], lane))),
        "one_week": (believed[0], *((),) * (len(believed) - 1)),
    }


def _in_turn(parameters: Flow, lanes: Sequence[tuple[int, int]]) -> Plan:
    """As much as possible over each lane, one after the other, every week."""
    plan = []
    for supply, demand in zip(parameters.supplies, parameters.demands, strict=True):
        left, wanted, shipped = list(supply), list(demand), []
        for i, j in lanes:
            amount = min(left[i], wanted[j])
            if amount:
                shipped.append(Shipment(i, j, amount))
                left[i] -= amount
                wanted[j] -= amount
        plan.append(tuple(shipped))
    return tuple(plan)


def _ship(plan: Plan, presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            booked = [
                {"week": week, "source": i + 1, "market": j + 1, "amount": amount}
                for week, shipped in enumerate(plan, 1)
                for i, j, amount in shipped
            ]
            player.call("submit", plan=json.dumps(booked))
            return
        for shipped in plan:
            for i, j, amount in shipped:
                player.call("ship", source=i + 1, market=j + 1, amount=amount)
            player.call("advance")

    return play


def _overprobe(parameters: Flow) -> Policy:
    """Try every lane, then let every week go by."""

    def play(player: Player) -> None:
        for i, j in _lanes(parameters):
            player.call("trial", source=i + 1, market=j + 1)
        for _ in parameters.supplies:
            player.call("advance")

    return play


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def column(name: str, *, key: bool = False, nullable: bool = False, references: str = "") -> Column:
        role = "key" if key else "hard"
        return Column(name=name, type="integer", role=role, nullable=nullable, references=references)

    week, label = column("week", key=True), Column(name="label", type="text")
    source = column("source", key=True, references="sources.source")
    market = column("market", key=True, references="markets.market")
    return (
        Table(name="state", columns=(column("week"), column("balance"))),
        Table(name="sources", columns=(column("source", key=True), label)),
        Table(name="markets", columns=(column("market", key=True), label, column("price"))),
        Table(name="stock", columns=(week, source, column("supply"))),
        Table(name="wants", columns=(week, market, column("demand"))),
        Table(
            name="lanes",
            columns=(source, market, column("quoted"), column("usual", nullable=True), column("paid", nullable=True)),
        ),
        Table(name="bookings", columns=(week, source, market, column("amount"), column("paid"))),
        Table(
            name="costs", hidden=presentation is not Presentation.REVEALED, columns=(source, market, column("usual"))
        ),
        Table(name="tape", hidden=True, columns=(week, source, market, column("extra"))),
    )


_LANE = "source = :source AND market = :market"


def _booking(week: str) -> tuple[tuple[Guard, ...], tuple[str, ...]]:
    """Guards and effects of a shipment in a week given as SQL."""
    guards = (
        Guard(sql=f"SELECT NOT EXISTS (SELECT 1 FROM bookings WHERE week = {week} AND {_LANE})",
              error="that {route} is booked for that {span} already; a {route} takes one booking a {span}"),
        Guard(sql=f"SELECT supply >= :amount FROM stock WHERE week = {week} AND source = :source",
              error="that {depot} has not so many {pieces} left in that {span}"),
        Guard(sql=f"SELECT demand >= :amount FROM wants WHERE week = {week} AND market = :market",
              error="that {buyer} does not take so many {pieces} more in that {span}"),
    )  # fmt: skip
    effects = (
        f"INSERT INTO bookings SELECT {week}, :source, :market, :amount, c.usual + t.extra FROM costs c"
        " JOIN tape t ON t.source = c.source AND t.market = c.market"
        f" WHERE t.week = {week} AND c.source = :source AND c.market = :market",
        f"UPDATE stock SET supply = supply - :amount WHERE week = {week} AND source = :source",
        f"UPDATE wants SET demand = demand - :amount WHERE week = {week} AND market = :market",
        f"UPDATE lanes SET paid = (SELECT paid FROM bookings WHERE week = {week} AND {_LANE}) WHERE {_LANE}",
        "UPDATE state SET balance = balance + :amount * ((SELECT price FROM markets WHERE market = :market)"
        f" - (SELECT paid FROM lanes WHERE {_LANE}))",
    )
    return guards, effects


def _tools(parameters: Flow, presentation: Presentation) -> tuple[Tool, ...]:
    weeks = len(parameters.supplies)
    source = Parameter(name="source", type="integer", minimum=1, maximum=len(parameters.usual))
    market = Parameter(name="market", type="integer", minimum=1, maximum=len(parameters.prices))
    amount = Parameter(name="amount", type="integer", minimum=1, maximum=1000)
    if presentation is Presentation.WRITTEN:
        guards, effects = _booking(":week")
        week = Parameter(name="week", type="integer", minimum=1, maximum=weeks)
        most = weeks * len(parameters.usual) * len(parameters.prices)
        each = Each(parameter="plan", fields=(week, source, market, amount), maximum=most)
        plan = Parameter(name="plan", type="string")
        return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=effects),)
    guards, effects = _booking("(SELECT week FROM state)")
    going = Guard(sql=f"SELECT week <= {weeks} FROM state", error="the last {span} is over")
    untried = Guard(sql=f"SELECT usual IS NULL FROM lanes WHERE {_LANE}", error="you have tried that {route} already")
    lane = f"FROM lanes l CROSS JOIN state s WHERE l.{_LANE.replace('AND ', 'AND l.')}"
    tools = [
        Tool(name="view", kind="read", shape="row", result="SELECT week, balance FROM state"),
        Tool(name="supplies", kind="read",
             result="SELECT k.week, k.source, p.label, k.supply FROM stock k JOIN sources p ON p.source = k.source"
                    " ORDER BY k.week, k.source"),
        Tool(name="demands", kind="read",
             result="SELECT w.week, w.market, m.label, m.price, w.demand FROM wants w"
                    " JOIN markets m ON m.market = w.market ORDER BY w.week, w.market"),
        Tool(name="rates", kind="read",
             result="SELECT source, market, quoted, usual, paid FROM lanes ORDER BY source, market"),
        Tool(name="ship", kind="write", parameters=(source, market, amount), guards=(going, *guards), effects=effects,
             shape="row", result=f"SELECT l.source, l.market, l.paid, s.week, s.balance {lane}"),
        Tool(name="trial", kind="write", parameters=(source, market), guards=(going, untried), shape="row",
             effects=(
                 f"UPDATE lanes SET usual = (SELECT c.usual FROM costs c WHERE c.{_LANE.replace('AND ', 'AND c.')})"
                 f" WHERE {_LANE}",
                 f"UPDATE state SET balance = balance - {parameters.trial}",
             ),
             result=f"SELECT l.source, l.market, l.usual, s.week, s.balance {lane}"),
        Tool(name="advance", kind="clock", guards=(going,), effects=("UPDATE state SET week = week + 1",),
             shape="row", result="SELECT week, balance FROM state"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(
            Tool(name="reveal", kind="read", result="SELECT source, market, usual FROM costs ORDER BY source, market")
        )
    return tuple(tools)
