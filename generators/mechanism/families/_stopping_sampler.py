"""Sampler of `stopping`: all that is public is drawn again until it suits every truth; then the truth is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd
from random import Random
from statistics import fmean
from typing import NamedTuple

from envsynth.generators.mechanism.families._stopping_parameters import (
    Stopping,
    attack_bars,
    bayes_worth,
    default_bars,
    guess_bars,
)
from envsynth.generators.mechanism.families._stopping_solver import Bars, RankBelief, values, worth

CLAIMED = 1
"""By grades there are a worse market, the claimed one, and a better one."""
_TIGHT = (0.2, 0.8)
"""Where a draw's default must lie in expectation under every truth, so that what one tape realises is in band."""
_ATTACKED = {True: 0.93, False: 0.87}
"""By rank or not: most that an attack may expect of what a reference does under any truth; attacks that are lucky on
one tape would else decide which truths stand."""
_GUESSED = 0.72
"""Most of the way from the default to a reference that one guess may bring on average over the truths."""
_WORTHLESS = 1.5
"""Least that the oracle must expect under any truth, in least pays."""


class Size(NamedTuple):
    """A level."""

    lots: int
    looks: int
    """Offers by grades; by rank: about the most that may come."""
    grades: int
    """0: by rank."""


SIZES = {1: Size(3, 12, 6), 2: Size(3, 16, 6), 3: Size(3, 20, 7), 4: Size(3, 24, 0), 5: Size(4, 36, 0)}
_TILTS = (((1, 10), (1, 8), (1, 6), (1, 5), (1, 4)), ((2, 5), (1, 2), (2, 3)), ((2, 3), (1, 1)))
"""By market: how often a grade comes for every time the one below comes."""


def draw_parameters(size: Size, rng: Random, unit: int) -> Stopping:
    """Drawn again until the default, deceived about the market, is worth beating, and guessing is not enough."""
    while True:
        public = _by_grades(size, rng, unit) if size.grades else _by_rank(size, rng, unit)
        if is_fair(public):
            return replace(public, truth=rng.choice(public.truths))


def _by_grades(size: Size, rng: Random, unit: int) -> Stopping:
    pays = [rng.randint(8, 14)]
    while len(pays) < size.grades:
        pays.append(pays[-1] + rng.randint(pays[-1] * 6 // 10, pays[-1] * 13 // 10))
    base = [rng.randint(2, 4) for _ in pays]
    laws = tuple(_tilted(base, *rng.choice(tilts)) for tilts in _TILTS)
    cost = unit * rng.randint(1, 2)
    return Stopping(
        lots=size.lots, looks=size.looks, numbers=(), pays=tuple(unit * pay for pay in pays), laws=laws,
        truth=0, claimed=CLAIMED, look_cost=cost, study_cost=cost,
    )  # fmt: skip


def _tilted(base: list[int], up: int, down: int) -> tuple[int, ...]:
    law = [weight * up**grade * down ** (len(base) - 1 - grade) for grade, weight in enumerate(base)]
    return tuple(weight // gcd(*law) for weight in law)


def _by_rank(size: Size, rng: Random, unit: int) -> Stopping:
    pays = [rng.randint(8, 20)]
    while len(pays) < size.lots + rng.randint(1, 2):
        pays.insert(0, pays[0] + rng.randint(pays[0] * 4 // 10, pays[0]))
    few = rng.randint(size.lots, size.lots + 2)
    many = size.looks - rng.randint(2, 5)
    numbers = (few, few + rng.randint(1, 2), many, size.looks + rng.randint(2, 5))
    claimed = rng.randint(numbers[1] + 3, (numbers[1] + 2 * many) // 3)
    cost = unit * rng.randint(1, 2)
    return Stopping(
        lots=size.lots, looks=numbers[-1], numbers=numbers, pays=tuple(unit * pay for pay in pays), laws=(),
        truth=few, claimed=claimed, look_cost=cost, study_cost=rng.randint(2, 5) * cost,
    )  # fmt: skip


def _mean_place(worths: list[float], defaults: list[float], references: list[float]) -> float:
    """Between default (0) and reference (1), on average over the truths."""
    places = zip(worths, defaults, references, strict=True)
    return fmean(min(1.0, max(0.0, (worth - low) / (high - low))) if high > low else 1.0 for worth, low, high in places)


def _under_all(parameters: Stopping, bars: Bars) -> list[float]:
    return [worth(parameters.market(truth), bars) for truth in parameters.truths]


def guess_places(parameters: Stopping, reference: str) -> Mapping[str, float]:
    """Expected place of every guess between default (0) and `oracle` or `bayes` (1), on average over the truths."""
    references = _oracles(parameters) if reference == "oracle" else _bayes(parameters)
    defaults = _under_all(parameters, default_bars(parameters))
    return {name: _mean_place(worths, defaults, references) for name, worths in _guesses(parameters).items()}


def _guesses(parameters: Stopping) -> Mapping[str, list[float]]:
    """Expectations under every truth."""
    found = {name: _under_all(parameters, bars) for name, bars in guess_bars(parameters).items()}
    if parameters.by_rank:
        # The best of all that never asks: it learns only from the offers that still come.
        dear = sum(parameters.pays) + parameters.looks * parameters.look_cost
        unasked = RankBelief(parameters.pays, parameters.numbers, parameters.lots, parameters.look_cost, dear)
        found["unasked"] = [unasked.worth(truth) for truth in parameters.truths]
    return found


def _oracles(parameters: Stopping) -> list[float]:
    return [values(parameters.market(truth))[0][parameters.lots] for truth in parameters.truths]


def _bayes(parameters: Stopping) -> list[float]:
    return [bayes_worth(parameters, truth) for truth in parameters.truths]


def is_fair(parameters: Stopping) -> bool:
    """Whether the default misleads whichever truth holds, attacks fail under each, and no guess is good for all."""
    oracles = _oracles(parameters)
    if min(oracles) < _WORTHLESS * min(parameters.pays):
        return False
    defaults = _under_all(parameters, default_bars(parameters))
    # The cheap tests first: to solve for beliefs takes longest.
    if not _in_band(defaults, oracles):
        return False
    most = _ATTACKED[parameters.by_rank]
    attacks = [_under_all(parameters, bars) for bars in attack_bars(parameters).values()]
    if not _below(attacks, oracles, most):
        return False
    guesses = _guesses(parameters).values()
    if any(_mean_place(worths, defaults, oracles) > _GUESSED for worths in guesses):
        return False
    bayes = _bayes(parameters)
    if not _in_band(defaults, bayes) or not _below(attacks, bayes, most):
        return False
    return all(_mean_place(worths, defaults, bayes) <= _GUESSED for worths in guesses)


def _in_band(defaults: list[float], references: list[float]) -> bool:
    shares = [default / reference for default, reference in zip(defaults, references, strict=True)]
    return all(_TIGHT[0] <= share <= _TIGHT[1] for share in shares)


def _below(attacks: list[list[float]], references: list[float], most: float) -> bool:
    return all(attack <= most * reference for row in attacks for attack, reference in zip(row, references, strict=True))
