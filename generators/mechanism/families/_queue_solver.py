"""Exact solutions of the counter of `queue`: thresholds for a known crew, and the belief programme for an unknown one.

In a slot: perhaps somebody comes and is let in or not, a crew serves, those still waiting cost. Slots count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

CHANCES = tuple(range(10, 100, 10))
"""What the extra crew's chance may be, in percent; each equally likely to an uninformed player."""
_CLOSE = 1e-9
"""Values that differ by less are equal; then nobody is let in and nothing is paid."""


@dataclass(frozen=True)
class Counter:
    """What everybody is told; money in whole units, chances in percent."""

    slots: int
    room: int
    """Most who can wait, the one being served included."""
    fees: tuple[int, int]
    """What a small and a large customer pay on admission."""
    arrivals: tuple[int, int]
    """Chances that a slot brings a small one, and a large one; else nobody comes."""
    own: int
    """Chance that the own crew finishes a customer in a slot."""
    price: int
    """Cost of the extra crew for a slot."""
    hold: int
    """Cost of each one waiting at the end of a slot."""
    refund: int
    """Cost of each one not served at the end."""

    @cached_property
    def offers(self) -> tuple[tuple[int, float], ...]:
        """Fee at the door and its chance; fee 0: nobody."""
        small, large = self.arrivals
        return ((0, (100 - small - large) / 100), (self.fees[0], small / 100), (self.fees[1], large / 100))


class Rule(NamedTuple):
    """What to do in a slot."""

    small: int
    """A small one is let in where fewer than this are waiting."""
    large: int
    """A large one is let in where fewer than this are waiting."""
    extra: int
    """The extra crew is paid where at least this many are waiting (after admission)."""


def admits(counter: Counter, rule: Rule, offer: int, waiting: int) -> bool:
    """Whether a rule lets somebody in who pays `offer` (0: nobody is there)."""
    limit = 0 if not offer else rule.small if offer == counter.fees[0] else rule.large
    return waiting < min(limit, counter.room)


def _served(counter: Counter, chance: float, price: float, after: list[float]) -> list[float]:
    """Value by customers waiting of a slot with a crew, `after` being the value of those then waiting."""
    kept = [after[waiting] - counter.hold * waiting for waiting in range(counter.room + 1)]
    return [
        (kept[0] if waiting == 0 else chance * kept[waiting - 1] + (1 - chance) * kept[waiting]) - price
        for waiting in range(counter.room + 1)
    ]


def _arrived(counter: Counter, served: list[float]) -> list[float]:
    """Value by customers waiting before the arrival, which is let in where that is better."""
    (_, nobody), (small, often), (large, rarely) = counter.offers
    before = [
        nobody * stays + often * max(stays, small + joined) + rarely * max(stays, large + joined)
        for stays, joined in pairwise(served)
    ]
    return [*before, served[-1]]


@lru_cache(maxsize=512)
def _solve(counter: Counter, extra: int) -> tuple[float, tuple[Rule, ...]]:
    """Backward induction over slots; value functions are concave in those waiting, so thresholds are optimal.

    Lippman 1975 and Stidham 1985 prove it for the uniformised chain, of which a slot is one step.
    """
    after = [-float(counter.refund * waiting) for waiting in range(counter.room + 1)]
    rules: list[Rule] = []
    for _ in range(counter.slots):
        plain = _served(counter, counter.own / 100, 0, after)
        paid = _served(counter, extra / 100, counter.price, after)
        served = list(map(max, plain, paid))
        small, large = (_first(not lets_in(served, fee, n) for n in range(counter.room)) for fee in counter.fees)
        rules.insert(0, Rule(small, large, _first(paid[n] > plain[n] + _CLOSE for n in range(counter.room + 1))))
        after = _arrived(counter, served)
    return after[0], tuple(rules)


def _first(holds: Iterable[bool]) -> int:
    """Number of the first that holds; how many there are, if none does."""
    answers = list(holds)
    return answers.index(True) if True in answers else len(answers)


def best_rules(counter: Counter, extra: int) -> tuple[Rule, ...]:
    """The optimal thresholds of each slot, the extra crew's chance (percent) being known."""
    return _solve(counter, extra)[1]


def best_gain(counter: Counter, extra: int) -> float:
    """Expected utility of the optimal thresholds."""
    return _solve(counter, extra)[0]


