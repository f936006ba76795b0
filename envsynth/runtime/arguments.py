"""Arguments of a tool call against the tool's flat JSON Schema. A mistake is a sentence for the agent."""

from __future__ import annotations

import math
from typing import NamedTuple

from .contract import JSON

_NAMES = {"string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false"}


class Checked(NamedTuple):
    """Arguments that fit, or why they do not."""

    values: dict[str, JSON]
    error: str


def check_arguments(schema: JSON, arguments: JSON) -> Checked:
    """Check arguments against a schema of type object with flat properties and no further ones.

    Args:
        schema: `properties` of type string, integer, number or boolean with enum, minimum, maximum, minLength,
            maxLength; `required`.
        arguments: whatever the agent sent.
    """
    if not isinstance(arguments, dict):
        return Checked({}, "arguments must be a JSON object")
    properties = schema["properties"]
    known = ", ".join(properties) or "none"
    for name in arguments:
        if name not in properties:
            return Checked({}, f"unknown argument {str(name)[:100]!r}; known: {known}")
    for name in schema.get("required", ()):
        if name not in arguments:
            return Checked({}, f"missing argument {name!r}; known: {known}")
    values = {}
    for name, value in arguments.items():
        error = _misfit(properties[name], value)
        if error:
            return Checked({}, f"argument {name!r} {error}")
        values[name] = int(value) if properties[name]["type"] == "integer" else value
    return Checked(values, "")


def _misfit(schema: JSON, value: JSON) -> str:
    kind = schema["type"]
    if not _is(kind, value):
        return f"must be {_NAMES[kind]}"
    if "enum" in schema and value not in schema["enum"]:
        return "must be one of " + ", ".join(map(str, schema["enum"]))
    if kind == "string":
        return _misfit_text(schema, value)
    if "minimum" in schema and value < schema["minimum"]:
        return f"must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"must be at most {schema['maximum']}"
    return ""


def _is(kind: str, value: JSON) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, float):
        return math.isfinite(value) and (kind == "number" or value.is_integer())
    return isinstance(value, int) and not isinstance(value, bool)


def _misfit_text(schema: JSON, value: str) -> str:
    if len(value) < schema.get("minLength", 0):
        return f"must have at least {schema['minLength']} characters"
    if len(value) > schema.get("maxLength", len(value)):
        return f"must have at most {schema['maxLength']} characters"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode text"
    return ""


def recordable(arguments: JSON, *, limit: int) -> JSON:
    """Arguments as a trace keeps them: flat, finite, each text cut to `limit` characters."""
    if not isinstance(arguments, dict):
        return {"": _flat(arguments, limit)}
    return {str(name)[:limit]: _flat(value, limit) for name, value in list(arguments.items())[:100]}


def _flat(value: JSON, limit: int) -> JSON:
    if isinstance(value, str):
        return value[:limit]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**63:
        return value
    # A nested, endless or not finite value would make every query on the trace fail, so it is kept as a word.
    return f"({type(value).__name__})"
