"""Trajectories one step away from a reference: a write left out, made twice, or made with another argument."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.models import Tool, ToolKind, World
from envsynth.models.world import Parameter
from envsynth.validators.worlds.replayer import Call

_LOOKS = (ToolKind.READ, ToolKind.THINK)
MAX_VALUES = 4
"""Other values that one argument is given."""


class Mutant(NamedTuple):
    """One wrong way, unless it is proved to end as the reference does."""

    kind: str
    """`left_out`, `twice` or `other_value`."""
    what: str
    """For people."""
    calls: tuple[Call, ...]


def mutants(world: World, reference: Sequence[Call], limit: int) -> list[Mutant]:
    """At most `limit` mutants, taken in turn from all writes, so that none goes untried.

    Args:
        world: its rows give the other values.
        reference: what is changed.
        limit: of their number.
    """
    tools = {tool.name: tool for tool in world.tools}
    values = _Values(world)
    writes = [place for place, (name, _) in enumerate(reference) if name in tools and tools[name].kind not in _LOOKS]
    each = [list(_of_write(reference, place, tools[reference[place][0]], values)) for place in writes]
    return [one for turn in zip_longest(*each) for one in turn if one is not None][:limit]


def _of_write(reference: Sequence[Call], place: int, tool: Tool, values: _Values) -> Iterator[Mutant]:
    before, (name, arguments), after = reference[:place], reference[place], reference[place + 1 :]
    where = f"call {place + 1}, {name}"
    yield Mutant("left_out", where, (*before, *after))
    others = [
        Mutant(
            "other_value", f"{where}: {parameter.name} {value!r} instead of {arguments[parameter.name]!r}",
            (*before, (name, {**arguments, parameter.name: value}), *after),
        )
        for parameter in tool.parameters
        if parameter.name in arguments
        for value in values.others(tool, parameter, arguments[parameter.name])
    ]  # fmt: skip
    yield from others
    if tool.kind != "submit":
        yield Mutant("twice", where, (*before, (name, arguments), (name, arguments), *after))


class _Values:
    """Which visible columns of a world hold a value, and what else they hold."""

    def __init__(self, world: World) -> None:
        columns = []
        for table in world.tables:
            rows = world.rows.get(table.name, ())
            for place, column in enumerate(table.columns):
                if not table.hidden and not column.hidden:
                    columns.append(list(dict.fromkeys(row[place] for row in rows if row[place] is not None)))
        # What few rows name, such as orders with an open case, is more easily mixed up than what all rows have.
        self._columns = sorted(filter(None, columns), key=len)

    def others(self, tool: Tool, parameter: Parameter, value: JsonValue) -> Sequence[JsonValue]:
        """Values that could be taken for this one: its neighbours wherever it stands, and numbers close by."""
        if tool.each is not None and parameter.name == tool.each.parameter:
            return list(_shorter(value))
        if parameter.enum:
            return [one for one in parameter.enum if one != value][:MAX_VALUES]
        if isinstance(value, bool):
            return [not value]
        found: dict[JsonValue, None] = {}
        for column in self._columns:
            if value in column and _alike(column[0], value):
                place = column.index(value)
                found.update(dict.fromkeys((column[place - 1], column[(place + 1) % len(column)])))
        if isinstance(value, int | float):
            found.update(dict.fromkeys((value + 1, value - 1)))
        return [one for one in found if one != value and _fits(parameter, one)][:MAX_VALUES]


def _shorter(plan: JsonValue) -> Iterator[str]:
    """A list in JSON without one of its elements."""
    elements = json.loads(plan) if isinstance(plan, str) else []
    for place in range(min(MAX_VALUES, len(elements))):
        yield json.dumps([*elements[:place], *elements[place + 1 :]])


def _alike(one: JsonValue, other: JsonValue) -> bool:
    return isinstance(one, str) == isinstance(other, str)


def _fits(parameter: Parameter, value: JsonValue) -> bool:
    if isinstance(value, str):
        longest = len(value) if parameter.max_length is None else parameter.max_length
        return (parameter.min_length or 0) <= len(value) <= longest
    assert isinstance(value, int | float)
    low = value if parameter.minimum is None else parameter.minimum
    high = value if parameter.maximum is None else parameter.maximum
    return low <= value <= high
