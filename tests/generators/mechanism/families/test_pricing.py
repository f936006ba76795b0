"""Pricing: price tables and beliefs against enumeration, and the world against plain arithmetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from statistics import fmean
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation, Refused
from envsynth.generators.mechanism.families._pricing_market import blind_scores, blind_tables
from envsynth.generators.mechanism.families._pricing_solver import (
    BeliefProgramme,
    after,
    bayes_takings,
    best_value,
    price_table,
    table_value,
)
from envsynth.generators.mechanism.families.pricing import Pricing, PricingFamily, Visitors

FAMILY = PricingFamily()
SOME_LEVELS = [1, 2, *(pytest.param(level, marks=pytest.mark.slow) for level in LEVELS[2:])]
KINDS = ((90, 35), (45, 40), (70, 10))
SMALL = Pricing(prices=(4, 9), days=3, stock=2, kinds=KINDS, kind=1, claim=0, unit=100)


def test_price_table_is_the_best_of_all_tables() -> None:
    for curve in KINDS:
        tables = (
            tuple((0, *prices[2 * day : 2 * day + 2]) for day in range(3)) for prices in product((0, 1), repeat=6)
        )
        best = max(table_value(SMALL.season, curve, table) for table in tables)
        assert best_value(SMALL.season, curve) == pytest.approx(best)
        assert table_value(SMALL.season, curve, price_table(SMALL.season, curve)) == pytest.approx(best)


def test_a_long_season_asks_for_more() -> None:
    table = price_table(((4, 9), 30, 2), (80, 20))
    assert [table[day][2] for day in (0, 29)] == [1, 0]


def tree_value(histories: dict[tuple[int, ...], int], curve: tuple[int, ...]) -> float:
    """Expected takings of a policy from answers so far to a price, in a given market."""

    def value(history: tuple[int, ...]) -> float:
        if len(history) == SMALL.days or sum(history) == SMALL.stock:
            return 0.0
        price = histories[history]
        sold = curve[price] / 100
        return sold * (SMALL.prices[price] + value((*history, 1))) + (1 - sold) * value((*history, 0))

    return value(())


def test_belief_programme_is_the_best_of_all_policies() -> None:
    histories = [history for length in range(3) for history in product((0, 1), repeat=length)]
    best = max(
        fmean(tree_value(dict(zip(histories, prices, strict=True)), curve) for curve in KINDS)
        for prices in product((0, 1), repeat=len(histories))
    )
    assert BeliefProgramme(SMALL.season, KINDS).value == pytest.approx(best)
    assert fmean(bayes_takings(SMALL.season, KINDS, curve) for curve in KINDS) == pytest.approx(best)


def test_sales_and_refusals_are_counted_by_price() -> None:
    assert after(((1, 0), (2, 3)), 1, 1) == ((1, 0), (3, 3))
    assert after(((1, 0), (2, 3)), 0, 0) == ((1, 1), (2, 3))


def all_tapes(days: int) -> list[Visitors]:
    return [Visitors(draws) for draws in product(range(0, 100, 5), repeat=days)]


def test_expected_takings_are_the_mean_over_all_tapes() -> None:
    mean = fmean(FAMILY.solved(SMALL, tape) for tape in all_tapes(3))
    assert FAMILY.expected(SMALL)["oracle"] == pytest.approx(mean)


def test_hindsight_is_the_best_of_all_sequences() -> None:
    rng = Random(2)
    curve = SMALL.kinds[SMALL.kind]
    for _ in range(20):
        tape = FAMILY.tape(SMALL, rng)
        best = 0
        for sequence in product((0, 1, None), repeat=SMALL.days):
            stock, earned = SMALL.stock, 0
            for price, draw in zip(sequence, tape.draws, strict=True):
                if price is not None and stock and draw < curve[price]:
                    stock, earned = stock - 1, earned + SMALL.prices[price]
            best = max(best, earned)
        assert FAMILY.hindsight(SMALL, tape) == 100 * best


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


def test_a_plan_with_an_entry_left_out_is_refused(neutral_stage: Any) -> None:
    entry = {"day": 1, "left_over": 2, "price": 400}
    with neutral_stage(FAMILY, SMALL, all_tapes(3)[0], Presentation.WRITTEN) as stage:
        with pytest.raises(Refused, match="none left out"):
            stage.call("submit", plan=[entry])
        assert not stage.over


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_the_claim_misleads_in_every_market_and_the_unit_is_of_no_consequence(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 250)
    assert dear == replace(one, unit=250)
    for curve in one.possible:
        expected = FAMILY.expected(replace(one, kind=one.kinds.index(curve)))
        assert FAMILY.band[0] < expected["default"] / expected["oracle"] < FAMILY.band[1]
        assert expected["default"] < expected["bayes"] <= expected["oracle"]
        trusted = table_value(one.season, curve, price_table(one.season, one.kinds[one.claim]))
        assert trusted <= 0.75 * expected["oracle"]


@pytest.mark.parametrize("level", SOME_LEVELS)
def test_who_learns_nothing_does_not_come_near(level: int) -> None:
    """Fixed prices, the best prices on average, and those for any one kind, over the law that the text states."""
    found = [blind_scores(FAMILY.sample(level, Random(f"blind/{number}"), 1), "bayes") for number in range(3)]
    assert {"average", "everywhere", "greedy", "sell_off", "constant", "in_turn", "kind_0"} <= found[0].keys()
    assert max(max(scores.values()) for scores in found) < 0.8
    assert max(found[0].values()) > 0.3


def test_places_of_blind_tables_are_between_default_and_reference() -> None:
    drawn = FAMILY.sample(1, Random("places"), 1)
    scores = blind_scores(drawn, "oracle")
    kind_0 = blind_tables(drawn)["kind_0"]
    places = []
    for curve in drawn.possible:
        expected = FAMILY.expected(replace(drawn, kind=drawn.kinds.index(curve)))
        place = table_value(drawn.season, curve, kind_0) - expected["default"]
        places.append(min(1.0, max(0.0, place / (expected["oracle"] - expected["default"]))))
    assert places[0] == pytest.approx(1.0)
    assert scores["kind_0"] == pytest.approx(fmean(places))


@pytest.mark.slow
def test_the_claim_is_never_true_and_all_others_are_equally_likely() -> None:
    ranks = []
    for number in range(30):
        drawn = FAMILY.sample(1, Random(number), 1)
        assert drawn.kind != drawn.claim
        ranks.append(drawn.possible.index(drawn.kinds[drawn.kind]))
    assert min(ranks.count(rank) for rank in range(3)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_no_one_price_is_best_in_most_markets(level: int) -> None:
    best = []
    for number in range(20):
        one = FAMILY.sample(level, Random(number), 1)
        curve = one.kinds[one.kind]
        tables = [((price,) * (one.stock + 1),) * one.days for price in range(len(one.prices))]
        best.append(max(range(len(tables)), key=lambda price: table_value(one.season, curve, tables[price])))
    assert max(best.count(price) for price in best) <= 15


@pytest.mark.slow
def test_claims_mislead_more_from_level_to_level() -> None:
    def share(level: int) -> float:
        draws = [FAMILY.sample(level, Random(50 * level + number), 1) for number in range(6)]
        cases = [replace(one, kind=one.kinds.index(curve)) for one in draws for curve in one.possible]
        values = [best_value(one.season, one.kinds[one.kind]) for one in cases]
        return fmean(FAMILY.expected(one)["default"] / value for one, value in zip(cases, values, strict=True))

    assert share(1) > share(4)
