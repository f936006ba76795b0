from dataclasses import replace
from itertools import combinations
from random import Random
from statistics import mean

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation
from envsynth.generators.mechanism.families.knapsack import (
    Knapsack,
    KnapsackFamily,
    Offer,
    Payments,
    Percents,
    best_choice,
    choice_place,
    possible_cases,
)

FAMILY = KnapsackFamily()
PLAIN = {"sponsors": 1, "swing": 0, "unit": 1, "boasters": 0, "boast": (20, 30)}


def possible(drawn, chosen):
    """Whether offers, in the order of their periods, can all be paid when their turn comes."""
    spent = 0
    for offer in chosen:
        spent += offer.cost
        if spent > drawn.allowance * offer.period:
            return False
    return True


def choices(drawn):
    numbered = list(enumerate(drawn.offers))
    for size in range(len(numbered) + 1):
        for chosen in combinations(numbered, size):
            if possible(drawn, [offer for _, offer in chosen]):
                yield [number for number, _ in chosen]


def small(rng):
    offers = sorted(
        Offer(rng.randint(1, 3), 1, rng.randint(1, 6), 1, rng.randint(1, 20)) for _ in range(rng.randint(1, 8))
    )
    return Knapsack(tuple(offers), 3, rng.randint(1, 7), **PLAIN)


@pytest.mark.parametrize("seed", range(15))
def test_the_best_choice_is_the_best_of_all(seed):
    drawn = small(Random(seed))

    found = best_choice(drawn)

    assert found.value == max(sum(drawn.offers[number].worth for number in chosen) for chosen in choices(drawn))
    assert found.value == sum(drawn.offers[number - 1].worth for number in found.offers)
    assert possible(drawn, [drawn.offers[number - 1] for number in found.offers])


@pytest.mark.parametrize("seed", range(8))
def test_hindsight_is_the_best_choice_at_the_payments(seed):
    rng = Random(seed)
    drawn = small(rng)
    tape = Payments(tuple(rng.randint(1, 20) for _ in drawn.offers))

    assert FAMILY.hindsight(drawn, tape) == max(sum(tape.paid[number] for number in found) for found in choices(drawn))


def test_what_a_period_leaves_is_kept_for_the_next():
    offers = (Offer(1, 1, 2, 9, 3), Offer(2, 1, 4, 9, 10))

    assert best_choice(Knapsack(offers, 2, 2, **PLAIN)) == (10, (2,))
    assert best_choice(Knapsack(offers, 2, 3, **PLAIN)) == (13, (1, 2))


def test_nothing_is_bought_ahead_of_its_allowance():
    offers = (Offer(1, 1, 5, 9, 50), Offer(2, 1, 1, 9, 2))

    assert best_choice(Knapsack(offers, 2, 4, **PLAIN)) == (2, (2,))


@pytest.mark.parametrize("level", LEVELS)
def test_the_expectation_is_the_mean_over_tapes(level):
    drawn = FAMILY.sample(level, Random(f"mean/{level}"), 10)
    utilities = [FAMILY.solved(drawn, FAMILY.tape(drawn, Random(seed))) for seed in range(200)]

    error = 4 * drawn.unit * drawn.swing * (len(drawn.offers) / len(utilities)) ** 0.5

    assert abs(mean(utilities) - FAMILY.expected(drawn)["oracle"]) <= error


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_beats_hindsight(level):
    drawn = FAMILY.sample(level, Random(f"hind/{level}"), 10)
    tapes = [FAMILY.tape(drawn, Random(seed)) for seed in range(20)]

    assert all(FAMILY.hindsight(drawn, tape) >= FAMILY.solved(drawn, tape) for tape in tapes)


def test_levels_get_harder():
    places = []
    for level in LEVELS:
        drawn = [FAMILY.sample(level, Random(f"{level}/{k}"), 1) for k in range(5)]
        found = [FAMILY.expected(case) for one in drawn for case in cases_of(one)]
        places.append(mean(values["default"] / values["oracle"] for values in found))

    assert places == sorted(places, reverse=True)


@pytest.mark.parametrize("level", LEVELS)
def test_no_decision_depends_on_the_unit(level):
    one, seven = (FAMILY.sample(level, Random("unit"), unit) for unit in (1, 7))

    assert [7 * offer.worth for offer in one.offers] == [offer.worth for offer in seven.offers]
    assert best_choice(one).offers == best_choice(seven).offers


@pytest.mark.parametrize("level", LEVELS)
def test_everything_taken_pays(level):
    drawn = FAMILY.sample(level, Random(f"pays/{level}"), 3)

    assert min(offer.worth for offer in drawn.offers) > drawn.swing * drawn.unit


def boasting(drawn):
    """Sponsors whose offers are worth no more than boasters' may be."""
    return {offer.sponsor for offer in drawn.offers if 100 * offer.worth <= drawn.boast[1] * offer.claimed}


def cases_of(drawn):
    """What a player who looks at nothing takes to be possible, every percentage in the middle of what is told."""
    middle = Percents(100, sum(drawn.boast) // 2)
    return possible_cases(drawn, [middle] * len(drawn.offers))


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_told_of_worths_is_true(level):
    drawn = FAMILY.sample(level, Random(f"told/{level}"), 10)
    facts = FAMILY.facts(drawn, Presentation.HIDDEN)
    found = boasting(drawn)

    assert len(found) == facts["boaster_count"] == drawn.boasters
    assert {offer.sponsor for offer in drawn.offers} == set(range(1, facts["sponsor_count"] + 1))
    for offer in drawn.offers:
        kind = "boast" if offer.sponsor in found else "honest"
        low, high = facts[f"{kind}_low"], facts[f"{kind}_high"]
        assert low * offer.claimed / 100 <= offer.worth <= high * offer.claimed / 100


@pytest.mark.parametrize("level", LEVELS)
def test_no_play_without_looking_comes_near(level):
    """Guesses of who boasts: any set, those who claim most for the cost, those who claim least, and nobody."""
    places = []
    for number in range(6):
        drawn = FAMILY.sample(level, Random(f"blind/{level}/{number}"), 1)
        shown = cases_of(drawn)
        sets = list(combinations(range(1, drawn.sponsors + 1), drawn.boasters))

        def loudness(sponsor, drawn=drawn):
            return mean(offer.claimed / offer.cost for offer in drawn.offers if offer.sponsor == sponsor)

        ranked = sorted(range(1, drawn.sponsors + 1), key=loudness)
        for guess in (ranked[-drawn.boasters :], ranked[: drawn.boasters]):
            chosen = best_choice(shown[sets.index(tuple(sorted(guess)))]).offers
            truths = [choice_place(case, chosen) for case in shown]
            places.append(mean(truths))
        assert max(mean(choice_place(case, best_choice(one).offers) for case in shown) for one in shown) < 0.8
        claims = replace(drawn, offers=tuple(offer._replace(worth=offer.claimed) for offer in drawn.offers))
        assert mean(choice_place(case, best_choice(claims).offers) for case in shown) < 0.8

    assert mean(places) < 0.7


def test_every_set_of_boasters_is_equally_likely():
    found = [tuple(sorted(boasting(FAMILY.sample(1, Random(f"set/{number}"), 1)))) for number in range(90)]

    assert set(found) == {(1,), (2,), (3,)}
    assert min(found.count(one) for one in set(found)) >= 15
