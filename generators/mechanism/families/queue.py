"""`queue`: whom to let in, and when to pay for faster service, at one counter over a finite shift."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._queue_solver import (
    CHANCES,
    Counter,
    Rule,
    admits,
    bayes_gain,
    belief_programme,
    best_gain,
    best_rules,
    expected_gain,
    lets_in,
)
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_STEP = 5


class _Size(NamedTuple):
    slots: int
    room: int
    off: int
    """Least difference between what is claimed of the extra crew and the truth, in percent."""


_SIZES = {1: _Size(16, 3, 20), 2: _Size(18, 4, 30), 3: _Size(20, 4, 30), 4: _Size(22, 5, 40), 5: _Size(24, 5, 50)}
_TIGHT = {1: (0.42, 0.68), 2: (0.38, 0.64), 3: (0.34, 0.6), 4: (0.3, 0.56), 5: (0.25, 0.5)}
"""Where a draw's default must lie in expectation, by level."""
_SIMPLE = 0.85
"""Most of the optimum that letting everybody in, always with the same crew, may bring."""


@dataclass(frozen=True)
class Queue:
    """Parameters."""

    counter: Counter
    extra: int
    """True chance that the extra crew finishes a customer in a slot, in percent."""
    claim: int
    """What is said of it, in percent."""
    unit: int


@dataclass(frozen=True)
class Shift:
    """Tape, by slot: the fee of who comes (0: nobody), and a draw (0, 5, ... 95) that a crew's chance must exceed."""

    offers: tuple[int, ...]
    draws: tuple[int, ...]


