"""The queue: thresholds and beliefs against unrestricted programmes, and the world against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from statistics import fmean
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation, Refused
from envsynth.generators.mechanism.families._queue_solver import (
    Counter,
    Rule,
    bayes_gain,
    belief_programme,
    best_gain,
    best_rules,
    expected_gain,
)
from envsynth.generators.mechanism.families.queue import Queue, QueueFamily, Shift, rules_place

FAMILY = QueueFamily()
SOME_LEVELS = [1, 2, *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS[2:])]
CHANCES = (10, 20, 40, 60, 80, 90)
SMALL = Counter(
    slots=3, room=2, fees=(6, 15), arrivals=(40, 30), own=30, price=2, hold=1, refund=9, chances=CHANCES
)  # fmt: skip


def best_of_all(counter: Counter, laws: tuple[int, ...]) -> float:
    """Most that any policy can expect, looking at all that was seen; the extra crew's chances are equally likely."""

    @cache
    def value(slot: int, waiting: int, weights: tuple[float, ...]) -> float:
        if slot == counter.slots:
            return -sum(weights) * counter.refund * waiting
        total = 0.0
        for fee, odd in counter.offers:
            stays = [(waiting, 0)] + ([(waiting + 1, fee)] if fee and waiting < counter.room else [])
            total += odd * max(sum(weights) * paid + worked(slot, now, weights) for now, paid in stays)
        return total

    def worked(slot: int, waiting: int, weights: tuple[float, ...]) -> float:
        crews = [((counter.own,) * len(laws), 0), (laws, counter.price)]
        return max(served(slot, waiting, weights, chances) - sum(weights) * price for chances, price in crews)

    def served(slot: int, waiting: int, weights: tuple[float, ...], chances: tuple[int, ...]) -> float:
        if not waiting:
            return value(slot + 1, 0, weights)
        pairs = list(zip(weights, chances, strict=True))
        done, open_ = tuple(w * c / 100 for w, c in pairs), tuple(w * (100 - c) / 100 for w, c in pairs)
        return sum(
            value(slot + 1, left, after) - sum(after) * counter.hold * left
            for left, after in ((waiting - 1, done), (waiting, open_))
        )

    return value(0, 0, (1 / len(laws),) * len(laws))


