"""Whether a result with several rows has an order: rows without one may come in another order elsewhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from envsynth.runtime.worlds.authority import Connection
from envsynth.runtime.worlds.sqltext import Token, tokens
from envsynth.runtime.worlds.tools import marked
from envsynth.validators.world_static.inner_order import closing, orders
from envsynth.validators.world_static.statements import Statement

_AGGREGATES = frozenset({
    "COUNT", "SUM", "TOTAL", "AVG", "GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY", "JSON_GROUP_OBJECT",
})  # fmt: skip
_EXTREMES = frozenset({"MIN", "MAX"})
"""Aggregates where they have one argument."""
_LOOP = re.compile(r"(?P<how>SCAN|SEARCH) (?P<name>\S+)(?: USING (?P<what>.+?))?(?: LEFT-JOIN)?")
_EQUAL = re.compile(r"(\w+)=\?")

Keys = Mapping[str, Collection[str] | None]
"""Key columns by table: empty where it never has more than one row, None where nothing names its rows."""


def lacks_order(statement: Statement, connection: Connection, keys: Keys) -> bool:
    """Whether a query may give several rows and its outermost SELECT does not say in which order.

    Args:
        statement: a result; it can be prepared.
        connection: of the world.
        keys: of every table.
    """
    pieces = tokens(statement.sql)
    outer = [piece.text for piece in pieces if piece.depth == 0 and piece.kind == "word"]
    if orders(pieces, 0):
        return False
    if "GROUP" not in outer and not {"UNION", "INTERSECT", "EXCEPT"} & set(outer) and _is_aggregate(pieces):
        return False
    connection.authority.phase = statement.phase
    connection.steps.refill()
    sql = f"EXPLAIN QUERY PLAN {marked(statement.phase, statement.sql)}"
    plan = connection.sql.execute(sql, dict.fromkeys(statement.parameters)).fetchall()
    loops = [str(detail) for _, parent, _, detail in plan if parent == 0]
    return not all(_is_single(loop, pieces, keys) for loop in loops if not _is_beside(loop))


def _is_beside(step: str) -> bool:
    """Whether a step of a plan adds no rows to the result."""
    return "SCALAR SUBQUERY" in step or step.startswith(("USE TEMP B-TREE", "LIST SUBQUERY", "CORRELATED LIST"))


def _is_single(loop: str, pieces: Sequence[Token], keys: Keys) -> bool:
    """Whether a loop of a plan runs once at most."""
    if loop == "SCAN CONSTANT ROW":
        return True
    found = _LOOP.fullmatch(loop)
    if found is None:
        return False
    table = _table_called(found["name"], pieces, keys)
    wanted = keys.get(table)
    if wanted is not None and not wanted:
        return True
    if found["how"] == "SCAN" or not found["what"]:
        return False
    if found["what"] == "INTEGER PRIMARY KEY (rowid=?)":
        return True
    return bool(wanted) and "INDEX" in found["what"] and set(wanted or ()) <= set(_EQUAL.findall(found["what"]))


def _table_called(name: str, pieces: Sequence[Token], keys: Keys) -> str:
    """The table behind an alias; the name itself where it is none."""
    wanted = name.upper()
    plain = [piece for piece in pieces if piece.text != "AS"]
    for before, piece in pairwise(plain):
        named = piece.text.strip('"`[]').upper() == wanted and piece.kind in ("word", "quoted")
        table = before.text.strip('"`[]').lower()
        if named and table in keys:
            return table
    return name.lower()


def _is_aggregate(pieces: Sequence[Token]) -> bool:
    """Whether the outermost SELECT has an aggregate among its columns, which makes one row of all of them."""
    for place in _of_own_columns(pieces):
        name, end = pieces[place].text, closing(pieces, place + 1)
        if pieces[end + 1 : end + 2] and pieces[end + 1].text in ("OVER", "FILTER"):
            continue
        single = not any(piece.text == "," and piece.depth == pieces[place].depth + 1 for piece in pieces[place:end])
        if name in _AGGREGATES or (name in _EXTREMES and single):
            return True
    return False


def _of_own_columns(pieces: Sequence[Token]) -> Iterator[int]:
    """Places of the function names between the outermost SELECT and its FROM; not those of subqueries."""
    start = next((n for n, piece in enumerate(pieces) if piece.depth == 0 and piece.text == "SELECT"), len(pieces))
    place = start + 1
    while place < len(pieces) and not (pieces[place].depth == 0 and pieces[place].text == "FROM"):
        after = pieces[place + 1].text if place + 1 < len(pieces) else ""
        if pieces[place].text == "(" and after in ("SELECT", "WITH", "VALUES"):
            place = closing(pieces, place)
        elif pieces[place].kind == "word" and after == "(":
            yield place
        place += 1
