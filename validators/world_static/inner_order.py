"""Orders inside a statement: what an aggregate joins, what a window counts, and an ORDER BY that orders nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsynth.runtime.worlds.sqltext import Token, tokens

_JOINING = frozenset({"GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT"})
"""Aggregates whose value depends on the order of their rows."""
_COUNTING = frozenset({"ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"})
"""Window functions whose value does."""
_LISTS = frozenset({"JSON_EACH", "JSON_TREE"})
"""They give their rows in the order of the text."""
_NO_NAMES = frozenset({
    "ASC", "DESC", "NULLS", "FIRST", "LAST", "COLLATE", "NOCASE", "BINARY", "RTRIM", "NULL", "TRUE", "FALSE", "NOT",
    "AND", "OR", "IS", "IN", "BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "INTEGER", "TEXT", "REAL",
})  # fmt: skip
_AFTER_ORDER = frozenset({"LIMIT", "ROWS", "RANGE", "GROUPS"})


def orders(pieces: Sequence[Token], depth: int, start: int = 0, end: int | None = None) -> bool:
    """Whether an ORDER BY stands at this depth between two places, and names something to order by."""
    last = len(pieces) if end is None else end
    for place in range(start, last - 1):
        piece = pieces[place]
        if piece.depth == depth and piece.text == "ORDER" and pieces[place + 1].text == "BY":
            return any(map(_names, _terms(pieces, depth, place + 2, last)))
    return False


def unordered_inside(sql: str, single: Mapping[str, bool]) -> str:
    """The first function in a statement whose value depends on an order that nobody states; empty where none is.

    Args:
        sql: the statement.
        single: by table, whether it never has more than one row.
    """
    pieces = tokens(sql)
    windows = _windows(pieces)
    for place, piece in enumerate(pieces[:-1]):
        if piece.kind != "word" or pieces[place + 1].text != "(":
            continue
        if piece.text in _COUNTING | _JOINING and not _is_ordered(pieces, place, windows, single):
            return piece.text.lower()
    return ""


def _is_ordered(pieces: Sequence[Token], place: int, windows: Mapping[str, bool], single: Mapping[str, bool]) -> bool:
    depth, end = pieces[place].depth, closing(pieces, place + 1)
    if orders(pieces, depth + 1, place, end):
        return True
    after = end + 1
    if _text(pieces, after) == "FILTER":
        after = closing(pieces, after + 1) + 1
    if _text(pieces, after) == "OVER":
        named = windows.get(_text(pieces, after + 1))
        return orders(pieces, depth + 1, after, closing(pieces, after + 1)) if named is None else named
    return _is_fed_in_order(pieces, depth, after, single)


def _is_fed_in_order(pieces: Sequence[Token], depth: int, after: int, single: Mapping[str, bool]) -> bool:
    """Whether the rows of an aggregate are at most one, or come from a subquery that orders them."""
    source = after
    while source < len(pieces) and pieces[source].depth >= depth and pieces[source].text != ")":
        if pieces[source].depth == depth and pieces[source].text == "FROM":
            break
        source += 1
    else:
        return True
    if source >= len(pieces) or pieces[source].text != "FROM":
        return True
    first = source + 1
    if _text(pieces, first) == "(":
        return orders(pieces, depth + 1, first, closing(pieces, first))
    name = pieces[first].text.strip('"`[]')
    if name.upper() in _LISTS or _has_ordered_definition(pieces, name):
        return True
    joined = any(
        piece.depth == depth and piece.text in ("JOIN", ",") for piece in pieces[first : _end_of(pieces, first, depth)]
    )
    return not joined and single.get(name.lower(), False)


def _has_ordered_definition(pieces: Sequence[Token], name: str) -> bool:
    """Whether a WITH of the statement defines a table of this name in an order."""
    for place in range(len(pieces) - 2):
        defined = pieces[place].text.strip('"`[]').upper() == name.upper() and pieces[place + 1].text == "AS"
        if defined and pieces[place + 2].text == "(":
            return orders(pieces, pieces[place + 2].depth + 1, place + 2, closing(pieces, place + 2))
    return False


def _end_of(pieces: Sequence[Token], start: int, depth: int) -> int:
    """Where the tables of a FROM end."""
    stop = {"WHERE", "GROUP", "ORDER", "LIMIT", "UNION", ")", "HAVING"}
    rest = range(start, len(pieces))
    return next((n for n in rest if pieces[n].depth <= depth and pieces[n].text in stop), len(pieces))


def _windows(pieces: Sequence[Token]) -> dict[str, bool]:
    """Whether the windows that are defined by name state an order."""
    found: dict[str, bool] = {}
    for place in range(len(pieces) - 3):
        if pieces[place].text in ("WINDOW", ",") and pieces[place + 2].text == "AS" and pieces[place + 3].text == "(":
            end = closing(pieces, place + 3)
            found[pieces[place + 1].text] = orders(pieces, pieces[place + 3].depth + 1, place + 3, end)
    return found


def _terms(pieces: Sequence[Token], depth: int, start: int, end: int) -> Iterator[list[Token]]:
    term: list[Token] = []
    for piece in pieces[start:end]:
        if piece.depth < depth or (piece.depth == depth and piece.text in _AFTER_ORDER):
            break
        if piece.depth == depth and piece.text == ",":
            yield term
            term = []
        else:
            term.append(piece)
    yield term


def _names(term: Sequence[Token]) -> bool:
    """Whether a term is more than constants: a column, or the number of one."""
    if term and term[0].text.isdigit() and all(piece.text in _NO_NAMES for piece in term[1:]):
        return True
    for place, piece in enumerate(term):
        function = _text(term, place + 1) == "("
        if piece.kind == "quoted" or (piece.kind == "word" and piece.text not in _NO_NAMES and not function):
            return True
    return False


def closing(pieces: Sequence[Token], opening: int) -> int:
    """Place of the parenthesis that closes the one at `opening`; the end where it is never closed."""
    if opening >= len(pieces):
        return len(pieces)
    depth = pieces[opening].depth
    rest = range(opening + 1, len(pieces))
    return next((place for place in rest if pieces[place].text == ")" and pieces[place].depth == depth), len(pieces))


def _text(pieces: Sequence[Token], place: int) -> str:
    return pieces[place].text if place < len(pieces) else ""
