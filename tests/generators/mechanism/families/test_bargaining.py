"""Bargaining: programmes against enumeration and Rubinstein's split, and the world against plain arithmetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from statistics import fmean
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation, Refused
from envsynth.generators.mechanism.families._bargaining_solver import (
    Buyer,
    Curve,
    Terms,
    UnknownTalks,
    best_in_hindsight,
    deal_values,
    expected_gain,
    known_talks,
    unknown_talks,
)
from envsynth.generators.mechanism.families.bargaining import (
    Bargaining,
    BargainingFamily,
    Breaks,
    default_share,
    draw_told,
)

FAMILY = BargainingFamily()
SOME_LEVELS = [1, 2, *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS[2:])]
STYLES = ((0, 10, 40, 100, 100), (0, 60, 80, 100, 100))
SMALL = Terms(
    rounds=4,
    buyers=(Buyer(95, 100, (140, 190), 10), Buyer(52, 50, (80, 120), 20)),
    styles=STYLES,
    step=20,
)


def stahl_curve(stay: float, rounds: int) -> Curve:
    """What a rational opponent takes and offers of a pie of a million, proposals alternating to the last round.

    Stahl's backward induction, with its own recursion: we propose first in a round, then it does.
    """
    accepts, bids = [0.0] * rounds, [0.0] * rounds
    ours, its = 0.0, 0.0
    for number in range(rounds - 1, -1, -1):
        bids[number] = ours
        its = 1e6 - bids[number]
        accepts[number] = 1e6 - stay * its
        ours = stay * accepts[number]
    return Curve(tuple(map(int, accepts)), tuple(map(int, bids)))


@pytest.mark.parametrize("stay", [0.5, 0.8, 0.9])
def test_a_rational_opponent_leaves_rubinsteins_split(stay: float) -> None:
    rounds = 100
    curve = stahl_curve(stay, rounds)
    values, acts = deal_values(curve, 0, 1 - stay**2, [0.0] * (rounds + 1))
    assert values[0][rounds] == pytest.approx(1e6 / (1 + stay), rel=1e-4)
    assert acts[0][rounds] == "ask"


def best_with_knowledge(terms: Terms, kinds: tuple[int, ...]) -> float:
    """Most that anyone can expect who knows the curves, every price being allowed."""
    curves = [terms.curves[number][kind] for number, kind in enumerate(kinds)]

    @cache
    def value(party: int, talks: int, left: int) -> float:
        if left == 0 or party == len(curves):
            return 0.0
        buyer, best = terms.buyers[party], value(party + 1, 0, left)
        for ask in range(40, 200):
            over = value(party + 1, 0, left - 1)
            if ask <= curves[party].accepts[talks]:
                best = max(best, ask - buyer.cost + over)
            elif left > 1:
                goes_on = value(party, talks + 1, left - 1)
                best = max(best, (100 - buyer.breaks) / 100 * goes_on + buyer.breaks / 100 * over)
        return best

    return value(0, 0, terms.rounds)


@pytest.mark.parametrize("kinds", list(product(range(4), repeat=2)))
def test_known_talks_are_the_best_of_all_policies(kinds: tuple[int, ...]) -> None:
    best, moves = known_talks(SMALL, kinds)
    assert best == pytest.approx(best_with_knowledge(SMALL, kinds))
    played = expected_gain(SMALL, kinds, lambda party, talks, left, known: moves[party, talks, left])
    assert played == pytest.approx(best)


def best_without_knowledge(terms: Terms) -> float:
    """Most that anyone can expect who knows the prior, by histories of asks and bids; prices in whole tens."""
    prices = range(50, 200, 10)

    def value(party: int, left: int, history: tuple[tuple[int, int], ...]) -> float:
        if left == 0 or party == len(terms.buyers):
            return 0.0
        buyer, curves = terms.buyers[party], terms.curves[party]
        possible = [
            curve
            for curve in curves
            if all(curve.accepts[n] < ask and curve.bids[n + 1] == bid for n, (ask, bid) in enumerate(history))
        ]
        talks, best = len(history), value(party + 1, left, ())
        for ask in prices:
            over = value(party + 1, left - 1, ())
            total = 0.0
            for curve in possible:
                if ask <= curve.accepts[talks]:
                    total += ask - buyer.cost + over
                elif left == 1:
                    total += over
                else:
                    after = value(party, left - 1, (*history, (ask, curve.bids[talks + 1])))
                    total += (100 - buyer.breaks) / 100 * after + buyer.breaks / 100 * over
            best = max(best, total / len(possible))
        return best

    return value(0, terms.rounds, ())


@pytest.mark.parametrize("breaks", [0, 25])
def test_unknown_talks_are_the_best_of_all_policies(breaks: int) -> None:
    buyers = (Buyer(60, 60, (100, 160), breaks), Buyer(50, 50, (150,), breaks))
    terms = Terms(rounds=3, buyers=buyers, styles=((0, 0, 50, 100), (0, 50, 100, 100)), step=20)
    programme = UnknownTalks(terms)
    assert programme.value() == pytest.approx(best_without_knowledge(terms))
    kinds = product(range(4), range(2))
    gains = [expected_gain(terms, kind, unknown_talks(terms).move, learns=True) for kind in kinds]
    assert fmean(gains) == pytest.approx(programme.value())


def test_expected_gain_is_the_mean_over_all_tapes() -> None:
    drawn = Bargaining(SMALL, kinds=(2, 0), claims=(120, 70), unit=100)
    mean = 0.0
    for broken in product((0, 1), repeat=2 * SMALL.rounds):
        rows = (broken[: SMALL.rounds], broken[SMALL.rounds :])
        share = 1.0
        for buyer, row in zip(SMALL.buyers, rows, strict=True):
            for broke in row:
                share *= buyer.breaks / 100 if broke else 1 - buyer.breaks / 100
        mean += share * FAMILY.solved(drawn, Breaks(rows))
    assert FAMILY.expected(drawn)["oracle"] == pytest.approx(mean)


def test_hindsight_is_the_best_of_all_timings() -> None:
    rng = Random(8)
    for kinds in product(range(4), repeat=2):
        broken = [[int(rng.random() < 0.3) for _ in range(SMALL.rounds)] for _ in SMALL.buyers]
        best = 0
        for timing in product((None, *range(SMALL.rounds)), repeat=2):
            left, earned = SMALL.rounds, 0
            for number, talks in enumerate(timing):
                if talks is None or talks >= left:
                    continue
                left -= talks + 1
                if not any(broken[number][:talks]):
                    earned += SMALL.curves[number][kinds[number]].accepts[talks] - SMALL.buyers[number].cost
            best = max(best, earned)
        assert best_in_hindsight(SMALL, kinds, broken) >= best
        assert best_in_hindsight(SMALL, kinds, [[0] * 4, [0] * 4]) >= best_in_hindsight(SMALL, kinds, broken)


@pytest.mark.parametrize("level", SOME_LEVELS)
@pytest.mark.parametrize("presentation", list(Presentation))
def test_play_realises_what_arithmetic_says(level: int, presentation: Presentation, neutral_stage: Any) -> None:
    drawn = FAMILY.sample(level, Random(level), 25)
    tape = FAMILY.tape(drawn, Random(10 * level))
    with neutral_stage(FAMILY, drawn, tape, presentation) as stage:
        played = {name: stage.play(policy) for name, policy in FAMILY.policies(drawn, presentation).items()}
        attacks = FAMILY.attacks(drawn, presentation, Random(1))
        attacked = [stage.play(policy).utility for policy in attacks.values()]
    assert played["oracle"].utility == FAMILY.solved(drawn, tape)
    assert max(*(one.utility for one in played.values()), *attacked) <= FAMILY.hindsight(drawn, tape)


def test_a_bid_that_is_taken_and_a_buyer_that_is_left(neutral_stage: Any) -> None:
    drawn = Bargaining(SMALL, kinds=(0, 0), claims=(120, 70), unit=10)
    with neutral_stage(FAMILY, drawn, Breaks(((0,) * 4, (0,) * 4)), Presentation.HIDDEN) as stage:
        assert stage.call("leave") == {"party": 2, "talks": 0, "bid": 500, "rounds_left": 4, "earned": 0}
        assert stage.call("accept")["earned"] == 500 - 520
        assert stage.over


def test_price_out_of_bounds_is_refused(neutral_stage: Any) -> None:
    drawn = Bargaining(SMALL, kinds=(0, 0), claims=(120, 70), unit=10)
    with neutral_stage(FAMILY, drawn, Breaks(((0,) * 4, (0,) * 4)), Presentation.HIDDEN) as stage:
        before = stage.call("status")
        with pytest.raises(Refused):
            stage.call("ask", price=10**9)
        assert stage.call("status") == before


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_draws_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 250)
    assert dear == replace(one, unit=250)
    assert FAMILY.band[0] < default_share(one) < FAMILY.band[1]


def truths(drawn: Bargaining, rng: Random, count: int) -> list[Bargaining]:
    """The same told, with other limits and manners."""
    return [
        replace(drawn, kinds=tuple(rng.randrange(len(curves)) for curves in drawn.terms.curves)) for _ in range(count)
    ]


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_the_default_is_misled_whatever_is_true(level: int) -> None:
    for case in truths(FAMILY.sample(level, Random(30 + level), 1), Random(level), 6):
        expected = FAMILY.expected(case)
        assert expected["idle"] < expected["default"] < expected["bayes"] <= expected["oracle"] + 1e-9
        assert FAMILY.band[0] < expected["default"] / expected["oracle"] < FAMILY.band[1]


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_the_truth_is_drawn_evenly_after_all_that_is_told(level: int) -> None:
    rng = Random(70 + level)
    terms, claims = draw_told(level, rng)
    drawn = FAMILY.sample(level, Random(70 + level), 1)
    assert (drawn.terms, drawn.claims) == (terms, claims)
    assert drawn.kinds == tuple(rng.randrange(len(buyer.limits) * len(terms.styles)) for buyer in terms.buyers)


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_every_listed_limit_suits_the_claim(level: int) -> None:
    drawn = FAMILY.sample(level, Random(90 + level), 1)
    for buyer, claim in zip(drawn.terms.buyers, drawn.claims, strict=True):
        assert buyer.opening < claim < min(buyer.limits)


@pytest.mark.slow
def test_limits_and_manners_are_even_over_draws_whatever_is_claimed() -> None:
    limits: dict[bool, Counter[int]] = {False: Counter(), True: Counter()}
    manners: Counter[int] = Counter()
    for number in range(120):
        drawn = FAMILY.sample(1, Random(5000 + number), 1)
        for buyer, claim, kind in zip(drawn.terms.buyers, drawn.claims, drawn.kinds, strict=True):
            limit, manner = divmod(kind, len(drawn.terms.styles))
            way = (claim - buyer.opening) / (min(buyer.limits) - buyer.opening)
            limits[way > 0.7][limit] += 1
            manners[manner] += 1
    for counts in (*limits.values(), manners):
        even = counts.total() / (2 if counts is manners else 3)
        assert all(0.65 * even < counts[place] < 1.35 * even for place in counts)
        assert counts.total() > 60


@pytest.mark.slow
def test_levels_leave_the_default_further_behind() -> None:
    def share(level: int) -> float:
        draws = [FAMILY.sample(level, Random(50 * level + number), 1) for number in range(4)]
        return fmean(default_share(case) for one in draws for case in truths(one, Random(level), 20))

    assert share(1) > share(3) > share(5)
