"""What a skin of a family has to name, found by making its worlds at every level and in every presentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from envsynth.generators.mechanism.contract import LEVELS, Family, Look, Presentation
from envsynth.generators.mechanism.dress import shared_texts, skins_of
from envsynth.models import World
from envsynth.renaming import names_of
from envsynth.seeds import stream

__all__ = ["Needs", "needs_of"]

_CLOCK = "2026-03-02T08:00:00"
_WORD = re.compile(r"[a-z_][a-z0-9_]*")
_STRING = re.compile(r"'(?:[^']|'')*'")
_BOUND = frozenset({"now", "position"})
"""Parameters that every statement has."""


class Needs(NamedTuple):
    """Everything that a skin of one family must bring."""

    names: Mapping[str, str]
    """Neutral name → what it is."""
    tools: tuple[str, ...]
    """Neutral names of tools whose texts a sentence can stand before."""
    parameters: tuple[str, ...]
    """The same for parameters."""
    words: Mapping[str, tuple[str, ...]]
    """Word → what the skins that ship say for it."""
    labels: int
    """How many names of things the largest level shows."""
    taken: frozenset[str]
    """Words of the family's SQL that are no names of its own: nothing may be called so."""


@cache
def needs_of(family: Family[Any, Any]) -> Needs:
    """What a skin of a family has to bring."""
    worlds, queries, labels = [], [], 0
    for level in LEVELS:
        parameters = family.sample(level, stream(f"{family.name}/{level}", "needs"), 1)
        tape = family.tape(parameters, stream(f"{family.name}/{level}", "needs/tape"))
        wanted = family.labels(parameters)
        labels = max(labels, wanted)
        shown = tuple(f"thing {'x' * number}" for number in range(wanted))
        queries.append(family.utility(parameters))
        worlds += [family.world(parameters, tape, Look(kind, shown, _CLOCK)) for kind in Presentation]
    skins = list(skins_of(family.name).values())
    names = {name: "" for skin in skins for name in skin.names}
    for world in worlds:
        names.update({name: what for name, what in _described(world) if not names.get(name)})
        names.update({name: "name" for name in names_of(world) if not names.get(name)})
    names = {name: what or "a column of a result" for name, what in names.items()}
    shared = shared_texts(family.name)
    tokens = {
        word for query in (*queries, *(sql for world in worlds for sql in _statements(world)))
        for word in _WORD.findall(_STRING.sub(" ", query).casefold())
    }  # fmt: skip
    return Needs(
        names=names,
        tools=tuple(dict.fromkeys(key.split(".")[1] for key in shared if key.startswith("tool."))),
        parameters=tuple(name for name in _parameters(worlds) if any(name in key.split(".")[1:] for key in shared)),
        words={word: tuple(skin.words[word] for skin in skins if word in skin.words) for word in skins[0].words},
        labels=labels,
        taken=frozenset(tokens - names.keys()) | _BOUND,
    )


def _described(world: World) -> Iterator[tuple[str, str]]:
    """Names with what they are, as far as a player would see it."""
    for table in world.tables:
        hidden = "a table that no tool shows" if table.hidden else "a table"
        yield table.name, f"{hidden}, with {', '.join(column.name for column in table.columns)}"
        yield from ((column.name, f"a column of {table.name}") for column in table.columns)
    for tool in world.tools:
        yield tool.name, f"a tool that {_KINDS[tool.kind.value]}"
        fields = tool.each.fields if tool.each else ()
        yield from ((one.name, f"a parameter of {tool.name}") for one in (*tool.parameters, *fields))


_KINDS = {
    "read": "reads", "write": "acts", "clock": "lets time pass", "think": "does nothing",
    "submit": "hands in a plan and ends it",
}  # fmt: skip


def _parameters(worlds: list[World]) -> list[str]:
    found = [
        one.name for world in worlds for tool in world.tools
        for one in (*tool.parameters, *(tool.each.fields if tool.each else ()))
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _statements(world: World) -> Iterator[str]:
    yield world.over
    for found in world.invariants:
        yield found.sql
    for tool in world.tools:
        yield from (guard.sql for guard in tool.guards)
        yield from tool.effects
        yield tool.result
