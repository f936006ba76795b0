"""Exact adaptive group testing of a short row: expectimax over all sets of faulty items.

Dorfman 1943, The detection of defective members of large populations; Sobel and Groll 1959, Group testing to eliminate
efficiently all defectives in a binomial sample. A belief is a weight for each of the 2^n sets of faulty items; the
order of tests does not matter to it, so that histories are multisets of (test, result).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_DIGITS = 10
"""Values are compared to so many digits, so that equals stay equal."""
_BLOCK = 250_000
"""Multiplications of one matrix product: more would be spread over threads, which here cost more than they save."""


class Run(NamedTuple):
    """A test of neighbouring items, both ends included."""

    head: int
    tail: int


class Terms(NamedTuple):
    """What a row is worth; in gains of one sound item that is passed."""

    loss: float
    """Lost with a faulty item that is passed; nothing is gained or lost with one that is held."""
    price: float
    """Of one test."""
    tests: int
    """Most tests of a row."""
    alarm: float
    """Chance of a hit where all is sound."""
    miss: float
    """Chance of no hit where something is faulty."""


Tree = Mapping[int, Run | str]
"""By node: a test, or marks that end it, `1` for each item that is passed. Node 1 is first; after node k comes 2k where
the test was clear and 2k + 1 where it hit."""


def runs(items: int) -> list[Run]:
    """Every test of a row."""
    return [Run(head, tail) for head in range(items) for tail in range(head, items)]


@cache
def _faulty(items: int) -> Array:
    """Shape (2^items, items): which items are faulty in each set."""
    sets = np.arange(2**items)
    return (sets[:, None] >> np.arange(items) & 1).astype(float)


@cache
def _likelihood(items: int, alarm: float, miss: float) -> Array:
    """Shape (2 * runs, 2^items): chance of each (test, result) under each set; result 0 clear, 1 hit."""
    faulty = _faulty(items)
    rows = []
    for head, tail in runs(items):
        touched = faulty[:, head : tail + 1].any(axis=1)
        hit = np.where(touched, 1 - miss, alarm)
        rows += [1 - hit, hit]
    return np.array(rows)


class _Histories(NamedTuple):
    """Multisets of (test, result) of one length."""

    number: Mapping[tuple[int, ...], int]
    parents: NDArray[np.int64]
    """The history without its last element."""
    last: NDArray[np.int64]
    children: NDArray[np.int64]
    """Shape (histories, codes): number of the history one longer."""


@cache
def _histories(codes: int, length: int, longest: int) -> _Histories:
    found = list(combinations_with_replacement(range(codes), length))
    number = {history: position for position, history in enumerate(found)}
    before = _histories(codes, length - 1, longest).number if length else {}
    parents = np.array([before[history[:-1]] if length else 0 for history in found])
    last = np.array([history[-1] if length else 0 for history in found])
    children = np.zeros((0, codes), dtype=np.int64)
    if length < longest:
        after = {
            history: position
            for position, history in enumerate(combinations_with_replacement(range(codes), length + 1))
        }
        children = np.array([[after[tuple(sorted((*history, code)))] for code in range(codes)] for history in found])
    return _Histories(number, parents, last, children)


def prior(risks: Sequence[float]) -> Array:
    """Weight of every set, items being independent."""
    faulty, chances = _faulty(len(risks)), np.array(risks)
    return np.asarray(np.prod(np.where(faulty > 0, chances, 1 - chances), axis=1))


@cache
def _gains(items: int, loss: float) -> Array:
    """Shape (2^items, items): what passing each item brings under each set."""
    return 1 - (1 + loss) * _faulty(items)


@cache
def _last_test(items: int, terms: Terms) -> Array:
    """Shape (2^items, codes * items): chance of each (test, result) times what passing each item then brings."""
    chances = _likelihood(items, terms.alarm, terms.miss).T
    table = chances[:, :, None] * _gains(items, terms.loss)[:, None, :]
    return np.ascontiguousarray(table.reshape(2**items, -1))


def _pass_the_best(gains: Array) -> Array:
    """Pass just the items that are worth it; the last axis is the items. Changes its argument."""
    return np.asarray(np.maximum(gains, 0.0, out=gains).sum(axis=-1))


def _after_last_test(beliefs: Array, terms: Terms, items: int) -> Array:
    """Shape (beliefs, codes): unnormalised worth of stopping after one more (test, result)."""
    table = _last_test(items, terms)
    step = max(1, _BLOCK // table.size)
    blocks = (beliefs[start : start + step] @ table for start in range(0, len(beliefs), step))
    return np.concatenate([_pass_the_best(block.reshape(len(block), -1, items)) for block in blocks])


class _Solved(NamedTuple):
    value: float
    choices: tuple[NDArray[np.int64], ...]
    """By length of history: the test to make, or -1 to stop."""


@cache
def _solve(risks: tuple[float, ...], terms: Terms) -> _Solved:
    items, likelihood = len(risks), _likelihood(len(risks), terms.alarm, terms.miss)
    codes = len(likelihood)
    beliefs = [prior(risks)[None, :]]
    for length in range(1, terms.tests):
        histories = _histories(codes, length, terms.tests - 1)
        beliefs.append(beliefs[-1][histories.parents] * likelihood[histories.last])
    choices: list[NDArray[np.int64]] = []
    values = np.zeros(0)
    for length in range(terms.tests - 1, -1, -1):
        belief = beliefs[length]
        if length == terms.tests - 1:
            ends = _after_last_test(belief, terms, items)
        else:
            ends = values[_histories(codes, length, terms.tests - 1).children]
        tested = ends.reshape(len(belief), codes // 2, 2).sum(axis=2) - terms.price * belief.sum(axis=1, keepdims=True)
        options = np.concatenate([_pass_the_best(belief @ _gains(items, terms.loss))[:, None], tested], axis=1)
        choices.insert(0, np.round(options, _DIGITS).argmax(axis=1) - 1)
        values = options.max(axis=1)
    return _Solved(float(values[0]), tuple(choices))


def best_value(risks: tuple[float, ...], terms: Terms) -> float:
    """Expectation of the best play, in gains."""
    return _solve(risks, terms).value


@cache
def best_tree(risks: tuple[float, ...], terms: Terms) -> Tree:
    """The optimal policy; only nodes that can be reached."""
    solved, items = _solve(risks, terms), len(risks)
    likelihood, tests = _likelihood(items, terms.alarm, terms.miss), runs(items)
    tree: dict[int, Run | str] = {}

    def grow(node: int, history: tuple[int, ...], belief: Array) -> None:
        choice = -1
        if len(history) < terms.tests:
            number = _histories(len(likelihood), len(history), terms.tests - 1).number
            choice = int(solved.choices[len(history)][number[tuple(sorted(history))]])
        if choice < 0:
            tree[node] = best_marks(belief, terms)
            return
        tree[node] = tests[choice]
        for result in (0, 1):
            code = 2 * choice + result
            after = belief * likelihood[code]
            if after.sum() > 0:
                grow(2 * node + result, (*history, code), after)

    grow(1, (), prior(risks))
    return tree


def best_marks(belief: Array, terms: Terms) -> str:
    """Pass each item that is worth it under a belief."""
    items = len(belief).bit_length() - 1
    gains = (belief @ _gains(items, terms.loss)) / belief.sum()
    return "".join("1" if round(float(gain), _DIGITS) > 0 else "0" for gain in gains)


def worth(tree: Tree, risks: Sequence[float], terms: Terms) -> float:
    """Expectation of a policy, in gains."""
    likelihood = _likelihood(len(risks), terms.alarm, terms.miss)
    gains = _gains(len(risks), terms.loss)
    codes = {run: number for number, run in enumerate(runs(len(risks)))}

    def value(node: int, belief: Array) -> float:
        act = tree.get(node)
        if act is None:
            return 0.0
        if isinstance(act, str):
            passed = np.array([mark == "1" for mark in act], dtype=float)
            return float((belief @ gains) @ passed)
        branches = (belief * likelihood[2 * codes[act] + result] for result in (0, 1))
        total = sum(value(2 * node + result, after) for result, after in enumerate(branches))
        return total - terms.price * float(belief.sum())

    return value(1, prior(risks))
