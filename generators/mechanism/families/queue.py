"""`queue`: whom to let in, and when to pay for faster service, at one counter over a finite shift."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.generators.mechanism.families._queue_solver import (
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
    share: tuple[float, float]
    """What the default earns of the optimum, on average over the chances that the extra crew may have."""


_SIZES = {
    1: _Size(16, 3, (0.52, 0.72)), 2: _Size(18, 4, (0.5, 0.68)), 3: _Size(20, 4, (0.48, 0.63)),
    4: _Size(22, 5, (0.44, 0.59)), 5: _Size(24, 5, (0.4, 0.55)),
}  # fmt: skip
_CHANCES = ((5, 10, 70, 80), (5, 10, 65, 75))
"""What the extra crew's chance may be, in percent: on both sides of any claim and of the own crew, and far apart."""
_CLAIMED = (10, 15, 20)
"""By how much more than the own crew's chance is claimed, in percent."""
_GUESSES = tuple(range(10, 100, 20))
"""Chances that a player may assume who does not try the extra crew, in percent."""
_GUESSED = 0.75
"""Most of the way from the default to a reference that one guess may bring on average over the chances."""
_TIGHT = (0.15, 0.82)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""
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

    The extra crew's chance is drawn evenly from four that everybody is told, whatever is claimed, after all else has
    been drawn so that each of them would do. `bayes` is exact: the prior is that law, the belief is (slots the extra
    crew served, customers it finished), and the programme runs over slot, customers waiting and belief. Arrivals and
    the own crew are known to everybody.
    """

    name: ClassVar[str] = "queue"
    version: ClassVar[str] = "2"
    title: ClassVar[str] = "Admission and service-rate control of a queue"
    kin: ClassVar[str] = "control"
    band: ClassVar[tuple[float, float]] = (0.1, 0.85)
    sources: ClassVar[tuple[str, ...]] = (
        "Lippman 1975, Applying a new device in the optimization of exponential queuing systems",
        "Miller 1969, A queueing reward system with several customer classes",
        "Stidham 1985, Optimal control of admission to a queueing system",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Queue:
        """All but the true chance is drawn again until no guess is good for every chance, and the default for none."""
        size = _SIZES[level]
        while True:
            small = rng.randint(6, 12)
            counter = Counter(
                slots=size.slots, room=size.room, fees=(small, small * 2 + rng.randint(2, 20)),
                arrivals=(_STEP * rng.randint(6, 12), _STEP * rng.randint(3, 8)), own=_STEP * rng.randint(4, 7),
                price=rng.randint(1, 4), hold=rng.choice((1, 1, 2, 3)), refund=small + rng.randint(2, 10),
                chances=rng.choice(_CHANCES),
            )  # fmt: skip
            claim = counter.own + rng.choice(_CLAIMED)
            if _is_fair([Queue(counter, extra, claim, unit) for extra in counter.chances], size):
                return Queue(counter, rng.choice(counter.chances), claim, unit)

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
        """The oracle keeps to its thresholds; the default to those for what is claimed, in half of the slots."""
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
            "chances": ", ".join(map(str, counter.chances[:-1])) + f" or {counter.chances[-1]}",
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
    """The best thresholds if the claim were true, but the extra crew in every other slot only."""
    never = parameters.counter.room + 1
    best = best_rules(parameters.counter, parameters.claim)
    return [rule if slot % 2 == 0 else rule._replace(extra=never) for slot, rule in enumerate(best)]


def rules_place(case: Queue, rules: Sequence[Rule]) -> float:
    """Expected place of threshold rules between the default (0) and the Bayes player (1), given the true chance."""
    default = expected_gain(case.counter, case.extra, _default_rules(case))
    gain, best = expected_gain(case.counter, case.extra, rules), bayes_gain(case.counter, case.extra)
    return min(1.0, max(0.0, (gain - default) / (best - default)))


def _is_fair(cases: Sequence[Queue], size: _Size) -> bool:
    """Whether the default misleads whichever case is true, and no guess is good enough for all of them."""
    counter = cases[0].counter
    shares = []
    for case in cases:
        best = best_gain(counter, case.extra)
        if best < 3 * counter.fees[0]:
            return False
        shares.append(expected_gain(counter, case.extra, _default_rules(case)) / best)
        if not _TIGHT[0] <= shares[-1] <= _TIGHT[1] or any(
            expected_gain(counter, case.extra, rules) > _SIMPLE * best for rules in _simple_rules(counter)
        ):
            return False
    if not size.share[0] <= fmean(shares) <= size.share[1]:
        return False
    if any(
        expected_gain(counter, case.extra, _default_rules(case)) > _TIGHT[1] * bayes_gain(counter, case.extra)
        for case in cases
    ):
        return False
    return all(fmean(rules_place(case, best_rules(counter, guess)) for case in cases) <= _GUESSED for guess in _GUESSES)


def _simple_rules(counter: Counter) -> list[list[Rule]]:
    """Everybody in, always with the same crew."""
    room = counter.room
    return [[Rule(room, room, crew)] * counter.slots for crew in (1, room + 1)]


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
        for stage in belief_programme(counter).stages:
            served, waiting = stage.served[tries, done].tolist(), seen["waiting"]
            if lets_in(served, seen["offer"] // unit, waiting):
                waiting = player.call("admit")["waiting"]
            paid = bool(stage.extra[tries, done, waiting])
            seen = player.call("work", crew=2 if paid else 1)
            if paid:
                tries, done = tries + 1, done + seen["finished"]

    return play
