"""A mechanism's instruction in other words: what it must still say, and what its tools tell anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envsynth.generators.mechanism.contract import Fact as Number
from envsynth.generators.mechanism.contract import Grid
from envsynth.models import ToolKind, World
from envsynth.rewriting import Fact, Original, facts_said, states
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

__all__ = ["original_of"]

_SMALL = 100
"""A smaller number may stand in a result for any reason."""


def original_of(text: str, facts: Mapping[str, Number], world: World) -> Original:
    """An instruction with what may not get lost.

    Args:
        text: as it was filled in.
        facts: of the family, in this presentation; tables of numbers stay as they are.
        world: dressed; what its tools read at the start can be left unsaid.
    """
    spelled = {
        name: f"{fact:,}" if isinstance(fact, int) else str(fact)
        for name, fact in facts.items() if not isinstance(fact, Grid)
    }  # fmt: skip
    named = [Fact(name, said) for name, said in spelled.items() if states(text, said)]
    # Numbers that are no facts of a draw (`from 0 to 1`), names of tools, and the form of a plan.
    others = [fact for fact in facts_said(text) if not any(states(one.spelled, fact.spelled) for one in named)]

    def unfound(left_out: frozenset[str]) -> Iterable[str]:
        shown = _shown(world)
        return [mark for mark in sorted(left_out) if mark not in facts or not _tells(shown, facts[mark])]

    return Original(text, (*named, *others), unfound)


def _tells(shown: frozenset[Any], fact: Number) -> bool:
    """Whether a value stands in a result: under a hundred it could be there by chance."""
    return fact in shown if isinstance(fact, int | float) and abs(fact) >= _SMALL else False


def _shown(world: World) -> frozenset[Any]:
    """Every number that the tools that ask for nothing read at the start."""
    document = {
        "candidate": {"instruction": "", "verifier": {"checks": []}, "budget": {"turns": 1000, "cost": None}}
    }  # fmt: skip
    episode = WorldEpisode(WorldTask(document, WorldModel(world.document()), task_id=world.id))
    found: set[Any] = set()
    try:
        episode.reset()
        for tool in world.tools:
            if tool.kind is ToolKind.READ and not any(one.required for one in tool.parameters):
                answer = episode.call(tool.name, {})
                found |= set(_numbers(answer.result)) if answer.ok else set()
    finally:
        episode.close()
    return frozenset(found)


def _numbers(result: Any) -> Iterable[Any]:
    if isinstance(result, Mapping):
        for value in result.values():
            yield from _numbers(value)
    elif isinstance(result, list):
        for value in result:
            yield from _numbers(value)
    elif isinstance(result, int | float) and not isinstance(result, bool):
        yield result
