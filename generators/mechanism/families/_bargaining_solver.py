"""Exact solutions of the talks of `bargaining`: for known curves, for unknown ones, and in hindsight.

A buyer who has refused `talks` asks stands at a bid, and takes any ask up to what its next bid would be (the acceptance
rule of Faratin, Sierra and Jennings 1998). Buyers come one after the other and share the rounds; after every refusal
talks may break off, which discounts what is to come (Binmore, Rubinstein and Wolinsky 1986).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

_CLOSE = 1e-9
"""Values that differ by less are equal; then the earlier of asking, leaving and holding out is chosen."""

Move = int | None
"""An ask; None: leave this buyer for the next."""


class Curve(NamedTuple):
    """One way that a buyer may concede, by number of refusals."""

    accepts: tuple[int, ...]
    """The highest ask that it takes."""
    bids: tuple[int, ...]
    """What it offers."""


@dataclass(frozen=True)
class Buyer:
    """What everybody knows of one; money in whole units."""

    cost: int
    """What the thing is worth to us if it is not sold."""
    opening: int
    limits: tuple[int, ...]
    """The most that it may ever pay; each equally likely."""
    breaks: int
    """Chance that a refusal ends the talks, in percent."""


@dataclass(frozen=True)
class Terms:
    """What everybody is told."""

    rounds: int
    buyers: tuple[Buyer, ...]
    styles: tuple[tuple[int, ...], ...]
    """Percent of the way from opening to limit that is conceded after 0, 1, ... refusals; each equally likely."""
    step: int
    """Bids are rounded down to whole steps above the opening."""

    @cached_property
    def curves(self) -> tuple[tuple[Curve, ...], ...]:
        """By buyer: every curve it may have, by limit and then style."""
        return tuple(
            tuple(self._curve(buyer, limit, style) for limit in buyer.limits for style in self.styles)
            for buyer in self.buyers
        )

    def _curve(self, buyer: Buyer, limit: int, style: Sequence[int]) -> Curve:
        conceded = [(limit - buyer.opening) * percent // 100 for percent in style]
        return Curve(
            tuple(buyer.opening + given for given in conceded[1:]),
            tuple(buyer.opening + given // self.step * self.step for given in conceded[:-1]),
        )

    @property
    def out_of_reach(self) -> int:
        """An ask that nobody takes: holding out."""
        return max(max(buyer.limits) for buyer in self.buyers) + 1


def deal_values(
    curve: Curve, cost: int, breaks: float, later: Sequence[float]
) -> tuple[list[list[float]], list[list[str]]]:
    """Dynamic programme of one talk with a known curve.

    Args:
        curve: what is offered and taken.
        cost: what a deal costs.
        breaks: chance that a refusal ends the talks, 0 to 1.
        later: value of what comes afterwards, by rounds left then; as many rounds as there can be, and one.

    Returns:
        Values and best acts (`ask`, `accept`, `leave`, `wait`), each by refusals so far and rounds left.
    """
    rounds = len(later) - 1
    values = [[later[0]] * (rounds + 1) for _ in range(rounds + 2)]
    acts = [["leave"] * (rounds + 1) for _ in range(rounds + 2)]
    for left in range(1, rounds + 1):
        for talks in range(min(rounds - left, len(curve.bids) - 1), -1, -1):
            waited = later[left - 1]
            if talks + 1 < len(curve.bids):
                waited = (1 - breaks) * values[talks + 1][left - 1] + breaks * later[left - 1]
            options = {
                "ask": curve.accepts[talks] - cost + later[left - 1],
                "accept": curve.bids[talks] - cost + later[left - 1],
                "leave": later[left],
                "wait": waited,
            }
            best = max(options.values())
            acts[talks][left] = next(act for act, value in options.items() if value >= best - _CLOSE)
            values[talks][left] = options[acts[talks][left]]
    return values, acts


@lru_cache(maxsize=64)
def known_talks(terms: Terms, kinds: tuple[int, ...]) -> tuple[float, dict[tuple[int, int, int], Move]]:
    """The best that one can do who knows every buyer's curve.

    Returns:
        Expected gain, and the move by buyer, refusals so far and rounds left.
    """
    later = [0.0] * (terms.rounds + 1)
    moves: dict[tuple[int, int, int], Move] = {}
    for number in range(len(terms.buyers) - 1, -1, -1):
        buyer, curve = terms.buyers[number], terms.curves[number][kinds[number]]
        values, acts = deal_values(curve, buyer.cost, buyer.breaks / 100, later)
        for left in range(1, terms.rounds + 1):
            for talks in range(terms.rounds - left + 1):
                asks = {"ask": curve.accepts[talks], "accept": curve.bids[talks], "wait": terms.out_of_reach}
                moves[number, talks, left] = asks.get(acts[talks][left])
        later = [0.0, *values[0][1:]]
    return later[-1], moves


Known = frozenset[int]
"""Curves of the present buyer that nothing has ruled out."""


class UnknownTalks:
    """The best uninformed player: every curve of a buyer is equally likely, and buyers are independent."""

    def __init__(self, terms: Terms) -> None:
        """A programme.

        Args:
            terms: what is known.
        """
        self._terms = terms
        self._solved: dict[tuple[int, int, int, Known], tuple[float, Move]] = {}

    def start(self, buyer: int) -> Known:
        """What may be true of a buyer who has not spoken yet."""
        return frozenset(range(len(self._terms.curves[buyer])))

    def value(self, buyer: int = 0, left: int | None = None) -> float:
        """Expected gain from a buyer on and those after it."""
        left = self._terms.rounds if left is None else left
        if left == 0 or buyer == len(self._terms.buyers):
            return 0.0
        return self._best(buyer, 0, left, self.start(buyer))[0]

    def move(self, buyer: int, talks: int, left: int, known: Known) -> Move:
        """What to do."""
        return self._best(buyer, talks, left, known)[1]

    def refused(self, buyer: int, talks: int, known: Known, ask: int, bid: int) -> Known:
        """What may still be true after a refused ask and the bid that followed."""
        curves = self._terms.curves[buyer]
        return frozenset(k for k in known if curves[k].accepts[talks] < ask and curves[k].bids[talks + 1] == bid)

    def _best(self, buyer: int, talks: int, left: int, known: Known) -> tuple[float, Move]:
        key = (buyer, talks, left, known)
        if key not in self._solved:
            self._solved[key] = self._search(*key)
        return self._solved[key]

    def _search(self, buyer: int, talks: int, left: int, known: Known) -> tuple[float, Move]:
        curves, cost = self._terms.curves[buyer], self._terms.buyers[buyer].cost
        then = self.value(buyer + 1, left - 1)
        bid = curves[min(known)].bids[talks]
        asks = [*sorted({bid} | {curves[k].accepts[talks] for k in known}), self._terms.out_of_reach]
        best: tuple[float, Move] = (self.value(buyer + 1, left), None)
        for ask in asks:
            stay = frozenset(k for k in known if curves[k].accepts[talks] < ask)
            value = (len(known) - len(stay)) / len(known) * (ask - cost + then)
            if stay:
                value += len(stay) / len(known) * self._refused_value(buyer, talks, left, stay)
            if value > best[0] + _CLOSE:
                best = (value, ask)
        return best

    def _refused_value(self, buyer: int, talks: int, left: int, stay: Known) -> float:
        then, breaks = self.value(buyer + 1, left - 1), self._terms.buyers[buyer].breaks / 100
        if left == 1:
            return then
        groups: dict[int, list[int]] = {}
        for k in stay:
            groups.setdefault(self._terms.curves[buyer][k].bids[talks + 1], []).append(k)
        going = sum(
            len(group) / len(stay) * self._best(buyer, talks + 1, left - 1, frozenset(group))[0]
            for group in groups.values()
        )
        return (1 - breaks) * going + breaks * then


@lru_cache(maxsize=8)
def unknown_talks(terms: Terms) -> UnknownTalks:
    """The programme of some terms; kept, since several policies and figures of one draw ask for it."""
    return UnknownTalks(terms)


Chooser = Callable[[int, int, int, Known], Move]
"""From buyer, refusals so far, rounds left, and (for those who ask) what may be true of the buyer."""


def expected_gain(terms: Terms, kinds: tuple[int, ...], choose: Chooser, *, learns: bool = False) -> float:
    """Expected gain of a policy where the buyers have these curves; only talks' breaking off is uncertain."""
    talks_of = unknown_talks(terms)

    def gain(buyer: int, talks: int, left: int, known: Known) -> float:
        if left == 0 or buyer == len(terms.buyers):
            return 0.0
        if talks == 0 and learns:
            known = talks_of.start(buyer)
        curve, ask = terms.curves[buyer][kinds[buyer]], choose(buyer, talks, left, known)
        if ask is None:
            return gain(buyer + 1, 0, left, known)
        over = gain(buyer + 1, 0, left - 1, known)
        if ask <= curve.accepts[talks]:
            return ask - terms.buyers[buyer].cost + over
        if left == 1:
            return over
        if learns:
            known = talks_of.refused(buyer, talks, known, ask, curve.bids[talks + 1])
        breaks = terms.buyers[buyer].breaks / 100
        return (1 - breaks) * gain(buyer, talks + 1, left - 1, known) + breaks * over

    return gain(0, 0, terms.rounds, frozenset())


def best_in_hindsight(terms: Terms, kinds: tuple[int, ...], breaks: Sequence[Sequence[int]]) -> int:
    """The most that could be had, curves and breaks known: rounds shared out between buyers."""
    best = [0] * (terms.rounds + 1)
    for number in range(len(terms.buyers) - 1, -1, -1):
        curve, cost = terms.curves[number][kinds[number]], terms.buyers[number].cost
        lasting = next((k for k, broke in enumerate(breaks[number]) if broke), terms.rounds)
        best = [
            max([best[left]] + [curve.accepts[talks] - cost + best[left - talks - 1]
                                for talks in range(min(left, lasting + 1))])
            for left in range(terms.rounds + 1)
        ]  # fmt: skip
    return best[-1]
