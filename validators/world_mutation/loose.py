"""Values that an agent gives and that end where no comparison of states looks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from envsynth.runtime.worlds.authority import open_database
from envsynth.runtime.worlds.image import row_id

Tables = Sequence[Mapping[str, JsonValue]]


def loose_place(tables: Tables, one: bytes, other: bytes) -> str:
    """The first cell, but for free texts, that differs between two ends which count as the same; empty where none does.

    Args:
        tables: documents of the world's tables.
        one: image of a state.
        other: image of a state with equal compared cells.
    """
    connection = open_database()
    try:
        connection.deserialize(one)
        connection.execute("ATTACH ':memory:' AS other")
        connection.deserialize(other, name="other")
        return next(_differing(connection, tables), "")
    finally:
        connection.close()


def _differing(connection: sqlite3.Connection, tables: Tables) -> Iterator[str]:
    for table in tables:
        name, numbered = table["name"], row_id(table)
        for column in _uncompared(table):
            # A number that the agent gave a row, where the system should, leaves no row of that number in the other.
            join, apart = ("LEFT JOIN", "b._rowid_ IS NULL OR ") if column == numbered else ("JOIN", "")
            sql = (
                f'SELECT 1 FROM main."{name}" a {join} other."{name}" b ON a._rowid_ = b._rowid_'
                f' WHERE {apart}a."{column}" IS NOT b."{column}"'
            )
            if connection.execute(sql).fetchone():
                yield f"{name}.{column}"


def _uncompared(table: Mapping[str, JsonValue]) -> list[str]:
    """Columns that no comparison counts, but for free texts."""
    columns = table["columns"]
    assert isinstance(columns, list)
    return [
        str(column["name"])
        for column in columns
        if isinstance(column, dict)
        and (column["role"] == "exempt" or (table["tolerated"] and column["role"] != "semantic"))
    ]
