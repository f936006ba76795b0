"""A line that a person typed, as a tool call."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

KINDS = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "yes or no"}
_TRUTHS = {"yes": True, "y": True, "true": True, "on": True, "1": True}
_FALSEHOODS = {"no": False, "n": False, "false": False, "off": False, "0": False}
_HEAD = re.compile(r"([\w-]+)\s*[.:]?(?![\w-])\s*(.*)", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=\s*")
_QUOTED = re.compile(r""""((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'""", re.DOTALL)
_WHOLE = re.compile(r"[+-]?\d{1,30}(\.0*)?")
_DECODER = json.JSONDecoder()


class Call(NamedTuple):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]


class Misread(Exception):
    """The line is no call; the text is one sentence that says why."""


class _Piece(NamedTuple):
    name: str
    """Of the parameter; empty: by position."""
    text: str
    bare: bool
    """Neither quoted nor JSON, so that further words may belong to it."""


def read_call(line: str, tools: Sequence[Mapping[str, Any]]) -> Call:
    """The call that a line means.

    `tool name=value …`, `tool value …` in the order of the parameters, `tool(value, …)`, `tool {"name": value}` and
    `{"tool": …, "arguments": {…}}` are read; a tool also by its number or a beginning of its name.

    Args:
        line: not empty.
        tools: name and JSON Schema parameters of each.

    Raises:
        Misread: it means none.
    """
    line = line.strip()
    if line.startswith("{"):
        return _json_call(line, tools)
    found = _HEAD.fullmatch(line)
    if found is None:
        raise Misread("a line begins with a tool's name or number; type help")
    tool = _tool(found[1], tools)
    return Call(str(tool["name"]), _arguments(tool, found[2].strip()))


def words_of(schema: Mapping[str, Any]) -> str:
    """What a parameter takes, in words."""
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = "" if low is None and high is None else f" from {low}" if high is None else f" up to {high}"
    if low is not None and high is not None:
        bounds = f" from {low} to {high}"
    return f"{KINDS[schema['type']]}{bounds}"


def _json_call(line: str, tools: Sequence[Mapping[str, Any]]) -> Call:
    document = _json(line)
    if not isinstance(document, dict) or not isinstance(document.get("tool"), str):
        raise Misread('a call in JSON is {"tool": name, "arguments": {…}}')
    arguments = document.get("arguments", {})
    if not isinstance(arguments, dict) or not document.keys() <= {"tool", "arguments"}:
        raise Misread('a call in JSON has "tool" and "arguments", an object, and nothing else')
    return Call(str(_tool(document["tool"], tools)["name"]), arguments)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Misread("that is no JSON: check its brackets and quotes") from None


