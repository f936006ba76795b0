"""`bandit`: Bernoulli arms with unknown rates, a fixed number of pulls, and suppliers' claims that mislead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from random import Random
from typing import ClassVar, NamedTuple

from envsynth.generators.mechanism.contract import Fact, Family, Grid, Look, Player, Policy, Presentation
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_STEP = 20
"""Rates are multiples of 1/20, so that they are stated exactly."""


class _Size(NamedTuple):
    arms: int
    pulls: int
    lead: int
    """Least difference between the best arm and the praised one, in twentieths."""


_SIZES = {
    1: _Size(4, 18, 9),
    2: _Size(4, 15, 8),
    3: _Size(5, 15, 8),
    4: _Size(5, 13, 7),
    5: _Size(6, 13, 6),
}
_TIGHT = (0.25, 0.72)
"""Where a draw's default must lie in expectation, so that what one tape realises lies in the band as a rule."""
_BEATEN = 0.7
"""Share of the way from the default to `bayes` that pulling the arms without looking may expect."""


@dataclass(frozen=True)
class Bandit:
    """Parameters."""

    rates: tuple[int, ...]
    """True chance of each arm, in twentieths."""
    claims: tuple[int, ...]
    """What is said of each arm, in twentieths."""
    pulls: int
    pay: int
    """Minor units that a success earns."""
    lead: int
    """What the arm with the highest claim falls short of the best by, at least, in twentieths."""
    lots: tuple[int, ...]
    """All arms in an order by lot, which nobody is shown: policies that have to put one arm before another do so by it.
    A draw stands where they do well, so that by number it would stand more often where the first arms are good."""

    @property
    def best(self) -> int:
        """The arm with the highest rate; of equals the first by lot."""
        return max(self.lots, key=self.rates.__getitem__)

    @property
    def praised(self) -> int:
        """The arm with the highest claim."""
        return _highest(self.claims)

    @property
    def others(self) -> tuple[int, ...]:
        """The arms that are not praised, by lot."""
        return tuple(arm for arm in self.lots if arm != self.praised)

    @property
    def open_rates(self) -> tuple[int, ...]:
        """Rates of the arms that are not praised, by lot."""
        return tuple(self.rates[arm] for arm in self.others)


@dataclass(frozen=True)
class Pulls:
    """Tape: whether the k-th pull of each arm succeeds."""

    successes: tuple[tuple[int, ...], ...]


