"""From a world's document to the database image that every reset starts from."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ..contract import JSON
from .authority import open_database

_SMALL_ROWS = 500
_INDEXED_ROWS = 200
_COMPARED = 20


def build_image(document: JSON) -> bytes:
    """The image of the initial state.

    Args:
        document: the document of a `models.World`.

    Raises:
        ValueError: a table cannot be made, or its rows do not fit; says which.
    """
    connection = open_database()
    try:
        total = sum(map(len, document["rows"].values()))
        # Every table takes a page at least, and a reset copies them all.
        connection.execute(f"PRAGMA page_size = {1024 if total <= _SMALL_ROWS else 4096}")
        connection.execute("BEGIN")
        for table in document["tables"]:
            _create(connection, table, document)
        for table in document["tables"]:
            _fill(connection, table, document["rows"].get(table["name"], ()))
        connection.execute("COMMIT")
        _check_references(connection)
        return connection.serialize()
    finally:
        connection.close()


def key_columns(table: JSON) -> list[str]:
    """Names of the columns that name a row; empty for a table without."""
    return [column["name"] for column in table["columns"] if column["role"] == "key"]


def row_id(table: JSON) -> str:
    """The integer column that numbers rows by itself, or empty: a lone integer key, else a leading exempt integer."""
    keys = key_columns(table)
    types = {column["name"]: column["type"] for column in table["columns"]}
    if len(keys) == 1:
        return keys[0] if types[keys[0]] == "integer" else ""
    first = table["columns"][0]
    given = not keys and first["role"] == "exempt" and first["type"] == "integer"
    return str(first["name"]) if given else ""


def _create(connection: sqlite3.Connection, table: JSON, document: JSON) -> None:
    parents = {parent["name"]: parent for parent in document["tables"]}
    numbered, keys = row_id(table), key_columns(table)
    parts = [_column(column, numbered, parents, table["name"]) for column in table["columns"]]
    if keys and not numbered:
        parts.append(f"PRIMARY KEY ({', '.join(map(_quoted, keys))})")
    try:
        connection.execute(f"CREATE TABLE {_quoted(table['name'])} ({', '.join(parts)}) STRICT")
        if len(document["rows"].get(table["name"], ())) >= _INDEXED_ROWS:
            for column in table["columns"]:
                if column["references"] and column["name"] != numbered:
                    name, where = f"{table['name']}_by_{column['name']}", _quoted(table["name"])
                    connection.execute(f"CREATE INDEX {_quoted(name)} ON {where} ({_quoted(column['name'])})")
    except sqlite3.Error as exc:
        raise ValueError(f"table {table['name']} cannot be made: {exc}") from exc


def _column(column: JSON, numbered: str, parents: JSON, table: str) -> str:
    name = _quoted(column["name"])
    text = f"{name} {column['type'].upper()}"
    if column["name"] == numbered:
        text += " PRIMARY KEY"
    elif not column["nullable"]:
        text += " NOT NULL"
    if column["enum"]:
        text += f" CHECK ({_one_of(name, column['enum'])})"
    if column["references"]:
        parent, _, target = column["references"].partition(".")
        if parent not in parents or [target] not in (key_columns(parents[parent]), [row_id(parents[parent])]):
            raise ValueError(
                f"{table}.{column['name']} references {column['references']}, which is no table's only key"
            )
        text += f" REFERENCES {_quoted(parent)} ({_quoted(target)})"
    return text


def _one_of(name: str, values: Sequence[JSON]) -> str:
    """That a column has one of a few values; SQLite would fill a table with those of an IN at every insertion."""
    if len(values) > _COMPARED:
        return f"{name} IN ({', '.join(map(_literal, values))})"
    return " OR ".join(f"{name} = {_literal(value)}" for value in values)


def _fill(connection: sqlite3.Connection, table: JSON, rows: JSON) -> None:
    marks = ", ".join("?" * len(table["columns"]))
    for number, row in enumerate(rows):
        try:
            connection.execute(f"INSERT INTO {_quoted(table['name'])} VALUES ({marks})", row)
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as exc:
            raise ValueError(f"row {number} of table {table['name']} does not fit: {exc}") from exc


def _check_references(connection: sqlite3.Connection) -> None:
    for table, number, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        raise ValueError(f"row {number} of table {table} points at nothing in {parent}")


def _quoted(name: str) -> str:
    return f'"{name}"'


def _literal(value: JSON) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
