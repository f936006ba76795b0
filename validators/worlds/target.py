"""A world task as an attacker sees it: its tools, and values that they take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from envsynth.models import ColumnRole, Tool, World
from envsynth.models.world import Parameter
from envsynth.runtime.contract import JSON

Call = tuple[str, JSON]
"""A tool's name and what is sent to it, fitting or not."""
LADDER = ("low", "middle", "high")
"""Which of a parameter's values is taken."""
_LARGE_PLAN = 200
"""Elements of a plan at most, where a tool would take more."""


@dataclass(frozen=True)
class Target:
    """What an attack is made from."""

    world: World
    turns: int
    """Calls that an episode may have."""

    def tools(self, *kinds: str) -> list[Tool]:
        """The tools of some kinds, in the world's order."""
        return [tool for tool in self.world.tools if tool.kind in kinds]

    def call(self, tool: Tool, step: str, **given: JSON) -> Call:
        """A call that fits the tool's schema."""
        arguments = {one.name: self._value(tool, one, step) for one in tool.parameters}
        return tool.name, {**arguments, **given}

    def calls(self, tool: Tool) -> list[Call]:
        """Calls that fit, with small, middling and large values; equal ones once."""
        found = {json.dumps(call): call for call in (self.call(tool, step) for step in LADDER)}
        return list(found.values())

    def ending(self, step: str = "low") -> list[Call]:
        """Handing in, where a tool does that."""
        return [self.call(tool, step) for tool in self.tools("submit")[:1]]

    def names_things(self, tool: Tool) -> bool:
        """Whether a tool is told which of several things is meant, and not only how much of something."""
        fields = (*tool.parameters, *(tool.each.fields if tool.each else ()))
        return any(field.name in self._keys for field in fields)

    @cached_property
    def _keys(self) -> frozenset[str]:
        """Visible columns that name rows, at home or elsewhere."""
        return frozenset(
            column.name for table in self.world.tables for column in table.columns
            if not table.hidden and not column.hidden and (column.role is ColumnRole.KEY or column.references)
        )  # fmt: skip

    def plan(self, tool: Tool, step: str, size: int) -> str:
        """A plan of equal elements."""
        fields = tool.each.fields if tool.each else ()
        return json.dumps([{field.name: self._fitting(field, step) for field in fields}] * size)

    def guesses(self, parameter: Parameter, secrets: Sequence[JSON]) -> list[JSON]:
        """Small, middling and large values of a parameter, and the secrets that it takes."""
        usual = [self._fitting(parameter, step) for step in LADDER]
        if parameter.enum or parameter.type == "boolean":
            return list(dict.fromkeys((*usual, *parameter.enum)))
        return list(dict.fromkeys((*usual, *(value for value in secrets if lies_within(parameter, value)))))

    def _value(self, tool: Tool, parameter: Parameter, step: str) -> JSON:
        if tool.each is not None and parameter.name == tool.each.parameter:
            return self.plan(tool, step, min(tool.each.maximum, _LARGE_PLAN))
        return self._fitting(parameter, step)

    def _fitting(self, parameter: Parameter, step: str) -> JSON:
        choices = self._choices(parameter)
        return choices[{"low": 0, "middle": len(choices) // 2, "high": len(choices) - 1}[step]]

    def _choices(self, parameter: Parameter) -> Sequence[JSON]:
        """Values that fit, from small to large."""
        if parameter.enum:
            return parameter.enum
        if parameter.type == "boolean":
            return (False, True)
        known = [value for value in self._visible.get(parameter.name, ()) if _fits(parameter, value)]
        if parameter.type == "string":
            return known or [_text(parameter, "a")]
        if parameter.minimum is None and parameter.maximum is None and known:
            return known
        low = parameter.minimum if parameter.minimum is not None else min(0, parameter.maximum or 0)
        high = parameter.maximum if parameter.maximum is not None else low + 100
        middle = (low + high) / 2
        if parameter.type == "integer":
            return (int(low), int(middle), int(high))
        return (low, middle, high)

    @cached_property
    def _visible(self) -> Mapping[str, Sequence[JSON]]:
        """Values that visible columns hold at the start, each once, by the columns' name."""
        found: dict[str, dict[JSON, None]] = {}
        for table in self.world.tables:
            for place, column in enumerate(table.columns):
                if not table.hidden and not column.hidden:
                    values = found.setdefault(column.name, {})
                    values.update((row[place], None) for row in self.world.rows.get(table.name, ()))
        return {name: tuple(values) for name, values in found.items()}


def _fits(parameter: Parameter, value: JSON) -> bool:
    if parameter.type == "string":
        return isinstance(value, str) and _text(parameter, value) == value
    return isinstance(value, int) or (parameter.type == "number" and isinstance(value, float))


def lies_within(parameter: Parameter, value: JSON) -> bool:
    """Whether a value is of the parameter's type and within its bounds."""
    if not _fits(parameter, value):
        return False
    low, high = parameter.minimum, parameter.maximum
    return isinstance(value, str) or ((low is None or value >= low) and (high is None or value <= high))


def _text(parameter: Parameter, text: str) -> str:
    """A text made to fit."""
    longest = parameter.max_length if parameter.max_length is not None else len(text)
    return text.ljust(parameter.min_length or 0, "a")[: max(longest, parameter.min_length or 0)]


def with_text(target: Target, tool: Tool, text: str) -> Call | None:
    """A call whose free texts all are `text`; None where the tool takes none."""
    free = [one for one in tool.parameters if one.type == "string" and not one.enum]
    if not free:
        return None
    return target.call(tool, "middle", **{one.name: _text(one, text) for one in free})


def misfits(tool: Tool) -> list[Call]:
    """Calls that a tool must refuse for what they are."""
    good: Mapping[str, JSON] = {}
    wrong: list[JSON] = [None, [], "", 7, {"no_such_parameter": 1}]
    for one in tool.parameters:
        listed = tool.each is not None and tool.each.parameter == one.name
        wrong += [{**good, one.name: value} for value in _wrong_values(one, listed=listed)]
    if tool.parameters and any(one.required for one in tool.parameters):
        wrong.append({})
    return [(tool.name, arguments) for arguments in wrong]


def _wrong_values(parameter: Parameter, *, listed: bool) -> list[JSON]:
    wrong: list[JSON] = [None, {"a": 1}]
    if listed:
        return [*wrong, "", "{", '[{"no_such_field": 1}]', "[[]]", 3]
    wrong.append([1])
    if parameter.type == "string":
        return [*wrong, 1, True, "\0", "\ud800"]
    wrong += ["1", "1; DROP TABLE x"]
    if parameter.type == "boolean":
        return [*wrong, 1, 0]
    wrong += [True, float("nan"), float("inf"), 10**30, -(10**30)]
    if parameter.minimum is not None:
        wrong.append(parameter.minimum - 1)
    if parameter.maximum is not None:
        wrong.append(parameter.maximum + 1)
    if parameter.type == "integer":
        wrong.append(0.5)
    return wrong
