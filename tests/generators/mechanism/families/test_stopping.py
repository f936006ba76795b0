"""The solvers of stopping against enumeration of policies, tapes and histories."""

from collections.abc import Iterator
from itertools import combinations, permutations, product
from math import prod
from random import Random
from statistics import fmean

import pytest

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families._stopping_parameters import Stopping, attack_bars
from envsynth.generators.mechanism.families._stopping_sampler import guess_places
from envsynth.generators.mechanism.families._stopping_solver import (
    Bars,
    LawBelief,
    Market,
    RankBelief,
    best_bars,
    law_market,
    rank_market,
    values,
    worth,
)
from envsynth.generators.mechanism.families.stopping import Offers, StoppingFamily

FAMILY = StoppingFamily()
LAWS = ((12, 6, 3), (3, 3, 3), (3, 6, 12))
BY_GRADES = Stopping(
    lots=2, looks=4, numbers=(), pays=(5, 9, 20), laws=LAWS, truth=2, claimed=1, look_cost=2, study_cost=2
)
BY_RANK = Stopping(
    lots=2, looks=7, numbers=(3, 5, 7), pays=(20, 11, 4), laws=(), truth=5, claimed=4, look_cost=1, study_cost=3
)


def all_bars(market: Market, worst: int) -> Iterator[Bars]:
    """Every policy of bars, looking or not."""
    spots = [
        (day, left)
        for day in range(1, len(market.days) + 1)
        for left in range(1, market.lots + 1)
        if market.lots - left < day
    ]
    for chosen in product(range(-1, worst + 1), repeat=len(spots)):
        yield {spot: bar for spot, bar in zip(spots, chosen, strict=True) if bar >= 0}


@pytest.mark.parametrize(
    ("market", "worst"),
    [(law_market((5, 9, 20), (4, 3, 2), 3, 2, 3), 3), (rank_market((20, 11, 4), 4, 1, 1), 4)],
    ids=["law", "rank"],
)
def test_bars_are_the_best_of_all_policies(market: Market, worst: int) -> None:
    best = max(worth(market, bars) for bars in all_bars(market, worst))
    assert values(market)[0][market.lots] == pytest.approx(best)
    assert worth(market, best_bars(market)) == pytest.approx(best)


def test_oracle_expects_the_mean_over_all_tapes_by_grades() -> None:
    total = 0.0
    for shown in product(range(3), repeat=BY_GRADES.looks):
        chance = prod(LAWS[2][grade] / sum(LAWS[2]) for grade in shown)
        pays = tuple(BY_GRADES.pays[grade] for grade in shown)
        total += chance * FAMILY.solved(BY_GRADES, Offers(shown, pays, ()))
    assert FAMILY.expected(BY_GRADES)["oracle"] == pytest.approx(total)


def test_oracle_expects_the_mean_over_all_orders_by_rank() -> None:
    realised = []
    for order in permutations(range(1, BY_RANK.truth + 1)):
        shown = tuple(sum(other <= final for other in order[:day]) for day, final in enumerate(order, 1))
        pays = tuple((*BY_RANK.pays, 0, 0)[final - 1] for final in order)
        realised.append(FAMILY.solved(BY_RANK, Offers(shown, pays, ())))
    assert FAMILY.expected(BY_RANK)["oracle"] == pytest.approx(fmean(realised))


def expectimax(seen: tuple[int, ...], day: int, left: int, studied: int) -> float:
    """Best play over whole histories, with Bayes' rule on every grade seen; looks 3, one study of two grades."""
    if day == 3 or left == 0:
        return 0.0
    likely = [prod(law[grade] / sum(law) for grade in seen) for law in LAWS]

    def chance(*grades: int) -> float:
        laws = zip(likely, LAWS, strict=True)
        return sum(like * prod(law[grade] / sum(law) for grade in grades) for like, law in laws) / sum(likely)

    look, study = -2.0, -1.0
    for grade, pay in enumerate((5, 9, 20)):
        after = (*seen, grade)
        taken = pay + expectimax(after, day + 1, left - 1, studied)
        look += chance(grade) * max(taken, expectimax(after, day + 1, left, studied))
    for pair in product(range(3), repeat=2):
        study += chance(*pair) * expectimax((*seen, *pair), day + 1, left, 1) if not studied else -100
    return max(0.0, look, study)