def expected_gain(counter: Counter, extra: int, rules: Sequence[Rule]) -> float:
    """Expected utility of threshold rules, given the extra crew's chance in percent."""
    after = [-float(counter.refund * waiting) for waiting in range(counter.room + 1)]
    for rule in reversed(rules):
        plain = _served(counter, counter.own / 100, 0, after)
        paid = _served(counter, extra / 100, counter.price, after)
        served = [paid[n] if n >= rule.extra else plain[n] for n in range(counter.room + 1)]
        after = [
            sum(
                odd * (fee + served[waiting + 1] if admits(counter, rule, fee, waiting) else served[waiting])
                for fee, odd in counter.offers
            )
            for waiting in range(counter.room + 1)
        ]
    return after[0]


@lru_cache(maxsize=4096)
def _believed(tries: int, finished: int) -> float:
    """Expected chance of the extra crew after it finished so many in so many slots with somebody waiting."""
    weights = [(c / 100) ** finished * (1 - c / 100) ** (tries - finished) for c in CHANCES]
    return sum(weight * c / 100 for weight, c in zip(weights, CHANCES, strict=True)) / sum(weights)


Belief = tuple[int, int]
"""Slots that the extra crew served somebody, and customers it finished."""


class Informed(NamedTuple):
    """Values by customers waiting, for one slot and belief."""

    before: list[float]
    served: list[float]
    extra: list[bool]


@lru_cache(maxsize=16)
def belief_programme(counter: Counter) -> list[dict[Belief, Informed]]:
    """Backward induction over slot, customers waiting and belief, under the uniform prior."""
    end = [-float(counter.refund * waiting) for waiting in range(counter.room + 1)]
    later = {(tries, done): Informed(end, end, []) for tries in range(counter.slots + 1) for done in range(tries + 1)}
    programme: list[dict[Belief, Informed]] = []
    for slot in range(counter.slots - 1, -1, -1):
        beliefs = [(tries, done) for tries in range(slot + 1) for done in range(tries + 1)]
        later = {belief: _informed(counter, later, belief) for belief in beliefs}
        programme.insert(0, later)
    return programme


def _informed(counter: Counter, later: Mapping[Belief, Informed], belief: Belief) -> Informed:
    tries, done = belief
    chance, hold = _believed(tries, done), counter.hold
    plain = _served(counter, counter.own / 100, 0, later[belief].before)
    won, lost = later[tries + 1, done + 1].before, later[tries + 1, done].before
    served, extra = [plain[0]], [False]
    for waiting in range(1, counter.room + 1):
        paid = (
            chance * (won[waiting - 1] - hold * (waiting - 1)) + (1 - chance) * (lost[waiting] - hold * waiting)
        ) - counter.price
        extra.append(paid > plain[waiting] + _CLOSE)
        served.append(paid if extra[-1] else plain[waiting])
    return Informed(_arrived(counter, served), served, extra)


def bayes_value(counter: Counter) -> float:
    """What the best uninformed player expects under its own prior."""
    return belief_programme(counter)[0][0, 0].before[0]


def lets_in(served: list[float], offer: int, waiting: int) -> bool:
    """Whether letting somebody in pays, `served` being the values by customers waiting after it."""
    return offer > 0 and waiting + 1 < len(served) and offer + served[waiting + 1] > served[waiting] + _CLOSE


def bayes_gain(counter: Counter, extra: int) -> float:
    """Expected utility of the Bayes player, given the extra crew's chance in percent."""
    chances = {False: counter.own / 100, True: extra / 100}
    states: dict[tuple[int, int, int], float] = {(0, 0, 0): 1.0}
    total = 0.0
    for stage in belief_programme(counter):
        following: dict[tuple[int, int, int], float] = {}
        for (present, tries, done), share in states.items():
            informed = stage[tries, done]
            for offer, odd in counter.offers:
                entered = lets_in(informed.served, offer, present)
                waiting, part = present + entered, share * odd
                paid = informed.extra[waiting]
                total += part * (offer * entered - counter.price * paid)
                for finished in (0, 1) if waiting else (0,):
                    luck = 1.0 if not waiting else chances[paid] if finished else 1 - chances[paid]
                    state = (waiting - finished, tries + paid, done + (paid and finished))
                    following[state] = following.get(state, 0.0) + part * luck
                    total -= part * luck * counter.hold * state[0]
        states = following
    return total - counter.refund * sum(share * waiting for (waiting, _, _), share in states.items())
