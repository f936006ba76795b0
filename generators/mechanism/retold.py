"""A mechanism's instruction in other words: what it must still say, and what its tools tell anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envsynth.generators.mechanism.contract import Fact as Number
from envsynth.generators.mechanism.contract import Grid
from envsynth.models import ToolKind, World
from envsynth.rewriting import Fact, Original, facts_said, states
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

__all__ = ["original_of"]


def original_of(text: str, facts: Mapping[str, Number], world: World, names: Mapping[str, str]) -> Original:
    """An instruction with what may not get lost.

    Args:
        text: as it was filled in.
        facts: of the family, in this presentation; tables of numbers stay as they are.
        world: dressed; what its tools read at the start, under a fact's own name, can be left unsaid.
        names: of the skin.
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
        return [
            mark for mark in sorted(left_out) if mark not in facts or (names.get(mark, mark), facts[mark]) not in shown
        ]

    return Original(text, (*named, *others), unfound)


def _shown(world: World) -> frozenset[tuple[str, Any]]:
    """Every number, with its name, that the tools that ask for nothing read at the start."""
    document = {
        "candidate": {"instruction": "", "verifier": {"checks": []}, "budget": {"turns": 1000, "cost": None}}
    }  # fmt: skip
    episode = WorldEpisode(WorldTask(document, WorldModel(world.document()), task_id=world.id))
    found: set[tuple[str, Any]] = set()
    try:
        episode.reset()
        for tool in world.tools:
            if tool.kind is ToolKind.READ and not any(one.required for one in tool.parameters):
                answer = episode.call(tool.name, {})
                found |= set(_numbers(answer.result)) if answer.ok else set()
    finally:
        episode.close()
    return frozenset(found)


def _numbers(result: Any) -> Iterator[tuple[str, Any]]:
    """Columns with their values, where all rows of a result have one value: else it is some row's alone."""
    rows = result if isinstance(result, list) else [result]
    named = [row for row in rows if isinstance(row, Mapping)]
    for name in named[0] if named else ():
        values = {repr(row.get(name)) for row in named}
        value = named[0][name]
        if len(values) == 1 and isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
