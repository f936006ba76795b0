"""JSON from a model's text: alone, in a fence, or among prose; with commas too many or raw line ends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

__all__ = ["findings", "parsed"]

M = TypeVar("M", bound=BaseModel)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_MOST_STARTS = 200


def parsed(text: str, kind: type[M]) -> M:
    """The value that a text holds.

    Raises:
        ValidationError: the JSON in it does not fit; of several, what is wrong with the first.
        ValueError: there is no JSON in it.
    """
    first: ValidationError | None = None
    for value in _values(text):
        try:
            return kind.model_validate_json(json.dumps(value))
        except ValidationError as exc:
            first = first or exc
    if first is not None:
        raise first
    raise ValueError("there is no JSON value in it")


def findings(error: ValueError) -> tuple[str, ...]:
    """What is wrong, for the model to read: a line each, at most ten."""
    if not isinstance(error, ValidationError):
        return (str(error),)
    faults = error.errors(include_url=False, include_context=False)
    lines = [f"{'.'.join(map(str, each['loc'])) or 'the value'}: {each['msg']}" for each in faults[:10]]
    return (*lines, f"and {len(faults) - 10} more") if len(faults) > 10 else tuple(lines)


def _values(text: str) -> Iterator[JsonValue]:
    """Every JSON value that the text may mean, the likeliest first."""
    for candidate in (text, *(found[1] for found in _FENCE.finditer(text))):
        value = _loaded(candidate.strip())
        if value is not None:
            yield value
    lenient = _without_commas(text)
    position = 0
    for _ in range(_MOST_STARTS):
        start = min((at for at in (lenient.find("{", position), lenient.find("[", position)) if at >= 0), default=-1)
        if start < 0:
            return
        try:
            value, position = _DECODER.raw_decode(lenient, start)
        except (ValueError, RecursionError):
            position = start + 1
        else:
            yield value


def _loaded(text: str) -> JsonValue:
    for form in (text, _without_commas(text)):
        try:
            value: JsonValue = _DECODER.decode(form)
        except (ValueError, RecursionError):
            continue
        return value
    return None


def _without_commas(text: str) -> str:
    """The text without commas before a closing bracket, strings untouched."""
    return _STRING_OR_COMMA.sub(lambda found: found[0] if found[0].startswith('"') else "", text)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_constant)
