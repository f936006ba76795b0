"""`pandora`: boxes with opening prices and prizes by chance, over rounds; only the best find of a round counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._pandora_solver import Search, Step, reservation, search_value
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_OF = 20
"""Chances are multiples of 1/20, so that they are stated exactly."""
_LAWS = ((13, 6, 1, 0), (2, 9, 9, 0), (9, 3, 2, 6))
"""By kind of box: dull, steady, long shot; by prize from nothing to the largest."""
_KINDS = len(_LAWS)
_TIGHT = (0.3, 0.7)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""


class _Size(NamedTuple):
    boxes: int
    rounds: int
    fee: tuple[int, int]
    """Range of what an appraisal costs, in twentieths of the middle prize."""


_SIZES = {
    1: _Size(3, 8, (2, 3)),
    2: _Size(4, 8, (3, 5)),
    3: _Size(4, 8, (6, 9)),
    4: _Size(5, 7, (6, 9)),
    5: _Size(5, 5, (8, 12)),
}


@dataclass(frozen=True)
class Boxes:
    """Parameters."""

    prizes: tuple[int, ...]
    """Minor units, rising from 0."""
    laws: tuple[tuple[int, ...], ...]
    """By kind: chance of each prize, in twentieths."""
    kinds: tuple[int, ...]
    """By box."""
    claims: tuple[int, ...]
    """The kind that is claimed, by box."""
    open_costs: tuple[int, ...]
    appraisal_costs: tuple[int, ...]
    rounds: int

    def steps(self, kinds: Sequence[int], stops: Sequence[int | float]) -> list[Step]:
        """What boxes mean in a search if they are of these kinds, by box."""
        return [
            Step(tuple(chance / _OF for chance in self.laws[kind]), cost, stop)
            for kind, cost, stop in zip(kinds, self.open_costs, stops, strict=True)
        ]

    def stops(self, kinds: Sequence[int]) -> list[int]:
        """Reservation prizes by box, rounded up: finds are whole numbers, and a box is opened below."""
        laws = ([chance / _OF for chance in self.laws[kind]] for kind in kinds)
        pairs = zip(laws, self.open_costs, strict=True)
        return [ceil(reservation(self.prizes, law, cost) - 1e-6) for law, cost in pairs]


@dataclass(frozen=True)
class Finds:
    """Tape."""

    prizes: tuple[tuple[int, ...], ...]
    """By round and box: minor units."""


Plan = Sequence[tuple[int, int]]
"""For every round alike: box, and the find below which it is opened."""


class PandoraFamily(Family[Boxes, Finds]):
    """Weitzman's search over several rounds, with kinds that last and appraisals that show them.

    `bayes` is exact under independent uniform priors over the three kinds of every box: a programme over all states of
    knowledge, since an appraisal can be worth its price in later rounds.
    """

    name: ClassVar[str] = "pandora"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Costly search among boxes of hidden kinds"
    kin: ClassVar[str] = "search"
    sources: ClassVar[tuple[str, ...]] = (
        "Weitzman 1979, Optimal Search for the Best Alternative",
        "Doval 2018, Whether or not to open Pandora's box",
    )
    band: ClassVar[tuple[float, float]] = (0.1, 0.9)

    def sample(self, level: int, rng: Random, unit: int) -> Boxes:
        """Kinds by the prior; drawn again until the misled default is worth beating, and one box is not enough."""
        size = _SIZES[level]
        while True:
            found = _draw(size, rng, unit)
            if len(_oracle_plan(found)) < 2:
                continue
            oracle, default = _round_value(found, _oracle_plan(found)), _round_value(found, _default_plan(found))
            if oracle * 4 >= found.prizes[2] and _TIGHT[0] <= default / oracle <= _TIGHT[1]:
                return found

    def tape(self, parameters: Boxes, rng: Random) -> Finds:
        """A prize for every round and box."""
        return Finds(
            tuple(
                tuple(rng.choices(parameters.prizes, parameters.laws[kind])[0] for kind in parameters.kinds)
                for _ in range(parameters.rounds)
            )
        )

    def labels(self, parameters: Boxes) -> int:
        """One a box."""
        return len(parameters.kinds)

    def world(self, parameters: Boxes, tape: Finds, look: Look) -> World:
        """Interactive: `status`, `appraise`, `unlock`, `close`; `kinds` where revealed. Written: `submit`."""
        boxes = range(len(parameters.kinds))
        return World(
            id="pandora",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, 0),),
                "boxes": tuple(
                    (box, look.labels[box], parameters.claims[box], parameters.open_costs[box],
                     parameters.appraisal_costs[box])
                    for box in boxes
                ),
                "theta": tuple(enumerate(parameters.kinds)),
                "tape": tuple(
                    (turn, box, prize) for turn, row in enumerate(tape.prizes, 1) for box, prize in enumerate(row)
                ),
            },
            tools=_plan_tools(parameters) if look.presentation is Presentation.WRITTEN else _tools(parameters, look),
            over=f"SELECT turn > {parameters.rounds} FROM state",
        )  # fmt: skip

    def utility(self, parameters: Boxes) -> str:
        """The best find of every round, less prices and fees."""
        best = "SELECT max(opened.prize) AS prize FROM opened GROUP BY opened.turn"
        return f"SELECT coalesce((SELECT sum(prize) FROM ({best})), 0) - spent FROM state"

    def policies(self, parameters: Boxes, presentation: Presentation) -> Mapping[str, Policy]:
        """The default opens, in every round, the half of the boxes that sound best."""
        found = {
            "oracle": _policy(parameters, _oracle_plan(parameters), presentation),
            "default": _policy(parameters, _default_plan(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(parameters)
        return found

    def attacks(self, parameters: Boxes, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Open what sounds best; always the one box that is best alone; open everything in every round."""
        always = parameters.prizes[-1] + 1
        order, boxes = _default_plan(parameters), range(len(parameters.kinds))
        single = max(boxes, key=lambda box: _round_value(parameters, [(box, always)]))
        plans: dict[str, Plan] = {
            "greedy": order[:1],
            "constant": [(single, always)],
            "no_probing": [(box, always) for box in boxes],
        }
        return {name: _policy(parameters, plan, presentation) for name, plan in plans.items()}

    def solved(self, parameters: Boxes, tape: Finds) -> float:
        """Weitzman's rule on the tape."""
        total = 0
        for prizes in tape.prizes:
            best = 0
            for box, stop in _oracle_plan(parameters):
                if best < stop:
                    total -= parameters.open_costs[box]
                    best = max(best, prizes[box])
            total += best
        return float(total)

    def expected(self, parameters: Boxes) -> Mapping[str, float]:
        """Given the kinds; exact for all."""
        rounds = parameters.rounds
        return {
            "oracle": rounds * _round_value(parameters, _oracle_plan(parameters)),
            "bayes": _search(parameters).worth(parameters.kinds),
            "default": rounds * _round_value(parameters, _default_plan(parameters)),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Boxes, tape: Finds) -> float:
        """In every round, open the box with the best prize less price, or none."""
        return float(
            sum(
                max(0, *(prize - cost for prize, cost in zip(prizes, parameters.open_costs, strict=True)))
                for prizes in tape.prizes
            )
        )

    def facts(self, parameters: Boxes, presentation: Presentation) -> Mapping[str, Fact]:
        """Prizes, chances by kind, prices and claims; in `written` the kinds too."""
        heads = tuple(f"{{chance_of}} {prize}" for prize in parameters.prizes)
        laws = tuple((kind, *(chance / _OF for chance in law)) for kind, law in enumerate(parameters.laws))
        terms = tuple(zip(range(len(parameters.kinds)), parameters.claims, parameters.open_costs, strict=True))
        facts: dict[str, Fact] = {
            "rounds": parameters.rounds, "count": len(parameters.kinds), "last_box": len(parameters.kinds) - 1,
            "largest": str(parameters.prizes[-1]), "middle": str(parameters.prizes[2]),
            "law_table": Grid(("{kind_word}", *heads), laws),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            rows = tuple((*row[:2], kind, row[2]) for row, kind in zip(terms, parameters.kinds, strict=True))
            facts["box_table"] = Grid(("box", "claimed", "{true_kind}", "{price} ({money})"), rows)
        else:
            rows = tuple((*row, fee) for row, fee in zip(terms, parameters.appraisal_costs, strict=True))
            facts["box_table"] = Grid(("box", "claimed", "{price} ({money})", "{fee} ({money})"), rows)
        return facts

    def turns(self, parameters: Boxes, presentation: Presentation) -> int:
        """Everything opened in every round, everything appraised, and a look at the state now and then."""
        boxes = len(parameters.kinds)
        return 5 if presentation is Presentation.WRITTEN else (2 * boxes + 2) * parameters.rounds + boxes + 10


def _draw(size: _Size, rng: Random, unit: int) -> Boxes:
    small = rng.randint(8, 14)
    middle = small * rng.randint(2, 4)
    large = middle * 2
    kinds = tuple(rng.randrange(_KINDS) for _ in range(size.boxes))
    claims = tuple(rng.randrange(_KINDS) for _ in kinds)
    costs = tuple(unit * max(1, middle * rng.randint(2, 8) // _OF) for _ in kinds)
    fees = tuple(unit * max(1, middle * rng.randint(*size.fee) // _OF) for _ in kinds)
    prizes = (0, unit * small, unit * middle, unit * large)
    return Boxes(prizes, _LAWS, kinds, claims, costs, fees, size.rounds)


def _round_value(parameters: Boxes, plan: Plan) -> float:
    stops = dict(plan)
    steps = parameters.steps(parameters.kinds, [stops.get(box, 0) for box in range(len(parameters.kinds))])
    return search_value(parameters.prizes, [steps[box] for box, _ in plan])


@lru_cache(maxsize=256)
def _oracle_plan(parameters: Boxes) -> Plan:
    stops = parameters.stops(parameters.kinds)
    order = sorted(range(len(stops)), key=lambda box: (-stops[box], box))
    return [(box, stops[box]) for box in order if stops[box] > 0]


def _default_plan(parameters: Boxes) -> Plan:
    stops = parameters.stops(parameters.claims)
    order = sorted(range(len(stops)), key=lambda box: (-stops[box], box))
    return [(box, parameters.prizes[-1] + 1) for box in order[: (len(order) + 1) // 2]]


@lru_cache(maxsize=4)
def _search(parameters: Boxes) -> Search:
    laws = [[chance / _OF for chance in law] for law in parameters.laws]
    return Search(parameters.prizes, laws, parameters.open_costs, parameters.appraisal_costs, parameters.rounds)


def _policy(parameters: Boxes, plan: Plan, presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        turns = range(1, parameters.rounds + 1)
        if presentation is Presentation.WRITTEN:
            rows = [{"turn": turn, "box": box, "below": stop} for turn in turns for box, stop in plan]
            player.call("submit", plan=json.dumps(rows))
            return
        for _ in turns:
            best = 0
            for box, stop in plan:
                if best < stop:
                    best = max(best, player.call("unlock", box=box)["prize"])
            player.call("close")

    return play


def _bayes(parameters: Boxes) -> Policy:
    def play(player: Player) -> None:
        search, state = _search(parameters), 0
        for turn in range(parameters.rounds):
            best = 0
            while (act := search.act(turn, state, best)).box is not None:
                answer = player.call("unlock" if act.opens else "appraise", box=act.box)
                state = search.after(state, act.box, answer["kind"], act.opens)
                if act.opens:
                    best = max(best, parameters.prizes.index(answer["prize"]))
            player.call("close")
            state = search.next_round(state)

    return play


def _columns(*names: str, keys: Sequence[str] = ()) -> Iterator[Column]:
    for name in names:
        yield Column(name=name, type="integer", role="key" if name in keys else "hard")


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    label = Column(name="label", type="text")
    boxes = (*_columns("box", keys=["box"]), label, *_columns("claimed", "open_cost", "fee"))
    hidden = presentation is not Presentation.REVEALED
    return (
        Table(name="state", columns=tuple(_columns("turn", "spent"))),
        Table(name="boxes", columns=boxes),
        Table(name="known", columns=tuple(_columns("box", "kind", keys=["box"]))),
        Table(name="opened", columns=tuple(_columns("turn", "box", "prize", keys=["turn", "box"]))),
        Table(name="steps", columns=tuple(_columns("turn", "box", keys=["turn", "box"]))),
        Table(name="theta", hidden=hidden, columns=tuple(_columns("box", "kind", keys=["box"]))),
        Table(name="tape", hidden=True, columns=tuple(_columns("turn", "box", "prize", keys=["turn", "box"]))),
    )


_LEARN = (
    "INSERT INTO known(box, kind) SELECT theta.box, theta.kind FROM theta"
    " WHERE theta.box = :box AND NOT EXISTS (SELECT 1 FROM known WHERE known.box = :box)"
)


def _tools(parameters: Boxes, look: Look) -> tuple[Tool, ...]:
    box = Parameter(name="box", type="integer", minimum=0, maximum=len(parameters.kinds) - 1)
    open_now = Guard(sql=f"SELECT turn <= {parameters.rounds} FROM state", error="all {rounds_word} are over")
    shut = Guard(
        sql="SELECT NOT EXISTS (SELECT 1 FROM opened JOIN state ON opened.turn = state.turn WHERE opened.box = :box)",
        error="this {thing} has been {opened_word} in this {round_word} already",
    )
    news = Guard(
        sql="SELECT NOT EXISTS (SELECT 1 FROM known WHERE known.box = :box)",
        error="the {kind_word} of this {thing} is known already",
    )
    tools = [
        Tool(name="status", kind="read",
             result="SELECT state.turn AS turn, spent, boxes.box AS box, label, claimed, open_cost, fee,"
                    " known.kind AS kind, opened.prize AS prize FROM state CROSS JOIN boxes"
                    " LEFT JOIN known ON known.box = boxes.box"
                    " LEFT JOIN opened ON opened.box = boxes.box AND opened.turn = state.turn ORDER BY boxes.box"),
        Tool(name="appraise", kind="write", parameters=(box,), guards=(open_now, news), shape="row",
             effects=(_LEARN, "UPDATE state SET spent = spent + (SELECT fee FROM boxes WHERE box = :box)"),
             result="SELECT known.box AS box, kind, spent FROM known CROSS JOIN state WHERE known.box = :box"),
        Tool(name="unlock", kind="write", parameters=(box,), guards=(open_now, shut), shape="row",
             effects=(
                 "INSERT INTO opened(turn, box, prize) SELECT tape.turn, tape.box, tape.prize FROM tape"
                 " JOIN state ON state.turn = tape.turn WHERE tape.box = :box",
                 _LEARN,
                 "UPDATE state SET spent = spent + (SELECT open_cost FROM boxes WHERE box = :box)",
             ),
             result="SELECT opened.box AS box, known.kind AS kind, opened.prize AS prize, spent FROM state"
                    " JOIN opened ON opened.turn = state.turn JOIN known ON known.box = opened.box"
                    " WHERE opened.box = :box"),
        Tool(name="close", kind="clock", guards=(open_now,), shape="row",
             effects=("UPDATE state SET turn = turn + 1",), result="SELECT turn, spent FROM state"),
    ]  # fmt: skip
    if look.presentation is Presentation.REVEALED:
        tools.append(Tool(name="kinds", kind="read", result="SELECT box, kind FROM theta ORDER BY box"))
    return tuple(tools)


def _plan_tools(parameters: Boxes) -> tuple[Tool, ...]:
    fields = (
        Parameter(name="turn", type="integer", minimum=1, maximum=parameters.rounds),
        Parameter(name="box", type="integer", minimum=0, maximum=len(parameters.kinds) - 1),
        Parameter(name="below", type="integer", minimum=0, maximum=parameters.prizes[-1] + 1),
    )
    in_order = Guard(
        sql="SELECT NOT EXISTS (SELECT 1 FROM steps WHERE turn > :turn OR turn = :turn AND box = :box)",
        error="the rows must be in the order of `{turn}`, with no {thing} twice in one {round_word}",
    )
    here = "opened.turn = :turn AND opened.box = :box"
    effects = (
        "INSERT INTO steps(turn, box) VALUES (:turn, :box)",
        "INSERT INTO opened(turn, box, prize) SELECT tape.turn, tape.box, tape.prize FROM tape"
        " WHERE tape.turn = :turn AND tape.box = :box"
        " AND coalesce((SELECT max(opened.prize) FROM opened WHERE opened.turn = :turn), 0) < :below",
        "UPDATE state SET spent = spent + (SELECT open_cost FROM boxes WHERE box = :box)"
        f" WHERE EXISTS (SELECT 1 FROM opened WHERE {here})",
    )
    plan = Parameter(name="plan", type="string")
    each = Each(parameter="plan", fields=fields, maximum=parameters.rounds * len(parameters.kinds))
    return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=(in_order,), effects=effects),)