class QueueFamily(Family[Queue, Shift]):
    """Admission and service-rate control of one counter, two classes of customers.

    `bayes` is exact: the prior of the extra crew's chance is uniform over nine values (10 % to 90 %); the belief is
    (slots it served, customers it finished), and the programme runs over slot, customers waiting and belief. Arrivals
    and the own crew are known to everybody.
    """

    name: ClassVar[str] = "queue"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Admission and service-rate control of a queue"
    kin: ClassVar[str] = "control"
    band: ClassVar[tuple[float, float]] = (0.1, 0.85)
    sources: ClassVar[tuple[str, ...]] = (
        "Lippman 1975, Applying a new device in the optimization of exponential queuing systems",
        "Miller 1969, A queueing reward system with several customer classes",
        "Stidham 1985, Optimal control of admission to a queueing system",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Queue:
        """Drawn again until the default is worth beating and not hopeless."""
        size = _SIZES[level]
        while True:
            small = rng.randint(6, 12)
            counter = Counter(
                slots=size.slots, room=size.room, fees=(small, small * 2 + rng.randint(2, 12)),
                arrivals=(_STEP * rng.randint(6, 11), _STEP * rng.randint(3, 7)), own=_STEP * rng.randint(3, 8),
                price=rng.randint(1, 6), hold=rng.choice((1, 1, 1, 2)), refund=small + rng.randint(2, 10),
            )  # fmt: skip
            extra = rng.choice(CHANCES)
            claims = [chance for chance in CHANCES if abs(chance - extra) >= size.off]
            if not claims:
                continue
            drawn = Queue(counter, extra, rng.choice(claims), unit)
            best, room = best_gain(counter, drawn.extra), counter.room
            if best < 3 * small:
                continue
            low, high = _TIGHT[level]
            simple = [[Rule(room, room, crew)] * counter.slots for crew in (1, room + 1)]
            if not low <= expected_gain(counter, drawn.extra, _default_rules(drawn)) / best <= high:
                continue
            if all(expected_gain(counter, drawn.extra, rules) <= _SIMPLE * best for rules in simple):
                return drawn

    def tape(self, parameters: Queue, rng: Random) -> Shift:
        """An arrival and a service draw a slot."""
        small, large = parameters.counter.arrivals
        fees = parameters.counter.fees
        offers, draws = [], []
        for _ in range(parameters.counter.slots):
            drawn = rng.randrange(100)
            offers.append(fees[0] if drawn < small else fees[1] if drawn < small + large else 0)
            draws.append(_STEP * rng.randrange(100 // _STEP))
        return Shift(tuple(offers), tuple(draws))

    def labels(self, parameters: Queue) -> int:
        """Nothing has a name of its own."""
        return 0

    def world(self, parameters: Queue, tape: Shift, look: Look) -> World:
        """Interactive: `status`, `record`, `admit`, `work`; `law_book` where revealed. Written: `submit` rules."""
        unit, counter = parameters.unit, parameters.counter
        return World(
            id="queue",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((1, 0, tape.offers[0] * unit, 0),),
                "claims": ((1, parameters.claim),),
                "law": ((1, counter.own), (2, parameters.extra)),
                "tape": tuple(
                    (slot, offer * unit, draw)
                    for slot, (offer, draw) in enumerate(zip(tape.offers, tape.draws, strict=True), 1)
                ),
            },
            tools=_tools(parameters, look.presentation),
            over=f"SELECT slot > {counter.slots} FROM state",
        )

    def utility(self, parameters: Queue) -> str:
        """Balance; whoever waits when play stops is charged for the slots left and refunded."""
        counter, unit = parameters.counter, parameters.unit
        return (
            f"SELECT balance - CASE WHEN slot > {counter.slots} THEN 0 ELSE waiting *"
            f" ({counter.refund * unit} + {counter.hold * unit} * ({counter.slots} + 1 - slot)) END FROM state"
        )

    def policies(self, parameters: Queue, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle keeps to its thresholds; the default lets everybody in and pays for what is claimed to be fast."""
        counter, unit = parameters.counter, parameters.unit
        found = {
            "oracle": _by_rules(counter, unit, best_rules(counter, parameters.extra), presentation),
            "default": _by_rules(counter, unit, _default_rules(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(counter, unit)
        return found

    def attacks(self, parameters: Queue, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Everybody in, with the own crew, the extra one or as claimed; nobody; a crew for nobody; late ones."""
        counter, room = parameters.counter, parameters.counter.room
        never, slots = room + 1, counter.slots
        rules = {
            "no_probing": [Rule(room, room, never)] * slots,
            "constant": [Rule(room, room, 1)] * slots,
            "greedy": [Rule(room, room, 1 if parameters.claim > counter.own else never)] * slots,
            "in_turn": [Rule(room, room, 1 if slot % 2 else never) for slot in range(slots)],
            "clock_only": [Rule(0, 0, never)] * slots,
            "pay_for_nobody": [Rule(0, 0, 1)] * (slots // 2) + [Rule(0, 0, never)] * (slots - slots // 2),
            "late_crowd": [Rule(0, 0, never)] * (slots - room) + [Rule(room, room, rng.choice((1, never)))] * room,
        }
        return {name: _by_rules(counter, parameters.unit, found, presentation) for name, found in rules.items()}

    def solved(self, parameters: Queue, tape: Shift) -> float:
        """What the oracle's thresholds earn on the tape."""
        counter = parameters.counter
        waiting, balance = 0, 0
        for rule, offer, draw in zip(best_rules(counter, parameters.extra), tape.offers, tape.draws, strict=True):
            if admits(counter, rule, offer, waiting):
                waiting, balance = waiting + 1, balance + offer
            paid = waiting >= rule.extra
            waiting -= int(waiting > 0 and draw < (parameters.extra if paid else counter.own))
            balance -= counter.price * paid + counter.hold * waiting
        return float(parameters.unit * (balance - counter.refund * waiting))

    def expected(self, parameters: Queue) -> Mapping[str, float]:
        """Given the true chance, all exact; so `bayes` is not what its player expects, but what the truth gives it."""
        counter, extra = parameters.counter, parameters.extra
        gains = {
            "oracle": best_gain(counter, extra),
            "bayes": bayes_gain(counter, extra),
            "default": expected_gain(counter, extra, _default_rules(parameters)),
            "idle": 0.0,
        }
        return {name: parameters.unit * gain for name, gain in gains.items()}

    def hindsight(self, parameters: Queue, tape: Shift) -> float:
        """The best decisions, arrivals and draws known."""
        counter = parameters.counter
        best = [-counter.refund * waiting for waiting in range(counter.room + 1)]
        for offer, draw in zip(reversed(tape.offers), reversed(tape.draws), strict=True):
            served = []
            for waiting in range(counter.room + 1):
                after = [
                    (waiting - int(waiting > 0 and draw < chance), price)
                    for chance, price in ((counter.own, 0), (parameters.extra, counter.price))
                ]
                served.append(max(best[left] - counter.hold * left - price for left, price in after))
            best = [
                max(value, offer + served[waiting + 1]) if offer and waiting < counter.room else value
                for waiting, value in enumerate(served)
            ]
        return float(parameters.unit * best[0])

    def facts(self, parameters: Queue, presentation: Presentation) -> Mapping[str, Fact]:
        """Fees, costs and chances for everybody; in `written` the extra crew's chance too."""
        counter, unit = parameters.counter, parameters.unit
        small, large = counter.arrivals
        facts: dict[str, Fact] = {
            "slots": counter.slots, "room": counter.room, "small_fee": counter.fees[0] * unit,
            "large_fee": counter.fees[1] * unit, "small_chance": small, "large_chance": large,
            "nobody_chance": 100 - small - large, "own_chance": counter.own, "price": counter.price * unit,
            "hold": counter.hold * unit, "refund": counter.refund * unit, "claim": parameters.claim,
            "never": str(counter.room + 1),
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            facts["extra_chance"] = parameters.extra
            facts["crews_grid"] = Grid(("crew", "chance", "cost a {slot_word}"),
                                       ((1, counter.own, 0), (2, parameters.extra, counter.price * unit)))  # fmt: skip
        return facts

    def turns(self, parameters: Queue, presentation: Presentation) -> int:
        """Every slot an admission, a service and two looks."""
        return 5 if presentation is Presentation.WRITTEN else 4 * parameters.counter.slots + 10


def _default_rules(parameters: Queue) -> list[Rule]:
    """Everybody in; the extra crew every other slot if it is said to be the faster one, else never."""
    room = parameters.counter.room
    never = room + 1
    often = 1 if parameters.claim > parameters.counter.own else never
    return [Rule(room, room, often if slot % 2 == 0 else never) for slot in range(parameters.counter.slots)]


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    def whole(*names: str, key: str = "") -> tuple[Column, ...]:
        return tuple(Column(name=name, type="integer", role="key" if name == key else "hard") for name in names)

    hidden = presentation is not Presentation.REVEALED
    return (
        Table(name="state", columns=whole("slot", "waiting", "offer", "balance")),
        Table(name="claims", columns=whole("id", "claimed", key="id")),
        Table(name="served", columns=whole("slot", "admitted", "crew", "finished", "waiting", key="slot")),
        Table(name="entries", columns=whole("slot", "fee", key="slot")),
        Table(name="law", hidden=hidden, columns=whole("crew", "chance", key="crew")),
        Table(name="tape", hidden=True, columns=whole("slot", "offer", "draw", key="slot")),
    )


_SHOWN = "state.slot, state.waiting, offer, balance"
_ENTERING = (
    "INSERT INTO entries(slot, fee) SELECT slot, offer FROM state WHERE offer > 0 AND waiting < {limit}",
    "UPDATE state SET waiting = waiting + 1, balance = balance + offer, offer = 0"
    " WHERE EXISTS (SELECT 1 FROM entries WHERE entries.slot = state.slot)",
)


def _serving(counter: Counter, unit: int, crew: str) -> tuple[str, ...]:
    """A slot passes: service, then holding costs, then who is at the door next."""
    last = f"CASE WHEN slot = {counter.slots} THEN {counter.refund * unit} ELSE 0 END"
    return (
        "INSERT INTO served(slot, admitted, crew, finished, waiting) SELECT state.slot,"
        f" (SELECT count(*) FROM entries WHERE entries.slot = state.slot), law.crew,"
        " state.waiting > 0 AND tape.draw < law.chance,"
        " state.waiting - (state.waiting > 0 AND tape.draw < law.chance)"
        f" FROM state JOIN tape ON tape.slot = state.slot JOIN law ON law.crew = {crew}",
        "UPDATE state SET waiting = (SELECT served.waiting FROM served WHERE served.slot = state.slot)",
        f"UPDATE state SET balance = balance - ({counter.hold * unit} + {last}) * waiting - CASE WHEN"
        f" (SELECT served.crew FROM served WHERE served.slot = state.slot) = 2 THEN {counter.price * unit} ELSE 0 END",
        "UPDATE state SET slot = slot + 1,"
        " offer = coalesce((SELECT tape.offer FROM tape WHERE tape.slot = state.slot + 1), 0)",
    )


def _tools(parameters: Queue, presentation: Presentation) -> tuple[Tool, ...]:
    counter, unit = parameters.counter, parameters.unit
    running = Guard(sql=f"SELECT slot <= {counter.slots} FROM state", error="the {shift_word} is over")
    if presentation is Presentation.WRITTEN:
        return (_submit(counter, unit, running),)
    tools = [
        Tool(name="status", kind="read", shape="row",
             result=f"SELECT {_SHOWN}, claimed FROM state CROSS JOIN claims LIMIT 1"),
        Tool(name="record", kind="read",
             result="SELECT slot, admitted, crew, finished, waiting FROM served ORDER BY slot"),
        Tool(name="admit", kind="write", shape="row",
             guards=(
                 running,
                 Guard(sql="SELECT offer > 0 FROM state", error="there is nobody to let in this {slot_word}"),
                 Guard(sql=f"SELECT waiting < {counter.room} FROM state", error="no room: {room} are waiting already"),
             ),
             effects=tuple(sql.format(limit=counter.room) for sql in _ENTERING),
             result="SELECT fee, waiting, balance FROM entries CROSS JOIN state ORDER BY entries.slot DESC LIMIT 1"),
        Tool(name="work", kind="clock", shape="row", guards=(running,),
             parameters=(Parameter(name="crew", type="integer", enum=(1, 2)),),
             effects=_serving(counter, unit, ":crew"),
             result=f"SELECT crew, finished, {_SHOWN} FROM served CROSS JOIN state ORDER BY served.slot DESC LIMIT 1"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(Tool(name="law_book", kind="read", result="SELECT crew, chance FROM law ORDER BY crew"))
    return tuple(tools)


def _submit(counter: Counter, unit: int, running: Guard) -> Tool:
    small = Parameter(name="small", type="integer", minimum=0, maximum=counter.room)
    large = Parameter(name="large", type="integer", minimum=0, maximum=counter.room)
    extra = Parameter(name="extra", type="integer", minimum=1, maximum=counter.room + 1)
    limit = f"CASE WHEN offer = {counter.fees[0] * unit} THEN :small ELSE :large END"
    effects = (
        *(sql.format(limit=limit) for sql in _ENTERING),
        *_serving(counter, unit, "CASE WHEN state.waiting >= :extra THEN 2 ELSE 1 END"),
    )
    return Tool(
        name="submit", kind="submit", parameters=(Parameter(name="plan", type="string"),),
        each=Each(parameter="plan", fields=(small, large, extra), maximum=counter.slots), guards=(running,),
        effects=effects,
    )  # fmt: skip


def _by_rules(counter: Counter, unit: int, rules: list[Rule] | tuple[Rule, ...], presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps([rule._asdict() for rule in rules]))
            return
        seen = player.call("status")
        for rule in rules:
            waiting = seen["waiting"]
            if admits(counter, rule, seen["offer"] // unit, waiting):
                waiting = player.call("admit")["waiting"]
            seen = player.call("work", crew=2 if waiting >= rule.extra else 1)

    return play


def _bayes(counter: Counter, unit: int) -> Policy:
    """Maximise the expected utility under the uniform prior."""

    def play(player: Player) -> None:
        tries = done = 0
        seen = player.call("status")
        for stage in belief_programme(counter):
            informed, waiting = stage[tries, done], seen["waiting"]
            if lets_in(informed.served, seen["offer"] // unit, waiting):
                waiting = player.call("admit")["waiting"]
            paid = informed.extra[waiting]
            seen = player.call("work", crew=2 if paid else 1)
            if paid:
                tries, done = tries + 1, done + seen["finished"]

    return play