def drawn_counters(count: int) -> list[Counter]:
    rng = Random(11)
    return [
        Counter(slots=6, room=rng.randint(1, 4), fees=(rng.randint(2, 9), rng.randint(10, 30)), arrivals=(40, 30),
                own=rng.randint(5, 60), price=rng.randint(0, 6), hold=rng.randint(0, 4), refund=rng.randint(0, 20),
                chances=CHANCES)
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("counter", drawn_counters(6))
def test_thresholds_are_as_good_as_any_policy(counter: Counter) -> None:
    for extra in (10, 90):
        best = best_of_all(counter, (extra,))
        assert best_gain(counter, extra) == pytest.approx(best)
        assert expected_gain(counter, extra, list(best_rules(counter, extra))) == pytest.approx(best)


def test_thresholds_are_the_best_of_all_thresholds() -> None:
    counter = replace(SMALL, slots=2)
    rules = [Rule(*values) for values in product(range(3), range(3), range(1, 4))]
    best = max(expected_gain(counter, 70, list(pair)) for pair in product(rules, repeat=2))
    assert best_gain(counter, 70) == pytest.approx(best)


@pytest.mark.parametrize("counter", [SMALL, replace(SMALL, slots=4, price=4)])
def test_belief_programme_is_the_best_of_all_policies(counter: Counter) -> None:
    best = best_of_all(counter, CHANCES)
    assert belief_programme(counter).value == pytest.approx(best)
    assert fmean(bayes_gain(counter, chance) for chance in CHANCES) == pytest.approx(best)


def test_expected_gain_is_the_mean_over_all_tapes() -> None:
    drawn = Queue(replace(SMALL, slots=2), extra=80, claim=20, unit=50)
    mean = 0.0
    chances = dict(drawn.counter.offers)
    for offers in product(chances, repeat=2):
        for draws in product(range(0, 100, 5), repeat=2):
            share = chances[offers[0]] * chances[offers[1]] / 400
            mean += share * FAMILY.solved(drawn, Shift(offers, draws))
    assert FAMILY.expected(drawn)["oracle"] == pytest.approx(mean)


def test_hindsight_is_the_best_of_all_decisions(neutral_stage: Any) -> None:
    drawn = Queue(SMALL, extra=60, claim=20, unit=1)
    rng = Random(4)
    for _ in range(2):
        tape = FAMILY.tape(drawn, rng)
        with neutral_stage(FAMILY, drawn, tape, Presentation.HIDDEN) as stage:
            realised = [
                stage.play(scripted(choices)).utility
                for choices in product(product((False, True), (1, 2)), repeat=SMALL.slots)
            ]
        assert FAMILY.hindsight(drawn, tape) == max(realised)


def scripted(choices: Any) -> Any:
    def policy(player: Any) -> None:
        for admit, crew in choices:
            seen = player.call("status")
            if admit and seen["offer"] and seen["waiting"] < SMALL.room:
                player.call("admit")
            player.call("work", crew=crew)

    return policy


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


def test_stopping_early_is_never_better_than_going_on(neutral_stage: Any) -> None:
    drawn = FAMILY.sample(1, Random(5), 10)
    tape = FAMILY.tape(drawn, Random(6))

    def play(slots: int, closed: bool) -> Any:
        def policy(player: Any) -> None:
            for slot in range(drawn.counter.slots if closed else slots):
                seen = player.call("status")
                if slot < slots and seen["offer"] and seen["waiting"] < drawn.counter.room:
                    player.call("admit")
                player.call("work", crew=1)

        return policy

    with neutral_stage(FAMILY, drawn, tape, Presentation.HIDDEN) as stage:
        for slots in range(drawn.counter.slots):
            assert stage.play(play(slots, False)).utility <= stage.play(play(slots, True)).utility


def test_nobody_is_let_in_where_there_is_no_room_or_nobody(neutral_stage: Any) -> None:
    drawn = Queue(SMALL, extra=60, claim=20, unit=1)
    with neutral_stage(FAMILY, drawn, Shift((6, 0, 0), (95, 95, 95)), Presentation.HIDDEN) as stage:
        stage.call("admit")
        with pytest.raises(Refused, match="nobody"):
            stage.call("admit")
        assert stage.call("status")["balance"] == 6


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_no_simple_rule_comes_near_and_the_unit_is_of_no_consequence(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 250)
    assert dear == replace(one, unit=250)
    best, room = best_gain(one.counter, one.extra), one.counter.room
    for crew in (1, room + 1):
        assert expected_gain(one.counter, one.extra, [Rule(room, room, crew)] * one.counter.slots) <= 0.85 * best
    place = FAMILY.expected(one)["default"] / best
    assert FAMILY.band[0] < place < FAMILY.band[1]


def cases_of(level: int, number: int) -> list[Queue]:
    drawn = FAMILY.sample(level, Random(50 * level + number), 1)
    return [replace(drawn, extra=chance) for chance in drawn.counter.chances]


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_no_play_without_trying_the_extra_crew_is_good_for_every_chance(level: int) -> None:
    """Rules for any one chance, and the best open rules for the mixture of all, found by improving one slot's."""
    cases = cases_of(level, 7)
    assert len(cases) == 4
    assert cases[1].extra < cases[0].counter.own < cases[0].claim < cases[2].extra

    def mean(rules: Any) -> float:
        return fmean(rules_place(case, rules) for case in cases)

    counter = cases[0].counter
    guessed = [list(best_rules(counter, guess)) for guess in range(5, 100, 5)]
    best = max(guessed, key=mean)
    assert mean(best) < 0.8
    for slot in range(counter.slots):
        others = [best[slot]._replace(extra=extra) for extra in range(1, counter.room + 2)]
        tried = [[*best[:slot], other, *best[slot + 1 :]] for other in others]
        best = max(tried, key=mean)
    assert mean(best) < 0.8


@pytest.mark.slow
def test_all_chances_are_equally_likely() -> None:
    drawn = [FAMILY.sample(5, Random(number), 1) for number in range(40)]
    ranks = [one.counter.chances.index(one.extra) for one in drawn]
    assert 1.0 < fmean(ranks) < 2.0
    assert min(map(ranks.count, range(4))) >= 3


@pytest.mark.slow
def test_levels_leave_the_default_further_behind() -> None:
    def share(level: int) -> float:
        cases = [FAMILY.expected(case) for number in range(4) for case in cases_of(level, number)]
        return fmean(one["default"] / one["oracle"] for one in cases)

    assert share(1) > share(3) > share(5)
