"""The bandit's solver against enumeration of policies and tapes."""

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from math import factorial
from random import Random
from statistics import fmean
from typing import Any

import pytest

from envsynth.generators.mechanism.contract import LEVELS, Presentation
from envsynth.generators.mechanism.draw import draw, find
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.families.bandit import (
    Bandit,
    BanditFamily,
    Pulls,
    bayes_successes,
    belief_value,
)

FAMILY = BanditFamily()
SMALL = Bandit(rates=(15, 4, 5), claims=(6, 14, 9), pulls=3, pay=30, lead=9, lots=(2, 0, 1))


class Arms:
    """A player whose arms pay as a tape says."""

    over = False

    def __init__(self, tape: Pulls) -> None:
        self.left = [list(successes) for successes in tape.successes]
        self.wins = 0

    def call(self, tool: str, **arguments: Any) -> Any:
        assert tool == "pull"
        paid = self.left[arguments["arm"]].pop(0)
        self.wins += paid
        return {"paid": paid}


class Rates:
    """A player that writes down the rate of every arm pulled."""

    over = False

    def __init__(self, bandit: Bandit, pulled: list[int]) -> None:
        self.bandit, self.pulled = bandit, pulled

    def call(self, tool: str, **arguments: Any) -> Any:
        assert tool == "pull"
        self.pulled.append(self.bandit.rates[arguments["arm"]])
        return {"paid": 0}


def tapes(bandit: Bandit) -> Any:
    """Every tape with its chance."""
    rows = list(product((0, 1), repeat=bandit.pulls))
    for chosen in product(rows, repeat=len(bandit.rates)):
        chance = 1.0
        for rate, row in zip(bandit.rates, chosen, strict=True):
            for success in row:
                chance *= rate / 20 if success else 1 - rate / 20
        yield Pulls(chosen), chance


def prior_chance(wins: int, losses: int) -> float:
    """Chance of one order of wins and losses of an arm whose rate is uniform."""
    return factorial(wins) * factorial(losses) / factorial(wins + losses + 1)


def worth(policy: dict[tuple[int, ...], int], history: tuple[int, ...], counts: Any, pulls: int) -> float:
    """Expected successes of a policy (outcomes so far -> arm), weighted with the chance of the history."""
    chance = prior_chance(*counts[0]) * prior_chance(*counts[1])
    total = sum(history) * chance if len(history) == pulls else 0.0
    if len(history) < pulls:
        arm = policy[history]
        for success in (0, 1):
            after = [list(count) for count in counts]
            after[arm][1 - success] += 1
            total += worth(policy, (*history, success), after, pulls)
    return total


def test_belief_programme_is_the_best_of_all_policies() -> None:
    histories = [history for length in range(3) for history in product((0, 1), repeat=length)]
    values = [
        worth(dict(zip(histories, arms, strict=True)), (), ((0, 0), (0, 0)), 3)
        for arms in product((0, 1), repeat=len(histories))
    ]
    assert belief_value(((0, 0), (0, 0)), 3) == pytest.approx(max(values))


def test_expectations_are_the_means_over_all_tapes() -> None:
    expected = FAMILY.expected(SMALL)
    policies = FAMILY.policies(SMALL, Presentation.HIDDEN)
    mean = dict.fromkeys(policies, 0.0)
    solved = 0.0
    for tape, chance in tapes(SMALL):
        solved += chance * FAMILY.solved(SMALL, tape)
        for name, policy in policies.items():
            arms = Arms(tape)
            policy(arms)
            mean[name] += chance * arms.wins * SMALL.pay
    assert {name: pytest.approx(value) for name, value in mean.items()} == {name: expected[name] for name in policies}
    assert solved == pytest.approx(expected["oracle"])
    assert expected["idle"] < expected["default"] < expected["bayes"] < expected["oracle"]


def test_hindsight_is_the_best_of_all_sequences() -> None:
    rng = Random(5)
    for _ in range(20):
        tape = FAMILY.tape(SMALL, rng)
        realised = []
        for sequence in product((0, 1, 2), repeat=SMALL.pulls):
            arms = Arms(tape)
            for arm in sequence:
                arms.call("pull", arm=arm)
            realised.append(arms.wins * SMALL.pay)
        assert FAMILY.hindsight(SMALL, tape) == max(realised)


