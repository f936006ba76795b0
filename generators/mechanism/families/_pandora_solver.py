"""Exact solvers of `pandora`: reservation prizes where kinds are known, beliefs over kinds where they are not.

Weitzman 1979, Optimal Search for the Best Alternative: open boxes in the order of their reservation prizes while the
best find is below. Where a box may be appraised first and kinds last over rounds, no index is optimal (Doval 2018,
Whether or not to open Pandora's box), and the programme runs over all states of knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_TIE = 1e-9


def reservation(prizes: Sequence[int], law: Sequence[float], cost: float) -> float:
    """The sure find at which a box is just worth opening: the price equals what the box adds on average."""
    low, high = -cost - max(prizes), float(max(prizes))
    for _ in range(80):
        middle = (low + high) / 2
        adds = sum(chance * max(0.0, prize - middle) for prize, chance in zip(prizes, law, strict=True))
        low, high = (middle, high) if adds > cost else (low, middle)
    return (low + high) / 2


class Step(NamedTuple):
    """One box of a search in order."""

    law: tuple[float, ...]
    """Chances of the prizes."""
    cost: float
    stop: float
    """It is opened while the best find is below."""


def search_value(prizes: Sequence[int], steps: Sequence[Step]) -> float:
    """Expected best find less prices, boxes being opened in this order."""
    chances, spent = {0: 1.0}, 0.0
    for step in steps:
        following: dict[int, float] = {}
        for best, chance in chances.items():
            if best >= step.stop:
                following[best] = following.get(best, 0.0) + chance
                continue
            spent += chance * step.cost
            for prize, share in zip(prizes, step.law, strict=True):
                found = max(best, prize)
                following[found] = following.get(found, 0.0) + chance * share
        chances = following
    return sum(best * chance for best, chance in chances.items()) - spent


class Act(NamedTuple):
    """What to do next; without a box: close the round."""

    box: int | None
    opens: bool = False
    """Open it; else appraise it."""


class _Layout(NamedTuple):
    """States of knowledge as numbers; digits: 0 unknown, 1.. known kind, then opened in this round by kind."""

    places: tuple[int, ...]
    """Weight of each box's digit."""
    levels: tuple[tuple[tuple[Index, tuple[Index, ...]], ...], ...]
    """From the most known to the least, by box: states where it is unknown, and where it is of each kind but shut."""
    members: tuple[Index, ...]
    """States of each level."""
    closed: Index
    """The state at the start of the next round."""