class BanditFamily(Family[Bandit, Pulls]):
    """Finite-horizon Bernoulli bandit.

    The text tells that the arm with the highest claim falls well short of the best; the others, three or more, have
    independent uniform rates whatever is claimed of them. `bayes` leaves the praised arm alone and maximises the
    expected sum over the others under that prior, exactly. Two things are left out of the prior: rates are multiples
    of 1/20, and draws in which looking is worth little are drawn again (about two in five), which lowers the
    mean rate of the others from 0.5 to 0.45 where there are many.
    """

    name: ClassVar[str] = "bandit"
    version: ClassVar[str] = "3"
    title: ClassVar[str] = "Bernoulli bandit with a fixed number of pulls"
    kin: ClassVar[str] = "search"
    band: ClassVar[tuple[float, float]] = (0.15, 0.9)
    sources: ClassVar[tuple[str, ...]] = (
        "Bradt, Johnson and Karlin 1956, On sequential designs for maximizing the sum of n observations",
        "Berry and Fristedt 1985, Bandit Problems: Sequential Allocation of Experiments",
    )

    def sample(self, level: int, rng: Random, unit: int) -> Bandit:
        """Rates by the stated law; drawn again until the default is worth beating, and looking is what beats it."""
        size = _SIZES[level]
        while True:
            claims = tuple(rng.sample(range(7, _STEP - 1), size.arms))
            rates = [rng.randint(1, _STEP - 1) for _ in range(size.arms)]
            praised = _highest(claims)
            best = max(rate for arm, rate in enumerate(rates) if arm != praised)
            if best <= size.lead:
                continue
            rates[praised] = rng.randint(1, best - size.lead)
            lots = tuple(rng.sample(range(size.arms), size.arms))
            drawn = Bandit(tuple(rates), claims, size.pulls, unit * rng.randint(2, 9), size.lead, lots)
            expected = self.expected(drawn)
            gain = expected["bayes"] - expected["default"]
            unlooked = drawn.pay * size.pulls * sum(drawn.open_rates) / len(drawn.others) / _STEP
            if not _TIGHT[0] * expected["bayes"] <= expected["default"] <= _TIGHT[1] * expected["bayes"]:
                continue
            if unlooked - expected["default"] <= _BEATEN * gain:
                return drawn

    def tape(self, parameters: Bandit, rng: Random) -> Pulls:
        """One draw an arm and pull."""
        return Pulls(
            tuple(tuple(int(rng.randrange(_STEP) < rate) for _ in range(parameters.pulls)) for rate in parameters.rates)
        )

    def labels(self, parameters: Bandit) -> int:
        """One an arm."""
        return len(parameters.rates)

    def world(self, parameters: Bandit, tape: Pulls, look: Look) -> World:
        """Interactive: `status`, `pull`; `rates` where revealed. Written: `submit` with a list of arms."""
        arms = range(len(parameters.rates))
        return World(
            id="bandit",
            clock=look.clock,
            tables=_tables(look.presentation),
            rows={
                "state": ((parameters.pulls, 0),),
                "arms": tuple((arm, look.labels[arm], parameters.claims[arm] / _STEP) for arm in arms),
                "theta": tuple((arm, parameters.rates[arm] / _STEP) for arm in arms),
                "tape": tuple((arm, k + 1, tape.successes[arm][k]) for arm in arms for k in range(parameters.pulls)),
            },
            tools=_tools(parameters, look.presentation),
            over="SELECT pulls_left = 0 FROM state",
        )

    def utility(self, parameters: Bandit) -> str:
        """What was earned."""
        return "SELECT earned FROM state"

    def policies(self, parameters: Bandit, presentation: Presentation) -> Mapping[str, Policy]:
        """The oracle pulls the best arm; the default the praised one, with every other pull spread evenly."""
        found = {
            "oracle": _sequence([parameters.best] * parameters.pulls, presentation),
            "default": _sequence(_default_arms(parameters), presentation),
        }
        if presentation is Presentation.HIDDEN:
            found["bayes"] = _bayes(parameters)
        return found

    def attacks(self, parameters: Bandit, presentation: Presentation, rng: Random) -> Mapping[str, Policy]:
        """Trust the claims; one after the other; and, without a look at what they pay, the arms that are not praised.

        `constant` stays with one of those, by lot, and `not_praised` takes them in turn.
        """
        arms, others, pulls = parameters.lots, parameters.others, parameters.pulls
        return {
            "greedy": _sequence([parameters.praised] * pulls, presentation),
            "constant": _sequence([rng.choice(others)] * pulls, presentation),
            "no_probing": _sequence([arms[pull % len(arms)] for pull in range(pulls)], presentation),
            "not_praised": _sequence([others[pull % len(others)] for pull in range(pulls)], presentation),
        }

    def solved(self, parameters: Bandit, tape: Pulls) -> float:
        """Successes of the best arm's first pulls."""
        return parameters.pay * sum(tape.successes[parameters.best])

    def expected(self, parameters: Bandit) -> Mapping[str, float]:
        """Given the rates; so `bayes` is not what its player expects, but what the rates let it have."""
        pay, rates = parameters.pay / _STEP, parameters.rates
        return {
            "oracle": pay * parameters.pulls * max(rates),
            "bayes": parameters.pay * bayes_successes(parameters.open_rates, parameters.pulls),
            "default": pay * sum(rates[arm] for arm in _default_arms(parameters)),
            "idle": 0.0,
        }

    def hindsight(self, parameters: Bandit, tape: Pulls) -> float:
        """The best split of the pulls, arms' successes known in advance."""
        best = [0]
        for successes in tape.successes:
            gained = [0]
            for success in successes:
                gained.append(gained[-1] + success)
            best = [
                max(best[used] + gained[total - used] for used in range(max(0, total - len(successes)), total + 1)
                    if used < len(best))
                for total in range(parameters.pulls + 1)
            ]  # fmt: skip
        return float(parameters.pay * best[parameters.pulls])

    def facts(self, parameters: Bandit, presentation: Presentation) -> Mapping[str, Fact]:
        """Pulls, pay, number of arms; in `written` the rates too."""
        facts: dict[str, Fact] = {
            "pulls": parameters.pulls, "pay": parameters.pay, "arms": len(parameters.rates),
            "last_arm": len(parameters.rates) - 1, "short": parameters.lead / _STEP,
        }  # fmt: skip
        if presentation is Presentation.WRITTEN:
            pairs = enumerate(zip(parameters.claims, parameters.rates, strict=True))
            rows = tuple((arm, claim / _STEP, rate / _STEP) for arm, (claim, rate) in pairs)
            facts["table"] = Grid(("arm", "claimed", "rate"), rows)
        return facts

    def turns(self, parameters: Bandit, presentation: Presentation) -> int:
        """Every pull, and a look before each."""
        return 5 if presentation is Presentation.WRITTEN else 2 * parameters.pulls + 10


