"""The solvers of pandora against all orders, stop rules and histories."""

from functools import cache
from itertools import permutations, product
from math import prod
from random import Random
from statistics import fmean

import pytest

from envsynth.generators.mechanism.contract import LEVELS
from envsynth.generators.mechanism.families._pandora_solver import Search, Step, reservation, search_value
from envsynth.generators.mechanism.families.pandora import Boxes, Finds, PandoraFamily

FAMILY = PandoraFamily()
PRIZES = (0, 10, 40)
LAWS = ((12, 7, 1), (4, 8, 8), (11, 1, 8))
CHANCES = [[chance / 20 for chance in law] for law in LAWS]
TWO = Boxes(prizes=PRIZES, laws=LAWS, kinds=(1, 2), claims=(0, 0), open_costs=(6, 5), appraisal_costs=(2, 3), rounds=2)


def best_search(best: int, shut: frozenset[int], kinds: tuple[int, ...], costs: tuple[int, ...]) -> float:
    """Best play with known kinds, over all choices of the next box."""
    options = [float(best)]
    for box in shut:
        chances = zip(PRIZES, CHANCES[kinds[box]], strict=True)
        options.append(
            sum(chance * best_search(max(best, prize), shut - {box}, kinds, costs) for prize, chance in chances)
            - costs[box]
        )
    return max(options)


@pytest.mark.parametrize("kinds", list(product(range(3), repeat=3)))
def test_reservation_prizes_give_the_best_search(kinds: tuple[int, ...]) -> None:
    costs = (3, 5, 7)
    stops = [reservation(PRIZES, CHANCES[kind], cost) for kind, cost in zip(kinds, costs, strict=True)]
    steps = [Step(tuple(CHANCES[kinds[box]]), costs[box], stops[box]) for box in range(3)]
    ordered = sorted(steps, key=lambda step: -step.stop)
    assert search_value(PRIZES, ordered) == pytest.approx(best_search(0, frozenset(range(3)), kinds, costs))
    assert search_value(PRIZES, ordered) >= max(search_value(PRIZES, order) for order in permutations(steps)) - 1e-9


def best_rounds(kinds: tuple[int | None, ...], opened: frozenset[int], best: int, left: int) -> float:
    """Best play of TWO over whole rounds, kinds uniform until they are seen."""

    @cache
    def value(kinds: tuple[int | None, ...], opened: frozenset[int], best: int, left: int) -> float:
        if left == 0:
            return 0.0
        options = [best + value(kinds, frozenset(), 0, left - 1)]
        for box, kind in enumerate(kinds):
            possible = range(3) if kind is None else (kind,)
            seen = [(*kinds[:box], one, *kinds[box + 1 :]) for one in possible]
            if kind is None:
                known = fmean(value(after, opened, best, left) for after in seen)
                options.append(known - TWO.appraisal_costs[box])
            if box not in opened:
                worth = fmean(
                    sum(
                        chance * value(after, opened | {box}, max(best, prize), left)
                        for prize, chance in zip(PRIZES, CHANCES[one], strict=True)
                    )
                    for one, after in zip(possible, seen, strict=True)
                )
                options.append(worth - TWO.open_costs[box])
        return max(options)

    return value(kinds, opened, best, left)


def test_search_is_the_best_over_all_states_of_knowledge() -> None:
    search = Search(PRIZES, CHANCES, TWO.open_costs, TWO.appraisal_costs, TWO.rounds)
    assert search.value == pytest.approx(best_rounds((None, None), frozenset(), 0, TWO.rounds))
    realised = fmean(search.worth(kinds) for kinds in product(range(3), repeat=2))
    assert realised == pytest.approx(search.value)


def test_oracle_expects_the_mean_over_all_tapes() -> None:
    total = 0.0
    for finds in product(range(3), repeat=4):
        chance = prod(CHANCES[TWO.kinds[number % 2]][find] for number, find in enumerate(finds))
        prizes = [PRIZES[find] for find in finds]
        total += chance * FAMILY.solved(TWO, Finds((tuple(prizes[:2]), tuple(prizes[2:]))))
    assert FAMILY.expected(TWO)["oracle"] == pytest.approx(total)


def test_hindsight_bounds_every_choice_of_boxes() -> None:
    rng = Random(3)
    for _ in range(40):
        tape = FAMILY.tape(TWO, rng)
        best = 0
        for prizes in tape.prizes:
            sets = [(), (0,), (1,), (0, 1)]
            best += max(
                max((prizes[box] for box in chosen), default=0) - sum(TWO.open_costs[box] for box in chosen)
                for chosen in sets
            )
        assert FAMILY.hindsight(TWO, tape) == best
        assert FAMILY.solved(TWO, tape) <= best


@pytest.mark.parametrize("level", LEVELS)
def test_draws_mislead_and_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 200)
    assert one.kinds == dear.kinds
    for cheap, costly in ((one.prizes, dear.prizes), (one.open_costs, dear.open_costs)):
        assert tuple(200 * amount for amount in cheap) == costly
    assert one.claims != one.kinds
    expected = FAMILY.expected(one)
    low, high = FAMILY.band
    assert low < expected["default"] / expected["bayes"] < high
    assert expected["bayes"] < expected["oracle"]


def test_levels_leave_the_uninformed_further_behind() -> None:
    def share(level: int) -> float:
        drawn = (FAMILY.sample(level, Random(100 * level + seed), 20) for seed in range(4))
        expected = [FAMILY.expected(parameters) for parameters in drawn]
        return fmean(one["bayes"] for one in expected) / fmean(one["oracle"] for one in expected)

    assert share(1) > share(5)