def test_law_belief_is_the_best_over_whole_histories() -> None:
    belief = LawBelief((5, 9, 20), LAWS, 3, 2, (2, 1), (1, 2))
    assert belief.value == pytest.approx(expectimax((), 0, 2, 0))
    assert fmean(belief.worth(truth) for truth in range(3)) == pytest.approx(belief.value)


@pytest.mark.parametrize("numbers", [(2, 3, 4), (1, 4)])
def test_rank_belief_is_the_best_of_all_policies_for_an_unknown_number(numbers: tuple[int, ...]) -> None:
    pays = (20, 11, 4)
    markets = [rank_market(pays, number, 1, 1) for number in numbers]
    best = max(fmean(worth(market, bars) for market in markets) for bars in all_bars(markets[-1], 4))
    assert RankBelief(pays, numbers, 1, 1, 10_000).value == pytest.approx(best)


def test_rank_belief_expects_what_it_earns() -> None:
    numbers = (3, 4, 7)
    belief = RankBelief((20, 11, 4), numbers, 2, 1, 1)
    assert fmean(belief.worth(number) for number in numbers) == pytest.approx(belief.value)
    known = fmean(values(rank_market((20, 11, 4), number, 2, 1))[0][2] for number in numbers)
    assert known - 1 <= belief.value <= known


@pytest.mark.parametrize("parameters", [BY_GRADES, BY_RANK], ids=["grades", "rank"])
def test_hindsight_is_the_best_choice_of_offers(parameters: Stopping) -> None:
    for seed in range(30):
        tape = FAMILY.tape(parameters, Random(seed))
        realised = [0.0]
        for count in (1, 2):
            for days in combinations(range(len(tape.pays)), count):
                realised.append(sum(tape.pays[day] for day in days) - (days[-1] + 1) * parameters.look_cost)
        assert FAMILY.hindsight(parameters, tape) == max(realised)
        assert FAMILY.solved(parameters, tape) <= max(realised)


@pytest.mark.parametrize("level", LEVELS)
def test_draws_mislead_and_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 40)
    assert best_bars(one.market(one.truth)) == best_bars(dear.market(dear.truth))
    assert one.claimed not in one.truths
    assert one.truth in one.truths
    expected = FAMILY.expected(one)
    assert expected["idle"] < expected["default"] < expected["bayes"] <= expected["oracle"] + 1e-9


@pytest.mark.slow
def test_levels_leave_less_to_the_first_offers() -> None:
    def share(level: int) -> float:
        found = []
        for seed in range(8):
            drawn = FAMILY.sample(level, Random(1000 * level + seed), 1)
            first = attack_bars(drawn)["no_probing"]
            markets = [drawn.market(truth) for truth in drawn.truths]
            found += [worth(market, first) / values(market)[0][drawn.lots] for market in markets]
        return fmean(found)

    assert share(1) > share(2) > share(3)
    assert share(4) > share(5)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reference", ["oracle", "bayes"])
def test_no_guess_is_good_for_every_truth(level: int, reference: str) -> None:
    for seed in range(3):
        drawn = FAMILY.sample(level, Random(70 * level + seed), 1)
        places = guess_places(drawn, reference)
        assert {f"as if {truth}" for truth in drawn.truths} <= places.keys()
        assert max(places.values()) < 0.75


@pytest.mark.parametrize("level", LEVELS)
def test_truths_lie_on_both_sides_of_the_claim(level: int) -> None:
    drawn = FAMILY.sample(level, Random(level), 1)
    half = len(drawn.truths) // 2
    assert drawn.truths[half - 1] < drawn.claimed < drawn.truths[half]


@pytest.mark.slow
def test_all_truths_are_equally_likely() -> None:
    drawn = [FAMILY.sample(5, Random(900 + seed), 1) for seed in range(40)]
    ranks = [one.truths.index(one.truth) for one in drawn]
    assert all(3 <= ranks.count(rank) <= 18 for rank in range(4))