def _highest(values: tuple[int, ...]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _tables(presentation: Presentation) -> tuple[Table, ...]:
    number = {"type": "integer"}
    return (
        Table(name="state", columns=(Column(name="pulls_left", **number), Column(name="earned", **number))),
        Table(
            name="arms",
            columns=(
                Column(name="arm", role="key", **number),
                Column(name="label", type="text"),
                Column(name="claimed", type="real", decimals=2),
            ),
        ),
        Table(
            name="pulls",
            columns=(
                Column(name="id", role="key", **number),
                Column(name="arm", **number),
                Column(name="paid", **number),
            ),
        ),
        Table(
            name="theta",
            hidden=presentation is not Presentation.REVEALED,
            columns=(Column(name="arm", role="key", **number), Column(name="rate", type="real", decimals=2)),
        ),
        Table(
            name="tape",
            hidden=True,
            columns=(Column(name="arm", **number), Column(name="turn", **number), Column(name="pays", **number)),
        ),
    )


def _tools(parameters: Bandit, presentation: Presentation) -> tuple[Tool, ...]:
    arm = Parameter(name="arm", type="integer", minimum=0, maximum=len(parameters.rates) - 1)
    guards = (Guard(sql="SELECT pulls_left > 0 FROM state", error="there are no {tries} left"),)
    effects = (
        "INSERT INTO pulls(arm, paid) SELECT :arm, tape.pays FROM tape"
        " WHERE tape.arm = :arm AND tape.turn = 1 + (SELECT count(*) FROM pulls WHERE arm = :arm)",
        "UPDATE state SET pulls_left = pulls_left - 1,"
        f" earned = earned + {parameters.pay} * (SELECT paid FROM pulls ORDER BY id DESC LIMIT 1)",
    )
    if presentation is Presentation.WRITTEN:
        plan = Parameter(name="plan", type="string")
        each = Each(parameter="plan", fields=(arm,), maximum=parameters.pulls)
        return (Tool(name="submit", kind="submit", parameters=(plan,), each=each, guards=guards, effects=effects),)
    tools = [
        Tool(name="status", kind="read",
             result="SELECT pulls_left, earned, arm, label, claimed FROM state CROSS JOIN arms ORDER BY arm"),
        Tool(name="pull", kind="write", parameters=(arm,), guards=guards, effects=effects, shape="row",
             result="SELECT arm, paid, pulls_left, earned FROM pulls CROSS JOIN state ORDER BY id DESC LIMIT 1"),
    ]  # fmt: skip
    if presentation is Presentation.REVEALED:
        tools.append(Tool(name="rates", kind="read", result="SELECT arm, rate FROM theta ORDER BY arm"))
    return tuple(tools)


def _default_arms(parameters: Bandit) -> list[int]:
    praised, lots = parameters.praised, parameters.lots
    return [praised if k % 2 == 0 else lots[(k // 2) % len(lots)] for k in range(parameters.pulls)]


def _sequence(arms: list[int], presentation: Presentation) -> Policy:
    def play(player: Player) -> None:
        if presentation is Presentation.WRITTEN:
            player.call("submit", plan=json.dumps([{"arm": arm} for arm in arms]))
            return
        for arm in arms:
            player.call("pull", arm=arm)

    return play


def _bayes(parameters: Bandit) -> Policy:
    """Maximise the expected sum over the arms that are not praised, under independent uniform priors."""

    def play(player: Player) -> None:
        counts = [(0, 0)] * len(parameters.others)
        for left in range(parameters.pulls, 0, -1):
            arm = best_arm(tuple(counts), left)
            wins, losses = counts[arm]
            paid = player.call("pull", arm=parameters.others[arm])["paid"]
            counts[arm] = (wins + paid, losses + 1 - paid)

    return play


Belief = tuple[tuple[int, int], ...]
"""Successes and failures of each arm."""


def _value_of(belief: Belief, arm: int, left: int) -> float:
    wins, losses = belief[arm]
    chance = (wins + 1) / (wins + losses + 2)
    win = (*belief[:arm], (wins + 1, losses), *belief[arm + 1 :])
    lose = (*belief[:arm], (wins, losses + 1), *belief[arm + 1 :])
    return chance * (1 + belief_value(win, left - 1)) + (1 - chance) * belief_value(lose, left - 1)


def belief_value(belief: Belief, left: int) -> float:
    """Expected successes of the best play from a belief; arms are exchangeable, so beliefs are sorted."""
    return 0.0 if left == 0 else _sorted_value(tuple(sorted(belief)), left)


@cache
def _sorted_value(belief: Belief, left: int) -> float:
    return max(_value_of(belief, belief.index(arm), left) for arm in set(belief))


@cache
def best_arm(belief: Belief, left: int) -> int:
    """The arm that the best play pulls; the first of equals."""
    return max(range(len(belief)), key=lambda arm: (round(_value_of(belief, arm, left), 12), -arm))


@lru_cache(maxsize=1024)
def bayes_successes(rates: tuple[int, ...], pulls: int) -> float:
    """Expected successes of the Bayes player where the arms have these rates, in twentieths."""
    chances: dict[Belief, float] = {((0, 0),) * len(rates): 1.0}
    total = 0.0
    for left in range(pulls, 0, -1):
        following: dict[Belief, float] = {}
        for belief, chance in chances.items():
            arm = best_arm(belief, left)
            wins, losses = belief[arm]
            won = chance * rates[arm] / _STEP
            total += won
            for after, share in (((wins + 1, losses), won), ((wins, losses + 1), chance - won)):
                state = (*belief[:arm], after, *belief[arm + 1 :])
                following[state] = following.get(state, 0.0) + share
        chances = following
    return total
