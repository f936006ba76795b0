"""What an agent's action may be in gymnasium: a JSON text, or a choice of tool with values of spaces."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from gymnasium import Space, spaces

from .contract import JSON
from .observe import character_set

MAX_ACTION = 2_000_000
"""Characters."""
MAX_ARGUMENT = 20_000
"""Characters of a text argument whose schema names no bound."""
_LARGEST = 2**53
"""Bound of whole numbers whose schema names none: every JSON reader has them exactly."""


class WideText(spaces.Text):
    """Text over `observe.character_set`; copies share the tables of its 11,000 characters.

    gymnasium makes the tables anew for every space, which takes 20 ms.
    """

    @classmethod
    def of(cls, min_length: int, max_length: int) -> Self:
        """A space of texts, bounds in characters."""
        space = cls.__new__(cls)
        space.__dict__.update(_tables(), min_length=min_length, max_length=max_length)
        return space

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin, shared = self.__class__.__new__(self.__class__), _tables()
        for name, value in self.__dict__.items():
            twin.__dict__[name] = value if value is shared.get(name) else copy.deepcopy(value, memo)
        return twin


@cache
def _tables() -> Mapping[str, Any]:
    return vars(spaces.Text(1, min_length=0, charset=character_set()))


STOP: JSON = {"stop": True}
"""What `Actions.parse` gives for the action of an agent that has nothing more to do."""


class Actions(Protocol):
    """How actions are spelt."""

    space: Space[Any]
    """What an agent may choose from."""

    def parse(self, action: Any) -> JSON:
        """The call of an action, as `{"tool": …, "arguments": …}`; `STOP`; or a text saying why it is neither."""


class TextActions:
    """A JSON text `{"tool": name, "arguments": {...}}`; the empty text stops."""

    def __init__(self) -> None:
        self.space: Space[Any] = WideText.of(0, MAX_ACTION)

    def parse(self, action: Any) -> JSON:
        """As `Actions.parse`."""
        return STOP if action == "" else parse_action(action)


class Slot(NamedTuple):
    """One parameter of a tool."""

    space: Space[Any]
    read: Callable[[Any], JSON]
    """The argument of a value of the space. Raises TypeError or ValueError for what is no such value."""


class StructuredActions:
    """The number of a tool, and a value for each of its parameters; one number more, with no values, stops.

    `OneOf` the tools, in their order, of a `Dict` over the parameters, and an empty `Dict`: an enumeration is
    `Discrete` over its values in their order, true or false `Discrete(2)`, a whole number with both bounds `Discrete`,
    another number `Box`, a text `Text`. A parameter that may be left out is `OneOf` `Discrete(1)` (left out) and its
    space; its name may also be missing.
    """

    def __init__(self, tools: Sequence[JSON]) -> None:
        """Actions of a set of tools.

        Args:
            tools: name and JSON Schema parameters of each, as `Episode.tools` tells them.
        """
        self.tools = tuple(str(tool["name"]) for tool in tools)
        self._slots = [_slots(tool["parameters"]) for tool in tools]
        self.space: Space[Any] = spaces.OneOf(
            [spaces.Dict({name: slot.space for name, slot in slots.items()}) for slots in (*self._slots, {})]
        )

    def parse(self, action: Any) -> JSON:
        """As `Actions.parse`; a number that is out of bounds is a call, and the tool says so."""
        if not isinstance(action, tuple | list) or len(action) != 2:
            return "it is not a pair of a tool's number and its arguments"
        number, given = action
        if _is_whole(number) and number == len(self.tools):
            return STOP
        if not _is_whole(number) or not 0 <= number < len(self.tools):
            return f"there is no tool number {number!r:.40}; there are {len(self.tools)}"
        slots = self._slots[number]
        if not isinstance(given, Mapping) or not given.keys() <= slots.keys():
            return f"the arguments of {self.tools[number]} are a mapping of {', '.join(slots) or 'nothing'}"
        arguments = {}
        for name, value in given.items():
            try:
                read = slots[name].read(value)
            except (TypeError, ValueError):
                return f"the argument {name} of {self.tools[number]} is no value of its space"
            if read is not None:
                arguments[name] = read
        return {"tool": self.tools[number], "arguments": arguments}


def _slots(schema: JSON) -> dict[str, Slot]:
    required = set(schema.get("required", ()))
    slots = {name: _slot(found) for name, found in schema.get("properties", {}).items()}
    return {name: slot if name in required else _optional(slot) for name, slot in slots.items()}


def _slot(schema: JSON) -> Slot:
    kind, choices = schema["type"], schema.get("enum")
    if choices:
        return Slot(spaces.Discrete(len(choices)), lambda value: choices[_position(value, len(choices))])
    if kind == "boolean":
        return Slot(spaces.Discrete(2), lambda value: bool(_position(value, 2)))
    if kind == "string":
        # Schemas may allow more than anybody can draw; a longer text still is a call.
        least = schema.get("minLength", 0)
        return Slot(WideText.of(least, max(least, schema.get("maxLength", MAX_ARGUMENT))), _text)
    low, high = schema.get("minimum"), schema.get("maximum")
    if kind == "number":
        edges = (-np.inf if low is None else low, np.inf if high is None else high)
        return Slot(spaces.Box(*edges, shape=(), dtype=np.float64), _number)
    if low is not None and high is not None:
        return Slot(spaces.Discrete(int(high) - int(low) + 1, start=int(low)), _whole)
    edges = (min(-_LARGEST, high or 0) if low is None else low, max(_LARGEST, low or 0) if high is None else high)
    return Slot(spaces.Box(*edges, shape=(), dtype=np.int64), _whole)


def _optional(slot: Slot) -> Slot:
    def read(value: Any) -> JSON:
        given, inner = value
        return slot.read(inner) if _position(given, 2) else None

    return Slot(spaces.OneOf([spaces.Discrete(1), slot.space]), read)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _position(value: Any, count: int) -> int:
    number = _whole(value)
    if not 0 <= number < count:
        raise ValueError(number)
    return number


def _whole(value: Any) -> int:
    if type(value) is int:
        return value
    plain = np.asarray(value).item()
    if not _is_whole(plain):
        raise TypeError(value)
    return int(plain)


def _number(value: Any) -> float:
    plain = np.asarray(value).item()
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not np.isfinite(plain):
        raise TypeError(value)
    return plain


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return str(value)


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parse_action(action: Any) -> JSON:
    """The call of a text, as `{"tool": …, "arguments": …}`, or a text saying why it is none."""
    if not isinstance(action, str):
        return "it is not a text"
    if len(action) > MAX_ACTION:
        return f"it is longer than {MAX_ACTION} characters"
    try:
        call, end = _DECODER.raw_decode(action) if action.startswith("{") else (None, 0)
        if end != len(action):
            call = _DECODER.decode(action)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        return 'it is not an object with "tool" and "arguments"'
    if not call.keys() <= {"tool", "arguments"} or not isinstance(call.get("arguments", {}), dict):
        return 'it has other fields than "tool" and "arguments", or arguments that are no object'
    return {"tool": call["tool"], "arguments": call.get("arguments", {})}
