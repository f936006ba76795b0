"""Arguments that fit a tool's schema, drawn by chance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from envsynth.runtime.arguments import check_arguments
from envsynth.runtime.contract import JSON

__all__ = ["Seen", "another", "drawn", "schemas_of"]

_FAR = 100
"""How far from a bound, or from zero, numbers without the other bound are drawn."""
_TRIES = 20


def schemas_of(tools: Iterable[JSON]) -> dict[str, JSON]:
    """Schema of the arguments of each tool, by name."""
    return {str(tool["name"]): tool["parameters"] for tool in tools}


class Seen:
    """Values that results have shown, by the name that they had there."""

    def __init__(self) -> None:
        self._values: dict[str, dict[JSON, None]] = {}

    def look(self, result: JSON) -> None:
        """Take in a result, whatever its shape."""
        if isinstance(result, dict):
            for name, value in result.items():
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    self._values.setdefault(name, {})[value] = None
                else:
                    self.look(value)
        elif isinstance(result, list):
            for value in result:
                self.look(value)

    def of(self, name: str, schema: JSON) -> list[JSON]:
        """Values that fit a parameter: those seen under its name, else all."""
        named = [value for value in self._values.get(name, ()) if _fits(schema, value)]
        return named or [value for values in self._values.values() for value in values if _fits(schema, value)]


def drawn(schema: JSON, rng: Random, seen: Seen) -> dict[str, JSON]:
    """Arguments that fit a schema; optional ones are there every other time."""
    required = set(schema.get("required", ()))
    return {
        name: _value(name, found, rng, seen)
        for name, found in schema["properties"].items()
        if name in required or rng.random() < 0.5
    }


def another(arguments: Mapping[str, JSON], schema: JSON, rng: Random) -> dict[str, JSON] | None:
    """The arguments with another value of one of them that still fits; None: there is no such value to be found."""
    names = [name for name in arguments if name in schema.get("properties", {})]
    rng.shuffle(names)
    for name in names:
        for value in _others(arguments[name], schema["properties"][name], rng):
            changed = {**arguments, name: value}
            if value != arguments[name] and not check_arguments(schema, changed).error:
                return changed
    return None


def _others(value: JSON, schema: JSON, rng: Random) -> Sequence[JSON]:
    if schema.get("enum"):
        others = [one for one in schema["enum"] if one != value]
        return [rng.choice(others)] if others else []
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        step = rng.choice((1, -1))
        return [value + step, value - step]
    return _other_texts(value, rng) if isinstance(value, str) else []


def _other_texts(value: str, rng: Random) -> Sequence[JSON]:
    try:
        plan = json.loads(value)
    except (ValueError, RecursionError):
        plan = None
    if isinstance(plan, list) and plan:
        # A plan of elements: one of them is forgotten.
        place = rng.randrange(len(plan))
        return [json.dumps(plan[:place] + plan[place + 1 :]), f"{value}x"]
    return [f"{value}x", value[:-1], "x"]


def _value(name: str, schema: JSON, rng: Random, seen: Seen) -> JSON:
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema["type"]
    if kind == "boolean":
        return rng.random() < 0.5
    known = seen.of(name, schema)
    if known and (kind == "string" or rng.random() < 0.5):
        return rng.choice(known)
    if kind == "string":
        return _word(schema, rng)
    low, high = _bounds(schema)
    return rng.randint(int(low), int(high)) if kind == "integer" else round(rng.uniform(low, high), 2)


def _bounds(schema: JSON) -> tuple[float, float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        low = min(0, high - _FAR) if high is not None else 0
    return low, max(low, high if high is not None else low + _FAR)


def _word(schema: JSON, rng: Random) -> str:
    least = schema.get("minLength", 0)
    size = min(max(least, rng.randint(1, 8)), schema.get("maxLength", max(least, 8)))
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(size))


def _fits(schema: JSON, value: JSON) -> bool:
    return not check_arguments({"properties": {"value": schema}}, {"value": value}).error
