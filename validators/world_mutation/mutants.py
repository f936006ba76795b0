"""Trajectories one step away from a reference: a write left out, made twice, refused, taken back, or made otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.models import Tool, ToolKind, World
from envsynth.models.world import Parameter
from envsynth.validators.worlds.replayer import Call
from envsynth.validators.worlds.target import Target

_LOOKS = (ToolKind.READ, ToolKind.THINK)
MAX_VALUES = 4
"""Other values that one argument is given."""


class Mutant(NamedTuple):
    """One wrong way, unless it is proved to end as the reference does."""

    kind: str
    """`left_out`, `twice`, `other_value`; `refused`, `other_tool`, `undone` or `extra`."""
    what: str
    """For people."""
    calls: tuple[Call, ...]


def mutants(target: Target, reference: Sequence[Call], limit: int, *, inexact: bool) -> list[Mutant]:
    """At most `limit` mutants, taken in turn from all writes, so that none goes untried.

    Args:
        target: its world gives the other values and tools.
        reference: what is changed.
        limit: of their number.
        inexact: whether something else than the exact difference of states decides. Then it is also tried to be
            refused, to do it by another tool, to take it back, and to do more; where a difference decides, what these
            change is told by its other kinds.
    """
    tools = {tool.name: tool for tool in target.world.tools}
    values = _Values(target.world)
    writes = [place for place, (name, _) in enumerate(reference) if name in tools and tools[name].kind not in _LOOKS]
    each = [list(_of_write(reference, place, tools[reference[place][0]], values)) for place in writes]
    if inexact:
        each += [list(_otherwise(target, reference, place)) for place in writes]
        each.append(list(_more(target, reference)))
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


def _otherwise(target: Target, reference: Sequence[Call], place: int) -> Iterator[Mutant]:
    """One write refused, made by another tool that takes the same arguments, or followed by that one."""
    before, (name, arguments), after = reference[:place], reference[place], reference[place + 1 :]
    if name in {tool.name for tool in target.tools("submit")}:
        return
    where = f"call {place + 1}, {name}"
    yield Mutant("refused", where, (*before, (name, {**arguments, "no_such_argument": 1}), *after))
    end = _before_handing_in(target, reference)
    for tool in target.tools("write"):
        known = {one.name for one in tool.parameters}
        needed = {one.name for one in tool.parameters if one.required}
        if tool.name != name and known & arguments.keys() and needed <= arguments.keys():
            other = (tool.name, {key: value for key, value in arguments.items() if key in known})
            yield Mutant("other_tool", f"{where}: {tool.name} instead", (*before, other, *after))
            yield Mutant("undone", f"{where}: {tool.name} later", (*reference[:end], other, *reference[end:]))


def _more(target: Target, reference: Sequence[Call]) -> Iterator[Mutant]:
    """One more write that nobody asked for."""
    end = _before_handing_in(target, reference)
    for tool in target.tools("write"):
        for call in target.calls(tool):
            yield Mutant("extra", f"{call[0]} {call[1]} as well", (*reference[:end], call, *reference[end:]))


def _before_handing_in(target: Target, reference: Sequence[Call]) -> int:
    submits = {tool.name for tool in target.tools("submit")}
    return len(reference) - (1 if reference and reference[-1][0] in submits else 0)


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
