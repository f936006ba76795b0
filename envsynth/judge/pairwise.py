"""Which of two runs is better: for groups, where absolute scores bunch together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from envsynth.errors import ConfigError
from envsynth.judge.case import Case
from envsynth.judge.gate import gate_faults
from envsynth.judge.judge import SYSTEM, Judge, shown_rubric
from envsynth.judge.rubric import Rubric
from envsynth.judge.showing import shown_policies, shown_tools, shown_trace
from envsynth.llm import load_prompt, quoted, system, user
from envsynth.models import Model, canonical_json

__all__ = ["LengthRule", "Opinion", "Preference", "compare", "length_of", "ranked"]

_COMPARE = load_prompt(Path(__file__).parent / "prompts" / "compare.md")


class LengthRule(NamedTuple):
    """A run longer than `sigma` × l0 loses, as Kimi K3's report has it: length buys no preference.

    Pairwise judging of groups follows the self-critique of Kimi K2 (arXiv:2507.20534).
    """

    sigma: float = 1.5
    """Largest multiple of l0; the least that makes sense is 1."""
    baseline: float | None = None
    """l0, in the characters of `length_of`, such as the reference's; None: the median of the group."""

    def limit(self, cases: Sequence[Case]) -> float:
        """The longest that a run may be."""
        base = statistics.median(map(length_of, cases)) if self.baseline is None else self.baseline
        return self.sigma * base


_USUAL = LengthRule()


class Preference(NamedTuple):
    """Which of two is better."""

    better: Literal["first", "second", "tie"]
    why: str
    """`gate`, `length`, `judge`, `disagreement` (one answer in each order), or `void` (it points at nothing)."""


class Opinion(Model):
    """A model's answer."""

    reading: str = Field(max_length=8000)
    better: Literal["first", "second", "tie"]
    turn: int = 0
    """A turn of the better run; 0: it is better for what it did not do."""


def length_of(case: Case) -> int:
    """Characters that the agent wrote: its calls and their arguments. What tools answered is not its doing."""
    return sum(len(turn.tool) + len(canonical_json(turn.arguments)) for turn in case.trace)


def compare(
    judge: Judge, first: Case, second: Case, rubric: Rubric, *, limit: float = float("inf"), draw: int = 0
) -> Preference:
    """Which of two runs of one task is better; asked in both orders, and a tie where the answers disagree.

    Args:
        judge: asked only where gate and length leave it open.
        first: one run.
        second: another run of the same task.
        rubric: bound to its instruction.
        limit: characters beyond which a run loses, as `LengthRule.limit` gives them.
        draw: other opinions have other numbers.

    Raises:
        ConfigError: the runs or the rubric are of different instructions.
        ModelError: as for `Judge.score`.
    """
    for case in (first, second):
        rubric.demand(case.instruction, case.task)
    sides = {
        "gate": (bool(gate_faults(first)), bool(gate_faults(second))),
        "length": (length_of(first) > limit, length_of(second) > limit),
    }
    for why, (one, two) in sides.items():
        if one or two:
            return Preference("tie" if one and two else "second" if one else "first", why)
    forth = _opinion(judge, (first, second), rubric, draw)
    back = _opinion(judge, (second, first), rubric, draw)
    if forth is None or back is None:
        return Preference("tie", "void")
    turned: dict[str, Literal["first", "second", "tie"]] = {"first": "second", "second": "first", "tie": "tie"}
    if turned[back] != forth:
        return Preference("tie", "disagreement")
    return Preference(forth, "judge")


def ranked(
    judge: Judge, cases: Sequence[Case], rubric: Rubric, *, rule: LengthRule = _USUAL, draw: int = 0
) -> list[float]:
    """For each run of a group, the share of the others that it beats; a tie is half.

    Two calls a pair, so n × (n - 1) for a group of n.

    Args:
        judge: asked.
        cases: two runs of one task at least.
        rubric: bound to its instruction.
        rule: on length.
        draw: as for `compare`.

    Raises:
        ConfigError: there are fewer than two runs; or as for `compare`.
        ModelError: as for `Judge.score`.
    """
    if len(cases) < 2:
        raise ConfigError("a group of fewer than two runs has no order", where=cases[0].task if cases else "")
    limit = rule.limit(cases)
    points = [0.0] * len(cases)
    for one, two in combinations(range(len(cases)), 2):
        better = compare(judge, cases[one], cases[two], rubric, limit=limit, draw=draw).better
        points[one] += {"first": 1.0, "tie": 0.5, "second": 0.0}[better]
        points[two] += {"first": 0.0, "tie": 0.5, "second": 1.0}[better]
    return [point / (len(cases) - 1) for point in points]


def _opinion(
    judge: Judge, pair: tuple[Case, Case], rubric: Rubric, draw: int
) -> Literal["first", "second", "tie"] | None:
    """What is said in one order; None where it points at nothing."""
    first, second = pair
    told = _COMPARE.fill(
        instruction=quoted(first.instruction, "instruction"), policies=shown_policies(first.policies),
        tools=shown_tools(first.tools), rubric=shown_rubric(rubric), first=shown_trace(first, "first run"),
        second=shown_trace(second, "second run"),
    )  # fmt: skip
    version = f"{SYSTEM.version}-{_COMPARE.version}"
    messages = (system(SYSTEM.text), user(told))
    said = judge.client.structured(messages, Opinion, prompt_version=version, draw=draw)
    if said.better == "tie" or said.turn == 0:
        return said.better
    winner = first if said.better == "first" else second
    return said.better if any(turn.turn == said.turn for turn in winner.trace) else None
