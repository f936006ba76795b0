"""`routing`: daily tours over stops whose legs cost more than the map says; any stop may be left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import hypot
from random import Random
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World


class _Size(NamedTuple):
    stops: int
    laps: int
    slow: int
    """Chance that a shorter leg is slow, per cent; a longer leg has a quarter of it."""
    swing: int
    """Abstract units by which a day's cost of a leg may differ from the usual."""
    ratio: tuple[int, int]
    """What the default earns of the optimum, per cent."""


_SIZES = {
    1: _Size(5, 2, 45, 0, (50, 65)),
    2: _Size(6, 2, 45, 1, (45, 60)),
    3: _Size(7, 3, 50, 1, (40, 55)),
    4: _Size(9, 3, 55, 2, (35, 50)),
    5: _Size(11, 3, 60, 3, (25, 45)),
}
_SETUP, _FAR = 6, 1 << 40
_BEATEN = 0.9
"""Share of the optimum that no play without probing may expect."""


Costs = tuple[tuple[int, ...], ...]
"""By place and place; symmetric."""


@dataclass(frozen=True)
class Routing:
    """Parameters; place 0 is home, amounts are minor units."""

    fees: tuple[int, ...]
    """Earned by the first visit of each place in a tour; 0 at home."""
    listed: Costs
    """What the map says that a leg costs."""
    usual: Costs
    """What it costs on average."""
    swing: int
    """Abstract units by which the cost on one tour may differ from the usual."""
    scouting: int
    """Price of asking for one leg's usual cost."""
    laps: int
    unit: int


@dataclass(frozen=True)
class Traffic:
    """Tape: by tour and leg (pairs in order), what the leg costs above its usual cost."""

    extras: tuple[tuple[int, ...], ...]