def _tool(word: str, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    names = [str(tool["name"]) for tool in tools]
    if word in names:
        return tools[names.index(word)]
    if word.isdecimal() and 1 <= int(word[:9]) <= len(tools):
        return tools[int(word[:9]) - 1]
    plain = word.lower().replace("-", "_")
    begun = [name for name in names if name == plain] or [name for name in names if name.startswith(plain)]
    if len(begun) == 1:
        return tools[names.index(begun[0])]
    if begun:
        raise Misread(f"{word!r} may be {' or '.join(begun)}: type more of it")
    near = get_close_matches(plain, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise Misread(f"there is no tool {word[:60]!r}; {hint}")


def _arguments(tool: Mapping[str, Any], rest: str) -> dict[str, Any]:
    schemas, required = tool["parameters"]["properties"], tool["parameters"].get("required", [])
    if rest.startswith("{") and rest.endswith("}"):
        given = _json(rest)
        if isinstance(given, dict):
            return given
    listed = rest.startswith("(") and rest.endswith(")")
    rest = rest[1:-1].strip() if listed else rest
    if rest and not schemas:
        raise Misread(f"{tool['name']} takes no arguments")
    if _is_one_text(schemas, required, rest, listed):
        quoted = _QUOTED.fullmatch(rest)
        return {required[0]: _unquoted(quoted) if quoted else rest}
    texts = _placed(tool, _pieces(rest, listed, tool))
    missing = [f"{name} ({words_of(schemas[name])})" for name in required if name not in texts]
    if missing:
        raise Misread(f"{tool['name']} needs {', '.join(missing)}")
    return {name: _value(name, schemas[name], text) for name, text in texts.items()}


def _is_one_text(schemas: Mapping[str, Any], required: Sequence[str], rest: str, listed: bool) -> bool:
    """Whether the whole line is the one text that the tool needs, such as a shell's command."""
    if not rest or listed or len(required) != 1 or "enum" in schemas[required[0]]:
        return False
    named = _NAMED.match(rest)
    return schemas[required[0]]["type"] == "string" and not (named and named[1] in schemas)


def _pieces(rest: str, listed: bool, tool: Mapping[str, Any]) -> list[_Piece]:
    schemas, pieces, place = tool["parameters"]["properties"], [], 0
    bare = re.compile(r"[^,]+" if listed else r"\S+")
    while place < len(rest):
        if rest[place].isspace() or rest[place] == ",":
            place += 1
            continue
        named = _NAMED.match(rest, place)
        if named and named[1] not in schemas:
            raise Misread(
                f"{tool['name']} has no parameter {named[1]!r}, but {', '.join(schemas)}; put text with a = in quotes"
            )
        place = named.end() if named else place
        quoted = _QUOTED.match(rest, place)
        if quoted:
            pieces.append(_Piece(named[1] if named else "", _unquoted(quoted), False))
            place = quoted.end()
            continue
        text, place, is_json = _unquoted_word(rest, place, bare)
        pieces.append(_Piece(named[1] if named else "", text, not is_json))
    return pieces


def _unquoted_word(rest: str, place: int, bare: re.Pattern[str]) -> tuple[str, int, bool]:
    """A word or a JSON list, where it ends, and whether it is JSON."""
    if rest[place : place + 1] in ("[", "{"):
        try:
            _, end = _DECODER.raw_decode(rest, place)
        except (ValueError, RecursionError):
            raise Misread("a list is JSON: check its brackets and quotes") from None
        return rest[place:end], end, True
    found = bare.match(rest, place)
    if found is None:
        return "", len(rest), False
    return found[0].strip().rstrip(","), found.end(), False


def _placed(tool: Mapping[str, Any], pieces: Sequence[_Piece]) -> dict[str, str]:
    """The text of each parameter: named ones by name, others in order; further words go on with a text."""
    schemas, required = tool["parameters"]["properties"], tool["parameters"].get("required", [])
    texts: dict[str, str] = {}
    growing = ""
    by_name = {piece.name for piece in pieces if piece.name}
    for piece in pieces:
        free = [name for name in schemas if name not in texts and name not in by_name]
        owed = [name for name in free if name in required]
        if piece.name:
            if piece.name in texts:
                raise Misread(f"{piece.name} is given twice")
            target = piece.name
        elif growing and piece.bare and not owed:
            texts[growing] += f" {piece.text}"
            continue
        elif owed or free:
            target = (owed or free)[0]
        else:
            raise Misread(f"{piece.text[:60]!r} is one value too many for {tool['name']}")
        texts[target] = piece.text
        growing = target if piece.bare and schemas[target]["type"] == "string" else ""
    return texts


def _unquoted(found: re.Match[str]) -> str:
    return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2], flags=re.DOTALL)


def _value(name: str, schema: Mapping[str, Any], text: str) -> Any:
    if "enum" in schema:
        return _choice(name, schema["enum"], text)
    kind = schema["type"]
    if kind == "string":
        return text
    if kind == "boolean":
        found: Any = {**_TRUTHS, **_FALSEHOODS}.get(text.lower())
    elif _WHOLE.fullmatch(text):
        found = int(text.partition(".")[0])
    else:
        found = _fraction(text) if kind == "number" else None
    if found is None:
        raise Misread(f"{name} must be {words_of(schema)}, not {text[:60]!r}")
    return found


def _choice(name: str, choices: Sequence[Any], text: str) -> Any:
    for same in (str, lambda choice: str(choice).lower()):
        for choice in choices:
            if same(choice) == same(text):
                return choice
    raise Misread(f"{name} must be {' or '.join(map(str, choices))}, not {text[:60]!r}")


def _fraction(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
