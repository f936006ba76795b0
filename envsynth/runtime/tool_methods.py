"""Tools as Python methods, for trainers that read a tool from a signature and a Google docstring."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, Optional

from .contract import JSON

_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool}


def unusable(tools: Sequence[JSON], reserved: Collection[str]) -> str:
    """Why tools cannot be methods, in words; empty where they can.

    Args:
        tools: name, description and JSON Schema parameters of each.
        reserved: names of methods that the class has anyway.
    """
    for tool in tools:
        if tool["name"] in reserved or keyword.iskeyword(tool["name"]):
            return f"a tool is called {tool['name']}"
        for name in tool["parameters"]["properties"]:
            if keyword.iskeyword(name) or name == "self":
                return f"a parameter of {tool['name']} is called {name}"
    return ""


def tool_method(tool: JSON, call: Callable[[Any, str, dict[str, JSON]], str]) -> Callable[..., str]:
    """A function to be put into a class.

    Args:
        tool: name, description and JSON Schema parameters.
        call: takes the object, the tool's name and the arguments that were given; gives what the agent is shown.
    """
    name, properties = tool["name"], tool["parameters"]["properties"]
    required = [key for key in properties if key in tool["parameters"]["required"]]
    ordered = [*required, *(key for key in properties if key not in required)]

    def method(self: Any, *args: JSON, **kwargs: JSON) -> str:
        if len(args) > len(ordered):
            raise TypeError(f"{name} takes {len(ordered)} arguments, not {len(args)}")
        given = {**dict(zip(ordered, args, strict=False)), **kwargs}
        return call(self, name, {key: value for key, value in given.items() if value is not None or key in required})

    hints = {key: _hint(properties[key], key in required) for key in ordered}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(
            key, kind, annotation=hints[key], default=inspect.Parameter.empty if key in required else None
        )
        for key in ordered
    ]
    shown = [inspect.Parameter("self", kind), *parameters]
    method.__signature__ = inspect.Signature(shown, return_annotation=str)  # type: ignore[attr-defined]
    method.__annotations__ = {**hints, "return": str}
    method.__name__ = method.__qualname__ = name
    method.__doc__ = _docstring(tool["description"] or name, {key: properties[key] for key in ordered})
    return method


def _hint(schema: JSON, required: bool) -> Any:
    kind = Literal[tuple(schema["enum"])] if schema.get("enum") else _TYPES[schema["type"]]
    return kind if required else Optional[kind]  # noqa: UP045  (a Literal made here has no `|` for type checkers)


def _docstring(description: str, properties: dict[str, JSON]) -> str:
    """The description, and a line for each parameter with its bounds."""
    lines = [" ".join(description.split())]
    if properties:
        lines += ["", "Args:", *(f"    {name}: {_told(schema)}" for name, schema in properties.items())]
    return "\n".join([*lines, "", "Returns:", "    What the tool says."])


def _told(schema: JSON) -> str:
    bounds = {"minimum": "at least", "maximum": "at most", "minLength": "characters, at least", "maxLength": "at most"}
    said = [f"{words} {schema[key]}" for key, words in bounds.items() if key in schema]
    text = " ".join(schema.get("description", "").split()) or f"A {schema['type']}."
    return f"{text} ({', '.join(said)})" if said else text
