"""Whether a text says a literal or a name, in any way of writing it."""

from __future__ import annotations

import ast
import json
import re
import warnings
from functools import cached_property

Literal = str | int | float | complex

SHORT = 3
"""Characters; a shorter text counts as stated only where it is written as a literal or as code."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)")
_ZEROS = re.compile(r"^0+(?=\d)")
_SPAN = re.compile(r"```[\w-]*\n(.*?)```|`([^`\n]+)`", re.S)
_QUOTED = re.compile(r"\"([^\"\n]*)\"|(?<!\w)'([^'\n]*)'(?!\w)")


class Stated:
    """A text, asked whether it says a literal."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._squeezed = " ".join(text.split())

    @cached_property
    def _numbers(self) -> frozenset[complex]:
        found: set[complex] = set()
        for match in _NUMBER.finditer(self.text):
            try:
                number = ast.literal_eval(_ZEROS.sub("", match[0].lstrip("+-")))
            except (SyntaxError, ValueError):
                continue
            found |= {number, -number}
        return frozenset(found)

    @cached_property
    def _written(self) -> frozenset[str]:
        """Strings that are written as literals in code, or are all that a piece of code says."""
        found = {first or second for first, second in _QUOTED.findall(self.text)}
        for block, inline in _SPAN.findall(self.text):
            code = block or inline
            found.add(code.strip())
            tree = parsed(code)
            for part in ast.walk(tree) if tree is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str | bytes):
                    found.add(part.value.decode("latin-1") if isinstance(part.value, bytes) else part.value)
        return frozenset(found)

    def says(self, literal: Literal) -> bool:
        """Whether the text has a literal, in any way of writing it."""
        if not isinstance(literal, str):
            return literal in self._numbers
        if literal in self._written:
            return True
        forms = {literal, repr(literal)[1:-1], json.dumps(literal)[1:-1], json.dumps(literal, ensure_ascii=False)[1:-1]}
        if len(literal.strip()) <= SHORT:
            return bool(forms & self._written)
        return any(_contains(self._squeezed, " ".join(form.split())) for form in forms)

    def names(self, name: str) -> bool:
        """Whether the text has an identifier as a word."""
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.text) is not None


def parsed(text: str) -> ast.Module | None:
    """A text as Python, or None where it is none. What the compiler thinks of its style is nobody's concern."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _contains(text: str, literal: str) -> bool:
    start = r"(?<!\w)" if literal[:1].isalnum() else ""
    end = r"(?!\w)" if literal[-1:].isalnum() else ""
    return bool(literal) and re.search(f"{start}{re.escape(literal)}{end}", text) is not None
