"""Statements whose ties are broken one way or the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from envsynth.runtime.worlds.sqltext import Token, tokens

_ENDS = frozenset({"LIMIT", "OFFSET", ")", "UNION", "EXCEPT", "INTERSECT", "WINDOW"})
_COMMENTS = ("--", "/*")


@lru_cache(maxsize=4096)
def with_ties_broken(sql: str, direction: str) -> str:
    """A statement that orders rows, which its own ORDER BY leaves open, by what it gives of them.

    The ORDER BY of windows and of aggregates stay as they are, as do those of a SELECT with a star.

    Args:
        sql: any statement; one with comments comes back as it is.
        direction: ASC or DESC.
    """
    if "ORDER" not in sql.upper() or any(mark in sql for mark in _COMMENTS):
        return sql
    pieces = tokens(sql)
    ends = _ends(sql, pieces)
    added: dict[int, str] = {}
    for place, (one, two) in enumerate(pairwise(pieces)):
        if one.text == "ORDER" and two.text == "BY":
            columns = _columns(pieces, place)
            last = _last_term(pieces, place)
            if columns:
                added[ends[last]] = "".join(f", {number} {direction}" for number in range(1, columns + 1))
    parts, begun = [], 0
    for at in sorted(added):
        parts += [sql[begun:at], added[at]]
        begun = at
    return "".join((*parts, sql[begun:]))


def _ends(sql: str, pieces: Sequence[Token]) -> list[int]:
    """Where each piece of a statement without comments ends."""
    at, found = 0, []
    for piece in pieces:
        at += len(sql[at:]) - len(sql[at:].lstrip()) + len(piece.text)
        found.append(at)
    return found


def _columns(pieces: Sequence[Token], order: int) -> int:
    """How many columns the SELECT gives that an ORDER BY belongs to; 0 where none is, or where it says a star."""
    depth = pieces[order].depth
    start = 0
    for place in range(order, -1, -1):
        if pieces[place].depth < depth:
            start = place + 1
            break
    own = [piece for piece in pieces[start:order] if piece.depth == depth]
    first = next((n for n, piece in enumerate(own) if piece.text == "SELECT"), None)
    if first is None:
        return 0
    columns = list(_until_from(own[first + 1 :]))
    stars = [columns[n - 1].text if n else "" for n, piece in enumerate(columns) if piece.text == "*"]
    if not {"", ",", ".", "DISTINCT"}.isdisjoint(stars):
        return 0
    return 1 + sum(piece.text == "," for piece in columns)


def _until_from(pieces: Sequence[Token]) -> Iterator[Token]:
    for piece in pieces:
        if piece.text in ("FROM", "UNION", "WHERE"):
            return
        yield piece


def _last_term(pieces: Sequence[Token], order: int) -> int:
    """The last piece of an ORDER BY."""
    depth, last = pieces[order].depth, order
    for place in range(order + 1, len(pieces)):
        piece = pieces[place]
        if piece.depth < depth or (piece.depth == depth and piece.text in _ENDS and not _closes(pieces, place, order)):
            break
        last = place
    return last


def _closes(pieces: Sequence[Token], place: int, order: int) -> bool:
    """Whether a parenthesis closes one that was opened in the ORDER BY itself."""
    opened = sum(piece.text == "(" and piece.depth == pieces[order].depth for piece in pieces[order:place])
    closed = sum(piece.text == ")" and piece.depth == pieces[order].depth for piece in pieces[order:place])
    return pieces[place].text == ")" and opened > closed