class RoutingFamily(Family[Routing, Traffic]):
    """Repeated prize-collecting tours with independent hidden leg costs.

    There is no `bayes`: what to scout is a stochastic tour problem with a belief on each of up to 66 legs, for which
    no exact method of reasonable time is known. The reference is the oracle.
    """

    name: ClassVar[str] = "routing"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Tours over stops with hidden leg costs"
    kin: ClassVar[str] = "planning"
    sources: ClassVar[tuple[str, ...]] = (
        "Held and Karp 1962, A dynamic programming approach to sequencing problems",
        "Balas 1989, The prize collecting traveling salesman problem",
    )
    band: ClassVar[tuple[float, float]] = (0.15, 0.8)

    def sample(self, level: int, rng: Random, unit: int) -> Routing:
        """Slow legs are mostly short ones; fees are such that the map's best tour earns a stated part of the best."""
        size = _SIZES[level]
        while True:
            listed, usual = _legs(size, rng)
            count = size.stops + 1
            even = (0,) * count
            best = -best_tour(even, usual, whole=True).value
            believed = _value(even, usual, best_tour(even, listed, whole=True).stops)
            gap = -believed - best
            if gap * 6 < best:
                continue
            ratio = rng.randint(*size.ratio) / 100
            fees = (0, *_split(round((-believed - ratio * best) / (1 - ratio)), size.stops, rng))
            scouting = max(1, sum(map(sum, listed)) // (count * (count - 1) * 6))
            drawn = Routing(
                fees=_times(unit, fees),
                listed=tuple(_times(unit, row) for row in listed),
                usual=tuple(_times(unit, row) for row in usual),
                swing=size.swing,
                scouting=scouting * unit,
                laps=size.laps,
                unit=unit,
            )
            if _fit(drawn, self.band):
                return drawn

    def tape(self, parameters: Routing, rng: Random) -> Traffic:
        """One draw a tour and leg."""
        legs = sum(1 for _ in _pairs(parameters))
        swing = parameters.swing
        return Traffic(
            tuple(
                tuple(parameters.unit * rng.randint(-swing, swing) for _ in range(legs)) for _ in range(parameters.laps)
            )
        )

    def labels(self, parameters: Routing) -> int:
        """One a stop; home has none."""
        return len(parameters.fees) - 1

    def world(self, parameters: Routing, tape: Traffic, look: Look) -> World:
        """Interactive: `drive`, `scout`, and views. Written: `submit` with the stops in the order of driving."""
        pairs = tuple(_pairs(parameters))
        return World(
            id="routing",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, 0, 0, 0, 0, 0),),
                "stops": tuple(
                    (stop, label, fee, 0)
                    for stop, (label, fee) in enumerate(zip(("", *look.labels), parameters.fees, strict=True))
                ),
                "legs": tuple((a, b, parameters.listed[a][b], None, None) for a, b in pairs),
                "costs": tuple((a, b, parameters.usual[a][b]) for a, b in pairs),
                "tape": tuple(
                    (lap + 1, a, b, extra)
                    for lap, extras in enumerate(tape.extras)
                    for (a, b), extra in zip(pairs, extras, strict=True)
                ),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT lap > {parameters.laps} FROM state",
        )

    def utility(self, parameters: Routing) -> str:
        """Fees of completed tours, less legs and scouting."""
        return "SELECT earned - spent FROM state"

    def policies(self, parameters: Routing, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle drives the best tour every time; the default all stops in the order that the map makes best."""
        return {
            "oracle": _drive(_oracle(parameters) * parameters.laps, presentation),
            "default": _drive(_default(parameters) * parameters.laps, presentation),
        }

    def attacks(self, parameters: Routing, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Tours without probing; staying away from home; and, where there is scouting, scouting everything."""
        found = {name: _drive(tour * parameters.laps, presentation) for name, tour in _careless(parameters).items()}
        found["never_home"] = _drive(_nearest(parameters)[:-1], presentation)
        if presentation is not Presentation.WRITTEN:
            found["overscout"] = _overscout(parameters)
        return found

    def solved(self, parameters: Routing, tape: Traffic) -> float:
        """The oracle's tours at the tape's costs."""
        tour = best_tour(parameters.fees, parameters.usual).stops
        return float(sum(_value(parameters.fees, costs, tour) for costs in _realised(parameters, tape)))

    def expected(self, parameters: Routing) -> Mapping[str, float]:
        """Extras have mean zero, so that tours are valued at their usual costs."""
        return {
            "oracle": float(parameters.laps * best_tour(parameters.fees, parameters.usual).value),
            "default": float(parameters.laps * _worth(parameters, _default(parameters))),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Routing, tape: Traffic) -> float:
        """The best tour of each day, its costs known in advance."""
        return float(sum(best_tour(parameters.fees, costs).value for costs in _realised(parameters, tape)))

    def facts(self, parameters: Routing, presentation: Presentation) -> Mapping[str, Fact]:
        """Tours, scouting price, largest daily difference; in `written` also all fees and legs."""
        facts: dict[str, Fact] = {
            "tour_count": parameters.laps,
            "stop_count": len(parameters.fees) - 1,
            "scout_price": parameters.scouting,
            "daily_swing": parameters.swing * parameters.unit,
        }
        if presentation is Presentation.WRITTEN:
            facts["fee_grid"] = Grid(("stop", "fee"), tuple(enumerate(parameters.fees))[1:])
            facts["leg_grid"] = Grid(
                ("origin", "target", "listed", "usual"),
                tuple((a, b, parameters.listed[a][b], parameters.usual[a][b]) for a, b in _pairs(parameters)),
            )
        return facts

    def turns(self, parameters: Routing, presentation: Presentation) -> int:
        """Every leg of every tour with a look before it, and every leg scouted."""
        places = len(parameters.fees)
        if presentation is Presentation.WRITTEN:
            return 5
        return 2 * parameters.laps * places + places * (places - 1) // 2 + 10


class Tour(NamedTuple):
    """A way from home through some stops, each once, and home again."""

    value: int
    """Fees less costs."""
    stops: tuple[int, ...]
    """In order; home is not in it."""


@lru_cache(maxsize=1024)
def best_tour(fees: tuple[int, ...], costs: Costs, *, whole: bool = False) -> Tour:
    """Held and Karp's recursion over (set of stops visited, last of them); then the best set.

    Args:
        fees: by place, home first.
        costs: symmetric, by place.
        whole: whether every stop must be visited.
    """
    count = len(fees) - 1
    cost = np.array(costs, dtype=np.int64)
    between = cost[1:, 1:]
    table = np.full((1 << count, count), _FAR, dtype=np.int64)
    table[1 << np.arange(count), np.arange(count)] = cost[0, 1:]
    for last, masks, before in _steps(count):
        table[masks, last] = (table[before] + between[:, last]).min(axis=1)
    values = _set_fees(fees) - (table + cost[1:, 0]).min(axis=1)
    values[0] = -_FAR if whole else 0
    mask = len(values) - 1 if whole else int(values.argmax())
    value = int(values[mask])
    order: list[int] = []
    onward = cost[1:, 0]
    while mask:
        last = int((table[mask] + onward).argmin())
        order.append(last + 1)
        mask ^= 1 << last
        onward = between[:, last]
    return Tour(value, tuple(reversed(order)))


@lru_cache(maxsize=16)
def _steps(count: int) -> tuple[tuple[int, NDArray[np.int64], NDArray[np.int64]], ...]:
    """Sets of two stops and more, the smaller first: (last stop, sets that hold it, the same without it)."""
    masks = np.arange(1 << count, dtype=np.int64)
    sizes = np.array([int(mask).bit_count() for mask in masks])
    found = []
    for size in range(2, count + 1):
        for last in range(count):
            chosen = masks[(sizes == size) & ((masks >> last) & 1 == 1)]
            found.append((last, chosen, chosen ^ (1 << last)))
    return tuple(found)


def _set_fees(fees: Sequence[int]) -> NDArray[np.int64]:
    total = np.zeros(1, dtype=np.int64)
    for fee in fees[1:]:
        total = np.concatenate((total, total + fee))
    return total


def _value(fees: Sequence[int], costs: Sequence[Sequence[int]], stops: Sequence[int]) -> int:
    if not stops:
        return 0
    return sum(fees[stop] for stop in stops) - sum(costs[a][b] for a, b in pairwise((0, *stops, 0)))


def _worth(parameters: Routing, tour: Sequence[int]) -> int:
    """Expected value of a tour that ends at home."""
    return _value(parameters.fees, parameters.usual, tour[:-1])


def _realised(parameters: Routing, tape: Traffic) -> Iterable[Costs]:
    """Costs of each tour."""
    places = range(len(parameters.fees))
    for extras in tape.extras:
        extra = dict(zip(_pairs(parameters), extras, strict=True))
        yield tuple(
            tuple(0 if a == b else parameters.usual[a][b] + extra[min(a, b), max(a, b)] for b in places) for a in places
        )


def _pairs(parameters: Routing) -> Iterable[tuple[int, int]]:
    return combinations(range(len(parameters.fees)), 2)


def _legs(size: _Size, rng: Random) -> tuple[Costs, Costs]:
    """Listed costs from distances in the plane; usual costs from them, the shorter legs being slow more often."""
    places = range(size.stops + 1)
    points = [(rng.randint(0, 100), rng.randint(0, 100)) for _ in places]
    listed = [[0] * len(places) for _ in places]
    usual = [[0] * len(places) for _ in places]
    pairs = list(combinations(places, 2))
    for a, b in pairs:
        (x, y), (v, w) = points[a], points[b]
        listed[a][b] = listed[b][a] = _SETUP + round(hypot(x - v, y - w) / 4)
    middle = sorted(listed[a][b] for a, b in pairs)[len(pairs) // 2]
    for a, b in pairs:
        chance = size.slow if listed[a][b] <= middle else size.slow // 4
        percent = rng.randint(200, 300) if rng.randrange(100) < chance else rng.randint(85, 110)
        usual[a][b] = usual[b][a] = max(size.swing + 1, listed[a][b] * percent // 100)
    return tuple(map(tuple, listed)), tuple(map(tuple, usual))


def _split(total: int, parts: int, rng: Random) -> list[int]:
    """Whole numbers of about the same size with a given sum."""
    weights = [rng.randint(60, 140) for _ in range(parts)]
    shares = [max(1, total * weight // sum(weights)) for weight in weights]
    shares[0] += max(0, total - sum(shares))
    return shares


def _times(unit: int, row: Iterable[int]) -> tuple[int, ...]:
    return tuple(unit * number for number in row)


def _fit(parameters: Routing, band: tuple[float, float]) -> bool:
    best = best_tour(parameters.fees, parameters.usual).value
    low, high = band
    careless = max(_worth(parameters, tour) for tour in _careless(parameters).values())
    return low * best < _worth(parameters, _default(parameters)) < high * best and careless < _BEATEN * best


def _oracle(parameters: Routing) -> tuple[int, ...]:
    return (*best_tour(parameters.fees, parameters.usual).stops, 0)


def _default(parameters: Routing) -> tuple[int, ...]:
    return (*best_tour(parameters.fees, parameters.listed, whole=True).stops, 0)


def _careless(parameters: Routing) -> dict[str, tuple[int, ...]]:
    """Tours that ask for nothing."""
    stops = range(1, len(parameters.fees))
    return {
        "no_probing": (*best_tour(parameters.fees, parameters.listed).stops, 0),
        "greedy": _nearest(parameters),
        "constant": (*stops, 0),
        "one_stop": (max(stops, key=parameters.fees.__getitem__), 0),
    }


def _nearest(parameters: Routing) -> tuple[int, ...]:
    """Always to the stop that the map says is nearest."""
    left, place, tour = set(range(1, len(parameters.fees))), 0, []
    while left:
        place = min(left, key=lambda stop: (parameters.listed[place][stop], stop))
        left.remove(place)
        tour.append(place)
    return (*tour, 0)


def _drive(stops: Sequence[int], presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps([{"stop": stop} for stop in stops]))
            return
        for stop in stops:
            player.call("drive", stop=stop)

    return play


def _overscout(parameters: Routing) -> Policy:
    """Ask for every leg, then trust the map after all."""

    def play(player: Player) -> None:
        for origin, target in _pairs(parameters):
            player.call("scout", origin=origin, target=target)
        for stop in _default(parameters) * parameters.laps:
            player.call("drive", stop=stop)

    return play


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def column(name: str, *, key: bool = False, nullable: bool = False) -> Column:
        return Column(name=name, type="integer", role="key" if key else "hard", nullable=nullable)

    leg = (column("origin", key=True), column("target", key=True))
    return (
        Table(name="state", columns=tuple(map(column, ("lap", "place", "paid", "pending", "earned", "spent")))),
        Table(
            name="stops",
            columns=(column("stop", key=True), Column(name="label", type="text"), column("fee"), column("visited")),
        ),
        Table(
            name="legs",
            columns=(*leg, column("listed"), column("usual", nullable=True), column("paid", nullable=True)),
        ),
        Table(name="costs", hidden=presentation is not Presentation.REVEALED, columns=(*leg, column("usual"))),
        Table(name="tape", hidden=True, columns=(column("lap", key=True), *leg, column("extra"))),
    )


_HERE = "min((SELECT place FROM state), :stop)", "max((SELECT place FROM state), :stop)"
_ASKED = "min(:origin, :target)", "max(:origin, :target)"
_DRIVE = (
    "UPDATE state SET paid = (SELECT c.usual + t.extra FROM costs c"
    " JOIN tape t ON t.origin = c.origin AND t.target = c.target"
    " WHERE t.lap = state.lap AND c.origin = min(state.place, :stop) AND c.target = max(state.place, :stop))",
    f"UPDATE legs SET paid = (SELECT paid FROM state) WHERE origin = {_HERE[0]} AND target = {_HERE[1]}",
    "UPDATE state SET spent = spent + paid, place = :stop,"
    " pending = pending + (SELECT fee FROM stops WHERE stop = :stop)",
    "UPDATE stops SET visited = 1 WHERE stop = :stop AND stop <> 0",
    "UPDATE state SET earned = earned + pending, pending = 0, lap = lap + 1 WHERE place = 0",
    "UPDATE stops SET visited = 0 WHERE (SELECT place FROM state) = 0",
)


def _tools(parameters: Routing, presentation: Presentation) -> tuple[Tool, ...]:
    last = len(parameters.fees) - 1
    stop, origin, target = (
        Parameter(name=name, type="integer", minimum=0, maximum=last) for name in ("stop", "origin", "target")
    )
    going = Guard(sql=f"SELECT lap <= {parameters.laps} FROM state", error="the last {tour} is over")
    guards = (
        going,
        Guard(sql="SELECT place <> :stop FROM state", error="you are there already"),
        Guard(sql="SELECT visited = 0 FROM stops WHERE stop = :stop",
              error="that {call} has been visited on this {tour}; each is visited once at most"),
    )  # fmt: skip
    if presentation is Presentation.WRITTEN:
        plan = Parameter(name="plan", type="string")
        each = Each(parameter="plan", fields=(stop,), maximum=parameters.laps * (last + 1))
        return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=_DRIVE),)
    unknown = Guard(
        sql=f"SELECT usual IS NULL FROM legs WHERE origin = {_ASKED[0]} AND target = {_ASKED[1]}",
        error="you have asked about that {road} already",
    )
    apart = Guard(sql="SELECT :origin <> :target", error="a {road} joins two different places")
    scouted = (
        f"UPDATE legs SET usual = (SELECT c.usual FROM costs c WHERE c.origin = {_ASKED[0]}"
        f" AND c.target = {_ASKED[1]}) WHERE origin = {_ASKED[0]} AND target = {_ASKED[1]}",
        f"UPDATE state SET spent = spent + {parameters.scouting}",
    )
    tools = [
        Tool(name="view", kind="read", shape="row",
             result="SELECT lap, place, paid, pending, earned, spent FROM state"),
        Tool(name="visits", kind="read",
             result="SELECT stop, label, fee, visited FROM stops WHERE stop > 0 ORDER BY stop"),
        Tool(name="map", kind="read",
             result="SELECT origin, target, listed, usual, paid FROM legs ORDER BY origin, target"),
        Tool(name="drive", kind="write", parameters=(stop,), guards=guards, effects=_DRIVE, shape="row",
             result="SELECT lap, place, paid, pending, earned, spent FROM state"),
        Tool(name="scout", kind="write", parameters=(origin, target),
             guards=(going, apart, unknown), effects=scouted, shape="row",
             result="SELECT l.origin, l.target, l.usual, s.spent FROM legs l CROSS JOIN state s"
                    f" WHERE l.origin = {_ASKED[0]} AND l.target = {_ASKED[1]}"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(
            Tool(name="reveal", kind="read", result="SELECT origin, target, usual FROM costs ORDER BY origin, target")
        )
    return tuple(tools)
