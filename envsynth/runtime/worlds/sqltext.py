"""SQL as words: what can be told of a statement from its text alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)
    |(?P<parameter>[:@$][A-Za-z0-9_]+|\?[0-9]*)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    |(?P<other>[0-9][0-9A-Za-z_.]*|.)""",
    re.VERBOSE | re.DOTALL,
)
_BY_NAME = re.compile("natural|using", re.IGNORECASE)


class Token(NamedTuple):
    """A piece of a statement; comments and spaces are none."""

    kind: str
    """`word`, `string`, `quoted` (an identifier), `parameter` or `other`."""
    text: str
    """Words in upper case; the rest as it stands, a string with its quotes."""
    depth: int
    """How many parentheses are open around it; a parenthesis itself counts as outside."""


@lru_cache(maxsize=4096)
def names_in(sql: str) -> frozenset[str]:
    """Every word of a statement that could name a table or a column, in upper case."""
    return frozenset(piece.text.strip('"`[]').upper() for piece in tokens(sql) if piece.kind in ("word", "quoted"))


@lru_cache(maxsize=4096)
def tokens(sql: str) -> tuple[Token, ...]:
    """The pieces of a statement, in order."""
    found: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        if kind == "skipped":
            continue
        text = match.group().upper() if kind == "word" else match.group()
        if text == ")":
            depth -= 1
        found.append(Token(kind, text, depth))
        if text == "(":
            depth += 1
    return tuple(found)


def joins_by_name(sql: str) -> bool:
    """Whether tables are joined by NATURAL or USING: SQLite then compares columns without asking the authorizer."""
    if not _BY_NAME.search(sql):
        return False
    pieces = tokens(sql)
    return any(
        token.kind == "word" and (token.text == "NATURAL" or (token.text == "USING" and _opens(pieces, place + 1)))
        for place, token in enumerate(pieces)
    )


def _opens(pieces: Sequence[Token], place: int) -> bool:
    return place < len(pieces) and pieces[place].text == "("
