"""Arguments that fit beyond doubt, found out in a microsecond; all others are looked at by `check_arguments`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..contract import JSON

_LARGEST = math.nextafter(math.inf, 0)
_LEAST, _MOST = -(2**63), 2**63 - 1
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}


class _Slot(NamedTuple):
    """What a value must be."""

    name: str
    type: Any
    low: float
    """Least number, or least characters."""
    high: float
    enum: frozenset[JSON] | None


class Acceptor:
    """Says of arguments whether they can be taken as they are; where it does not, nothing is known of them."""

    def __init__(self, schema: JSON, *, longest: int) -> None:
        """For one tool.

        Args:
            schema: of type object with flat properties, as `check_arguments` takes it.
            longest: characters of a text whose schema names no bound.
        """
        self._slots = [_slot(name, found, longest) for name, found in schema["properties"].items()]

    def __call__(self, arguments: JSON) -> bool:
        """Whether every property is there, of exactly its type and within its bounds, and nothing else is."""
        if type(arguments) is not dict or len(arguments) != len(self._slots):
            return False
        for name, kind, low, high, enum in self._slots:
            value: Any = arguments.get(name)
            if type(value) is not kind or (enum is not None and value not in enum):
                return False
            if kind is str:
                if not (low <= len(value) <= high and value.isascii() and "\0" not in value):
                    return False
            elif not low <= value <= high:
                return False
        return True


def _slot(name: str, schema: JSON, longest: int) -> _Slot:
    kind = _TYPES[schema["type"]]
    if kind is str:
        low, high = schema.get("minLength", 0), min(schema.get("maxLength", longest), longest)
    elif kind is int:
        low, high = max(schema.get("minimum", _LEAST), _LEAST), min(schema.get("maximum", _MOST), _MOST)
    elif kind is float:
        # Comparisons with what is no number are false, so only the infinities need a bound.
        low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
    else:
        low, high = 0, 1
    enum = frozenset(schema["enum"]) if "enum" in schema else None
    return _Slot(name, kind, low, high, enum)
