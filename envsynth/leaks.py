"""What a solution adds that no text may give away: its identifiers, its literals, its lines."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterable
from typing import NamedTuple

_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")
_SHAPED = re.compile(r"[^\W_]_+[^\W_]|^_|\d|[a-z][A-Z]|_$")
_MIN_LINE = 16
"""Characters; a shorter line of code is nobody's secret."""
_MIN_LITERAL = 3


class Secrets(NamedTuple):
    """What the text may not say."""

    shaped: frozenset[str]
    """Identifiers that no prose has by chance, such as `max_size` or `maxSize`."""
    plain: frozenset[str]
    """Identifiers that are also words: given away only where they are written as code."""
    literals: frozenset[str]
    """Strings and numbers."""
    lines: frozenset[str]
    """Lines of code, spaces squeezed."""


class Change(NamedTuple):
    """A file of the solution, before and after."""

    path: str
    before: str
    after: str


def secrets_of(changes: Iterable[Change], known: str, told: str) -> Secrets:
    """What the changes add that neither the start tree nor the failing tests have.

    Args:
        changes: the solution's files.
        known: text that the agent has anyway.
        told: text of the failing tests; what they demand is the contract.
    """
    words = set(_WORD.findall(known)) | set(_WORD.findall(told))
    numbers = set(_NUMBER.findall(known)) | set(_NUMBER.findall(told))
    names: set[str] = set()
    literals: set[str] = set()
    lines: set[str] = set()
    for change in changes:
        found_names, found_literals = _tokens(change)
        names |= found_names
        literals |= found_literals
        old = {_squeeze(line) for line in change.before.splitlines()}
        lines |= {_squeeze(line) for line in change.after.splitlines()} - old
    squeezed = _squeeze(known) + " " + _squeeze(told)
    names -= words
    shaped = {name for name in names if _SHAPED.search(name)}
    return Secrets(
        frozenset(shaped),
        frozenset(name for name in names - shaped if len(name) > 1),
        frozenset(
            text for text in literals if _telling(text) and text not in numbers and _squeeze(text) not in squeezed
        ),
        frozenset(line for line in lines if len(line) >= _MIN_LINE and line not in squeezed),
    )


def leaks(text: str, secrets: Secrets) -> list[str]:
    """What a text gives away, sorted; empty: nothing."""
    words = set(_WORD.findall(text))
    code = set(_WORD.findall(" ".join(re.findall(r"```.*?```|`[^`]*`", text, re.S))))
    called = set(re.findall(r"([^\W\d]\w*)\(", text)) | set(re.findall(r"\.([^\W\d]\w*)", text))
    squeezed = _squeeze(text)
    found = words & secrets.shaped
    found |= (code | called) & secrets.plain
    found |= {literal for literal in secrets.literals if _contains(squeezed, _squeeze(literal))}
    found |= {line for line in secrets.lines if line in squeezed}
    return sorted(found)


def _tokens(change: Change) -> tuple[set[str], set[str]]:
    """Identifiers and literals of the new text."""
    if not change.path.endswith((".py", ".pyi")):
        added = set(change.after.splitlines()) - set(change.before.splitlines())
        return set(_WORD.findall(" ".join(added))), set()
    names, literals = set(), set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(change.after).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                names.add(token.string)
            elif token.type == tokenize.NUMBER:
                literals.add(token.string)
            elif token.type == tokenize.STRING:
                literals.add(_value(token.string))
            elif tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
                literals.add(token.string)
    except (tokenize.TokenError, SyntaxError):
        names |= set(_WORD.findall(change.after))
    return names, literals


def _value(token: str) -> str:
    try:
        value = ast.literal_eval(token)
    except (ValueError, SyntaxError):
        return token.lstrip("rRbBfFuU").strip("\"'")
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _telling(literal: str) -> bool:
    """Whether a literal says anything: not a word of prose, not a round or tiny number, not only punctuation."""
    text = literal.strip()
    if re.fullmatch(r"\d+", text):
        return int(text) > 16 and text.strip("0") not in ("1", "5")
    if re.fullmatch(r"[A-Za-z]+", text):
        return False
    return len(text) >= _MIN_LITERAL and re.search(r"\w", text) is not None


def _contains(text: str, literal: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(literal)}(?!\w)", text) is not None if literal else False


def _squeeze(text: str) -> str:
    return " ".join(text.split())