@pytest.mark.parametrize("level", LEVELS)
def test_draws_mislead_and_do_not_depend_on_the_unit(level: int) -> None:
    one, dear = FAMILY.sample(level, Random(level), 1), FAMILY.sample(level, Random(level), 250)
    assert (dear.rates, dear.claims, dear.pulls, dear.pay) == (one.rates, one.claims, one.pulls, 250 * one.pay)
    assert dear.lots == one.lots
    assert len(one.others) >= 3
    assert max(one.rates) - one.rates[one.praised] >= one.lead
    low, high = FAMILY.band
    assert low < FAMILY.expected(one)["default"] / FAMILY.expected(one)["bayes"] < high


def draws(level: int, count: int) -> list[Bandit]:
    return [FAMILY.sample(level, Random(100 * level + number), 1) for number in range(count)]


@pytest.mark.parametrize("level", LEVELS)
def test_knowing_the_law_without_looking_is_not_enough(level: int) -> None:
    scores: dict[str, list[float]] = {"constant": [], "not_praised": []}
    for number, one in enumerate(draws(level, 12)):
        expected = FAMILY.expected(one)
        policies = FAMILY.attacks(one, Presentation.HIDDEN, Random(number))
        for name, found in scores.items():
            pulled: list[int] = []
            policies[name](Rates(one, pulled))
            worth = one.pay * sum(pulled) / 20
            found.append((worth - expected["default"]) / (expected["bayes"] - expected["default"]))
    assert all(score < 0.8 for score in scores["not_praised"])
    assert fmean(min(1.0, max(0.0, score)) for score in scores["constant"]) < 0.75


def test_rates_that_are_not_praised_follow_the_stated_law() -> None:
    rates = [rate for one in draws(5, 110) for rate in one.open_rates]
    assert fmean(rates) == pytest.approx(10, abs=1.6)
    quarters = [sum(low <= rate < low + 5 for rate in rates) / len(rates) for low in (1, 6, 11)]
    assert quarters == [pytest.approx(5 / 19, abs=0.1)] * 3


def test_levels_leave_the_uninformed_further_behind() -> None:
    def share(level: int) -> float:
        return fmean(
            bayes_successes(one.open_rates, one.pulls) * 20 / (one.pulls * max(one.rates)) for one in draws(level, 20)
        )

    assert share(1) > share(3) > share(5)


def renumbered(bandit: Bandit, order: tuple[int, ...]) -> Bandit:
    """The same arms, the one that was `order[k]` being the k-th now."""
    return replace(
        bandit,
        rates=tuple(bandit.rates[arm] for arm in order),
        claims=tuple(bandit.claims[arm] for arm in order),
        lots=tuple(order.index(arm) for arm in bandit.lots),
    )


def test_no_policy_cares_which_number_an_arm_has() -> None:
    # The two best arms are equal, so that ties have to be broken by something.
    one = Bandit(rates=(16, 5, 16, 11), claims=(7, 18, 9, 12), pulls=7, pay=1, lead=9, lots=(2, 3, 1, 0))
    tape = FAMILY.tape(one, Random(3))

    def played(bandit: Bandit, rows: Pulls) -> dict[str, float]:
        wins = {"solved": FAMILY.solved(bandit, rows), **FAMILY.expected(bandit)}
        for policies in (
            FAMILY.policies(bandit, Presentation.HIDDEN),
            FAMILY.attacks(bandit, Presentation.HIDDEN, Random(2)),
        ):
            for name, policy in policies.items():
                arms = Arms(rows)
                policy(arms)
                wins[f"{name} plays"] = arms.wins
        return wins

    before = played(one, tape)
    assert len({*before.values()}) > 3
    for order in permutations(range(4)):
        rows = Pulls(tuple(tape.successes[arm] for arm in order))
        assert played(renumbered(one, order), rows) == pytest.approx(before)


@pytest.mark.slow
def test_the_best_arm_stands_anywhere_in_the_draws_that_stand() -> None:
    skin = skins_of("bandit")["trawler"]
    where: Counter[int] = Counter()
    for number in range(150):
        seed = f"where/{number}"
        found = find(FAMILY, skin, 5, seed)
        if found:
            one = draw(FAMILY, skin, 5, seed, found).parameters
            where[sorted(one.others).index(one.best)] += 1
    even = where.total() / 5
    assert where.total() > 100
    assert all(0.5 * even < where[place] < 1.55 * even for place in range(5)), where
