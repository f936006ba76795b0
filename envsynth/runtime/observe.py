"""Results of calls as text for a model, kept inside a fixed set of characters."""

from __future__ import annotations

import json
from functools import cache

from .contract import JSON, ToolResult

_CUT = "\n[... cut ...]"
_ENCODED = json.JSONEncoder(ensure_ascii=False).encode


def render(result: ToolResult) -> str:
    """What a model reads of a result: rows and short fields a line each, long texts as they are."""
    if not result.ok:
        return f"error: {result.error}"
    if isinstance(result.result, list) and all(isinstance(row, dict) for row in result.result):
        return "\n".join(map(_ENCODED, result.result)) or "no rows"
    if not isinstance(result.result, dict):
        return _plain(result.result)
    return "\n".join(
        f"{name}:\n{value}" if isinstance(value, str) and "\n" in value else f"{name}: {_plain(value)}"
        for name, value in result.result.items()
    )


def _plain(value: JSON) -> str:
    if type(value) is int:
        return str(value)  # what the encoder gives, in a fifth of the time
    return value if isinstance(value, str) else _ENCODED(value)


@cache
def character_set() -> frozenset[str]:
    """Tab, newline, carriage return and every printable character below U+3000.

    All of Unicode would make each space of gymnasium take a megabyte and tens of milliseconds.
    """
    return frozenset("\t\n\r") | {chr(code) for code in range(32, 0x3000) if chr(code).isprintable()}


def confine(text: str, *, limit: int) -> str:
    """A text inside the character set and no longer than `limit`: other characters as Python escapes, the end cut."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return cut(text, limit=limit)  # as most are, found without looking at each character
    known = character_set()
    if not known.issuperset(text):
        text = "".join(char if char in known else _escaped(char) for char in text)
    return cut(text, limit=limit)


def cut(text: str, *, limit: int) -> str:
    """A text no longer than `limit`: of a longer one, the end gives way to a mark."""
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def _escaped(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode() if ord(char) > 127 else f"\\x{ord(char):02x}"
