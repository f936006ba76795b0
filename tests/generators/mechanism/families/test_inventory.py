"""Stock control: thresholds and beliefs against full enumeration, and the world against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from statistics import fmean
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation, Refused
from envsynth.generators.mechanism.families._inventory_solver import (
    Stock,
    base_stock,
    bayes_target,
    best_in_hindsight,
    expected_cost,
    odds,
    realised_cost,
)
from envsynth.generators.mechanism.families.inventory import Demands, Inventory, InventoryFamily, guess_score

FAMILY = InventoryFamily()
SOME_LEVELS = [1, 2, *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS[2:])]
CHANCES = (10, 20, 50, 70, 90)
SMALL = Stock(days=4, customers=2, delay=1, room=6, start=1, fixed=4, cost=2, hold=1, wait=3, rush=5, chances=CHANCES)
AT_ONCE = replace(SMALL, delay=0)


def charge(stock: Stock, day: int, level: int) -> int:
    last = stock.rush if day == stock.days - 1 else 0
    return stock.hold * level if level >= 0 else -level * (stock.wait + last)


def least_cost(stock: Stock, laws: tuple[int, ...]) -> float:
    """Least expected cost over all policies, with every order on its way as state of its own; laws equally likely."""

    @cache
    def value(day: int, level: int, due: tuple[int, ...], weights: tuple[float, ...]) -> float:
        if day == stock.days:
            return 0.0
        if stock.delay:
            level, due = level + due[0], due[1:]
        best = float("inf")
        for quantity in range(stock.room - level - sum(due) + 1):
            total = sum(weights) * (stock.fixed + stock.cost * quantity if quantity else 0)
            ready, later = (level, (*due, quantity)) if stock.delay else (level + quantity, ())
            for wanted in range(stock.customers + 1):
                after = tuple(
                    weight * odds(stock.customers, law)[wanted] for weight, law in zip(weights, laws, strict=True)
                )
                total += sum(after) * charge(stock, day, ready - wanted)
                total += value(day + 1, ready - wanted, later, after)
            best = min(best, total)
        return best

    return value(0, stock.start, (0,) * stock.delay, (1 / len(laws),) * len(laws))


@pytest.mark.parametrize("stock", [SMALL, AT_ONCE, replace(SMALL, fixed=9, wait=2), replace(SMALL, rush=1)])
@pytest.mark.parametrize("chance", [30, 80])
def test_thresholds_are_the_best_of_all_policies(stock: Stock, chance: int) -> None:
    rules = base_stock(stock, chance)

    def oracle(day: int, position: int, seen: int) -> int:
        low, high = rules[day]
        return high if position <= low else position

    assert expected_cost(stock, chance, oracle) == pytest.approx(least_cost(stock, (chance,)))


@pytest.mark.parametrize("stock", [replace(SMALL, days=3), replace(AT_ONCE, days=3)])
def test_beliefs_are_used_in_the_best_way(stock: Stock) -> None:
    def bayes(day: int, position: int, seen: int) -> int:
        return bayes_target(stock, day, position, seen)

    prior = fmean(expected_cost(stock, chance, bayes, counts=True) for chance in CHANCES)
    assert prior == pytest.approx(least_cost(stock, CHANCES))


@pytest.mark.parametrize("stock", [SMALL, AT_ONCE])
def test_expected_cost_is_the_mean_over_all_demands(stock: Stock) -> None:
    drawn = Inventory(stock, chance=60, claim=20, unit=7)
    law = odds(stock.customers, drawn.chance)
    mean = 0.0
    for demands in product(range(stock.customers + 1), repeat=stock.days):
        share = 1.0
        for wanted in demands:
            share *= law[wanted]
        mean += share * FAMILY.solved(drawn, Demands(demands))
    assert FAMILY.expected(drawn)["oracle"] == pytest.approx(mean)


@pytest.mark.parametrize("stock", [SMALL, replace(AT_ONCE, days=3)])
def test_hindsight_is_the_cheapest_of_all_orders(stock: Stock) -> None:
    rng = Random(3)
    for _ in range(3):
        demands = tuple(rng.randint(0, stock.customers) for _ in range(stock.days))
        costs = []
        for targets in product(range(-9, stock.room + 1), repeat=stock.days - stock.delay):
            rules = [(high - 1, high) for high in targets] + [(-1000, 1)] * stock.delay
            costs.append(realised_cost(stock, rules, demands))
        assert best_in_hindsight(stock, demands) == min(costs)


@pytest.mark.parametrize("level", SOME_LEVELS)
@pytest.mark.parametrize("presentation", list(Presentation))
def test_play_realises_what_arithmetic_says(level: int, presentation: Presentation, neutral_stage: Any) -> None:
    drawn = FAMILY.sample(level, Random(level), 25)
    tape = FAMILY.tape(drawn, Random(10 * level))
    with neutral_stage(FAMILY, drawn, tape, presentation) as stage:
        played = {name: stage.play(policy) for name, policy in FAMILY.policies(drawn, presentation).items()}
        attacks = FAMILY.attacks(drawn, presentation, Random(1))
        attacked = {name: stage.play(policy).utility for name, policy in attacks.items()}
    assert played["oracle"].utility == FAMILY.solved(drawn, tape)
    assert all(one.over for one in played.values())
    ceiling = FAMILY.hindsight(drawn, tape)
    assert max(one.utility for one in played.values()) <= ceiling
    # A guess may be lucky on one tape.
    assert attacked.pop("half") <= ceiling
    assert max(attacked.values()) < played["oracle"].utility


def test_days_left_unclosed_cost_what_closing_them_would(neutral_stage: Any) -> None:
    drawn = FAMILY.sample(4, Random(9), 10)
    tape = FAMILY.tape(drawn, Random(9))

    def play(closes: int) -> Any:
        def policy(player: Any) -> None:
            for day in range(closes):
                if day == 2:
                    player.call("buy", quantity=7)
                player.call("close")

        return policy

    with neutral_stage(FAMILY, drawn, tape, Presentation.HIDDEN) as stage:
        utilities = {stage.play(play(closes)).utility for closes in range(3, drawn.stock.days + 1)}
    assert len(utilities) == 1


def test_orders_beyond_the_room_or_a_second_one_change_nothing(neutral_stage: Any) -> None:
    drawn = FAMILY.sample(2, Random(1), 1)
    with neutral_stage(FAMILY, drawn, FAMILY.tape(drawn, Random(1)), Presentation.HIDDEN) as stage:
        before = stage.call("status")
        with pytest.raises(Refused, match="more than"):
            stage.call("buy", quantity=drawn.stock.room + 1)
        assert stage.call("status") == before
        stage.call("buy", quantity=1)
        with pytest.raises(Refused, match="one order a day"):
            stage.call("buy", quantity=1)
        assert stage.call("status")["bought"] == 1


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_draws_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 250)
    assert dear == replace(one, unit=250)
    expected = FAMILY.expected(one)
    place = (expected["default"] - expected["idle"]) / (expected["oracle"] - expected["idle"])
    assert FAMILY.band[0] < place < FAMILY.band[1]
    assert expected["default"] < expected["bayes"] <= expected["oracle"]


@pytest.mark.slow
def test_levels_cost_the_uninformed_more() -> None:
    def regret(level: int) -> float:
        draws = [FAMILY.sample(level, Random(50 * level + number), 1) for number in range(3)]
        cases = [FAMILY.expected(replace(one, chance=chance)) for one in draws for chance in one.stock.chances]
        return fmean(one["oracle"] - one["default"] for one in cases)

    assert regret(1) < regret(3) < regret(5)


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_no_guess_is_good_for_every_chance(level: int) -> None:
    drawn = FAMILY.sample(level, Random(3 * level), 1)
    assert len(drawn.stock.chances) == 4
    assert drawn.stock.chances[1] < drawn.claim < drawn.stock.chances[2]
    for guess in range(10, 100, 10):
        cases = [replace(drawn, chance=chance) for chance in drawn.stock.chances]
        assert fmean(guess_score(case, guess, "bayes") for case in cases) < 0.8


@pytest.mark.slow
def test_all_chances_are_equally_likely() -> None:
    ranks = []
    for number in range(30):
        drawn = FAMILY.sample(1, Random(number), 1)
        ranks.append(drawn.stock.chances.index(drawn.chance) / (len(drawn.stock.chances) - 1))
    assert 0.3 < fmean(ranks) < 0.7
    assert min(ranks.count(0.0), ranks.count(1.0)) >= 3
