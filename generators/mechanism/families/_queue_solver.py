"""Exact solutions of the counter of `queue`: thresholds for a known crew, and the belief programme for an unknown one.

In a slot: perhaps somebody comes and is let in or not, a crew serves, those still waiting cost. Slots count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    chances: tuple[int, ...]
    """What the extra crew's chance may be; each equally likely."""

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
    (_, nobody), (small, often), (large, rarely) = counter.offers
    after = [-float(counter.refund * waiting) for waiting in range(counter.room + 1)]
    for rule in reversed(rules):
        plain = _served(counter, counter.own / 100, 0, after)
        paid = _served(counter, extra / 100, counter.price, after)
        served = [paid[n] if n >= rule.extra else plain[n] for n in range(counter.room + 1)]
        few, many = min(rule.small, counter.room), min(rule.large, counter.room)
        joined = [*served[1:], 0.0]
        after = [
            nobody * stays
            + often * (small + joins if waiting < few else stays)
            + rarely * (large + joins if waiting < many else stays)
            for waiting, (stays, joins) in enumerate(zip(served, joined, strict=True))
        ]
    return after[0]


Values = NDArray[np.float64]
"""Axes: slots that the extra crew served somebody, customers it finished in them, customers waiting."""


class Stage(NamedTuple):
    """Decisions of the best uninformed player in one slot, by belief and customers waiting."""

    served: Values
    """Values after the arrival."""
    extra: NDArray[np.bool_]
    """Whether the extra crew is paid."""


class Programme(NamedTuple):
    """The best uninformed player's plan."""

    stages: tuple[Stage, ...]
    value: float
    """What the player expects."""
    gains: tuple[float, ...]
    """Expected utility given each of the counter's chances."""


def _believed(chances: tuple[int, ...], slots: int) -> Values:
    """Expected chance of the extra crew, by slots in which it served somebody and customers it finished in them."""
    tries, done = np.arange(slots)[:, None], np.arange(slots)[None, :]
    # Nobody reaches the cells with more finished than tried; zero is as good as any number there.
    failed = np.where(tries >= done, tries - done, 0)
    weights = [(c / 100) ** done * (1 - c / 100) ** failed for c in chances]
    return np.asarray(sum(w * c / 100 for w, c in zip(weights, chances, strict=True)) / sum(weights))[..., None]


def _worked(counter: Counter, later: Values, chance: Values | float) -> Values:
    """Values of a slot worked by the extra crew, by belief before it, for the chance that it finishes somebody."""
    slots = later.shape[0] - 1
    kept = later - counter.hold * np.arange(counter.room + 1)
    done, failed = kept[1:, 1:, :-1], kept[1:, :slots, 1:]
    paid = np.empty((slots, slots, counter.room + 1))
    paid[..., 0] = later[:slots, :slots, 0]
    paid[..., 1:] = chance * done + (1 - chance) * failed - counter.price
    return paid


def _plain(counter: Counter, later: Values) -> Values:
    """Values of a slot worked by the own crew, by belief before it."""
    kept = later[:-1, :-1] - counter.hold * np.arange(counter.room + 1)
    own, plain = counter.own / 100, kept.copy()
    plain[..., 1:] = own * kept[..., :-1] + (1 - own) * kept[..., 1:]
    return plain


def _entered(counter: Counter, served: Values, guide: Values) -> Values:
    """Values before the arrival, which is let in where that is better by `guide`."""
    before = served.copy()
    before[..., :-1] = 0.0
    for fee, odd in counter.offers:
        joins = (fee > 0) & (fee + guide[..., 1:] > guide[..., :-1] + _CLOSE)
        before[..., :-1] += odd * np.where(joins, fee + served[..., 1:], served[..., :-1])
    return before


@lru_cache(maxsize=64)
def belief_programme(counter: Counter) -> Programme:
    """Backward induction over slot, customers waiting and belief, all of the counter's chances equally likely."""
    believed = _believed(counter.chances, counter.slots)
    end = np.broadcast_to(
        -float(counter.refund) * np.arange(counter.room + 1), (counter.slots + 1, counter.slots + 1, counter.room + 1)
    )
    value, gains = end, [end] * len(counter.chances)
    stages: list[Stage] = []
    for slot in range(counter.slots, 0, -1):
        plain, paid = _plain(counter, value), _worked(counter, value, believed[:slot, :slot])
        extra = paid > plain + _CLOSE
        served = np.where(extra, paid, plain)
        stages.insert(0, Stage(served, extra))
        value = _entered(counter, served, served)
        for number, (chance, gain) in enumerate(zip(counter.chances, gains, strict=True)):
            true = np.where(extra, _worked(counter, gain, chance / 100), _plain(counter, gain))
            gains[number] = _entered(counter, true, served)
    first = (0, 0, 0)
    return Programme(tuple(stages), float(value[first]), tuple(float(gain[first]) for gain in gains))


def bayes_gain(counter: Counter, extra: int) -> float:
    """Expected utility of the Bayes player, given the extra crew's chance in percent, one of the counter's."""
    return belief_programme(counter).gains[counter.chances.index(extra)]


def lets_in(served: Sequence[float], offer: int, waiting: int) -> bool:
    """Whether letting somebody in pays, `served` being the values by customers waiting after it."""
    return offer > 0 and waiting + 1 < len(served) and offer + served[waiting + 1] > served[waiting] + _CLOSE