@cache
def _layout(boxes: int, kinds: int) -> _Layout:
    base = 2 * kinds + 1
    places = tuple(base**box for box in range(boxes))
    states = np.arange(base**boxes)
    digits = np.stack([states // place % base for place in places], axis=1)
    opened = digits > kinds
    progress = (digits > 0).sum(axis=1) + opened.sum(axis=1)
    levels, members = [], []
    for level in range(2 * boxes, -1, -1):
        here = progress == level
        members.append(states[here])
        levels.append(
            tuple(
                (
                    states[here & (digits[:, box] == 0)],
                    tuple(states[here & (digits[:, box] == kind + 1)] for kind in range(kinds)),
                )
                for box in range(boxes)
            )
        )
    closed = states - (opened * kinds * np.array(places)).sum(axis=1)
    return _Layout(places, tuple(levels), tuple(members), closed)


class Search:
    """Best play over all rounds where every kind of every box is equally likely at first."""

    def __init__(
        self, prizes: Sequence[int], laws: Sequence[Sequence[float]], open_costs: Sequence[int],
        appraisal_costs: Sequence[int], rounds: int,
    ) -> None:  # fmt: skip
        """Solve.

        Args:
            prizes: rising, the first one 0.
            laws: by kind, chances of the prizes.
            open_costs: by box, of opening it once.
            appraisal_costs: by box, of learning its kind for good.
            rounds: in each of which prizes are new and the best find counts.
        """
        self._prizes = np.array(prizes, dtype=float)
        self._laws, self._kinds = laws, len(laws)
        self._costs = tuple(zip(open_costs, appraisal_costs, strict=True))
        self._layout = _layout(len(open_costs), self._kinds)
        # Column b of a kind's matrix: chances of the best find after opening, where it was prize b before.
        self._raise = [self._raised(law) for law in laws]
        later = np.zeros(len(self._layout.closed))
        self._value: list[Array] = []
        for _ in range(rounds):
            self._value.insert(0, self._solve(later))
            later = self._value[0][self._layout.closed, 0]

    @property
    def value(self) -> float:
        """Expectation under the prior."""
        return float(self._value[0][0, 0])

    def act(self, turn: int, state: int, best: int) -> Act:
        """What to do in a round (from 0) with the `best`-th prize as the best find."""
        found, value = Act(None), self._closing(turn, state, best) + _TIE
        for box, (price, fee) in enumerate(self._costs):
            status = self.status(state, box)
            if status <= self._kinds:
                worth = self._opening(turn, state, box, best) - price
                if worth > value:
                    found, value = Act(box, opens=True), worth + _TIE
            if status == 0:
                worth = self._appraising(turn, state, box, best) - fee
                if worth > value:
                    found, value = Act(box), worth + _TIE
        return found

    def status(self, state: int, box: int) -> int:
        """Digit of a box: 0 unknown, 1.. of known kind, then opened by kind."""
        return state // self._layout.places[box] % (2 * self._kinds + 1)

    def after(self, state: int, box: int, kind: int, opened: bool) -> int:
        """The state once a box is appraised or opened and found to be of a kind."""
        digit = 1 + kind + (self._kinds if opened else 0)
        return state + (digit - self.status(state, box)) * self._layout.places[box]

    def next_round(self, state: int) -> int:
        """The state when a round is closed: kinds stay known, and boxes are shut."""
        return int(self._layout.closed[state])

    def worth(self, truth: Sequence[int]) -> float:
        """Expectation of this play where the boxes are of these kinds."""

        @cache
        def value(turn: int, state: int, best: int) -> float:
            if turn == len(self._value):
                return 0.0
            act = self.act(turn, state, best)
            if act.box is None:
                return float(self._prizes[best]) + value(turn + 1, self.next_round(state), 0)
            kind = truth[act.box]
            then = self.after(state, act.box, kind, act.opens)
            if not act.opens:
                return value(turn, then, best) - self._costs[act.box][1]
            chances = enumerate(self._laws[kind])
            return sum(
                chance * value(turn, then, max(best, prize)) for prize, chance in chances
            ) - self._costs[act.box][0]  # fmt: skip

        return value(0, 0, 0)

    def _closing(self, turn: int, state: int, best: int) -> float:
        last = turn + 1 == len(self._value)
        later = 0.0 if last else self._value[turn + 1][self._layout.closed[state], 0]
        return float(self._prizes[best] + later)

    def _opening(self, turn: int, state: int, box: int, best: int) -> float:
        status = self.status(state, box)
        kinds = range(self._kinds) if status == 0 else (status - 1,)
        total = 0.0
        for kind in kinds:
            then = self._value[turn][self.after(state, box, kind, True)].tolist()
            total += sum(chance * then[max(best, prize)] for prize, chance in enumerate(self._laws[kind]))
        return total / len(kinds)

    def _appraising(self, turn: int, state: int, box: int, best: int) -> float:
        values = self._value[turn]
        known = sum(float(values[self.after(state, box, kind, False), best]) for kind in range(self._kinds))
        return known / self._kinds

    def _raised(self, law: Sequence[float]) -> Array:
        found = np.zeros((len(law), len(law)))
        for before in range(len(law)):
            for prize, chance in enumerate(law):
                found[max(before, prize), before] += chance
        return found

    def _solve(self, later: Array) -> Array:
        """Value of every state and best find in one round; `later` is that of the rounds after it."""
        value = self._prizes + later[self._layout.closed, None]
        for level in self._layout.levels:
            for box, (unknown, shut) in enumerate(level):
                place = self._layout.places[box]
                price, fee = self._costs[box]
                for kind, states in enumerate(shut):
                    opened = value[states + self._kinds * place] @ self._raise[kind]
                    value[states] = np.maximum(value[states], opened - price)
                known, opened = np.zeros((2, len(unknown), len(self._prizes)))
                for kind in range(self._kinds):
                    known += value[unknown + (kind + 1) * place]
                    opened += value[unknown + (kind + 1 + self._kinds) * place] @ self._raise[kind]
                best = np.maximum(known / self._kinds - fee, opened / self._kinds - price)
                value[unknown] = np.maximum(value[unknown], best)
        return value
