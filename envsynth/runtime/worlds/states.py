"""States compared: a hash that depends on the rows alone, and the exact difference between two states."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..contract import JSON
from .image import key_columns

Row = dict[str, JSON]


class Changed(NamedTuple):
    """A row that is in both states, with other values."""

    key: tuple[JSON, ...]
    before: Row
    after: Row

    @property
    def columns(self) -> frozenset[str]:
        """Columns whose values differ."""
        return frozenset(name for name, value in self.after.items() if value != self.before[name])


class TableDiff(NamedTuple):
    """What happened to one table. Exempt columns are left out, also of rows."""

    added: list[Row]
    removed: list[Row]
    changed: list[Changed]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def compared_columns(table: JSON) -> list[str]:
    """Columns of a table that count: all but those given by the system."""
    return [column["name"] for column in table["columns"] if column["role"] != "exempt"]


def state_hash(connection: sqlite3.Connection, tables: Sequence[JSON]) -> str:
    """sha256 over the rows of all tables that count, whatever their order and however they came about.

    Args:
        connection: the state.
        tables: documents of `models.Table`; tolerated ones are left out, as are exempt columns.
    """
    digest = hashlib.sha256()
    for table in sorted((table for table in tables if not table["tolerated"]), key=lambda table: str(table["name"])):
        columns = compared_columns(table)
        names = ", ".join(f'"{name}"' for name in columns) or "count(*)"
        order = ", ".join(str(number) for number in range(1, len(columns) + 1)) or "1"
        rows = connection.execute(f'SELECT {names} FROM "{table["name"]}" ORDER BY {order}').fetchall()
        types = {column["name"]: column["type"] for column in table["columns"]}
        for place in (place for place, name in enumerate(columns) if types[name] == "real"):
            rows = [(*row[:place], _plain(row[place]), *row[place + 1 :]) for row in rows]
        digest.update(json.dumps([table["name"], columns, rows]).encode())
    return digest.hexdigest()


def state_diff(connection: sqlite3.Connection, tables: Sequence[JSON]) -> dict[str, TableDiff]:
    """The tables of `main` that differ from those of the attached `initial`, with the difference."""
    found = {str(table["name"]): table_diff(connection, table) for table in tables}
    return {name: diff for name, diff in found.items() if diff}


def table_diff(connection: sqlite3.Connection, table: JSON) -> TableDiff:
    """What happened to one table between `initial` and `main`."""
    columns, keys = compared_columns(table), key_columns(table)
    if _same_rows(connection, table, columns):
        return TableDiff([], [], [])
    added, removed = _apart(
        _unpaired(connection, table, "main", "initial"), _unpaired(connection, table, "initial", "main")
    )
    if not keys:
        return TableDiff(added, removed, [])
    gone = {_key(row, keys): row for row in removed}
    changed = [Changed(_key(row, keys), gone[_key(row, keys)], row) for row in added if _key(row, keys) in gone]
    both = {change.key for change in changed}
    assert columns  # a key column is never exempt
    return TableDiff(
        [row for row in added if _key(row, keys) not in both], [row for row in removed if _key(row, keys) not in both],
        changed,
    )  # fmt: skip


def _same_rows(connection: sqlite3.Connection, table: JSON, columns: Sequence[str]) -> bool:
    """Whether both states have equal rows under the same numbers, as most tables have; cheaper than a difference."""
    place = f'"{table["name"]}"'
    other = "".join(f' OR a."{name}" IS NOT b."{name}"' for name in columns)
    sql = (
        f"SELECT (SELECT count(*) FROM main.{place}) = (SELECT count(*) FROM initial.{place}) AND NOT EXISTS (SELECT 1"
        f" FROM main.{place} a LEFT JOIN initial.{place} b ON b._rowid_ = a._rowid_ WHERE b._rowid_ IS NULL{other})"
    )
    return bool(connection.execute(sql).fetchone()[0])


def _unpaired(connection: sqlite3.Connection, table: JSON, here: str, there: str) -> list[Row]:
    """Rows that `here` has and `there` has not under the same number."""
    columns = compared_columns(table)
    names = ", ".join(f'a."{name}"' for name in columns) or "1"
    other = "".join(f' OR a."{name}" IS NOT b."{name}"' for name in columns)
    sql = (
        f'SELECT {names} FROM {here}."{table["name"]}" a LEFT JOIN {there}."{table["name"]}" b'
        f" ON b._rowid_ = a._rowid_ WHERE b._rowid_ IS NULL{other}"
    )
    return [{name: row[place] for place, name in enumerate(columns)} for row in connection.execute(sql)]


def _apart(added: Sequence[Row], removed: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Both without rows that are equal in pairs: those only moved to another number."""
    moved = Counter(_values(row) for row in added) & Counter(_values(row) for row in removed)
    return _without(added, Counter(moved)), _without(removed, Counter(moved))


def _without(rows: Sequence[Row], gone: Counter[tuple[JSON, ...]]) -> list[Row]:
    kept = []
    for row in rows:
        if gone[_values(row)] > 0:
            gone[_values(row)] -= 1
        else:
            kept.append(row)
    return kept


def _values(row: Row) -> tuple[JSON, ...]:
    return tuple(row.values())


def _key(row: Row, keys: Sequence[str]) -> tuple[JSON, ...]:
    return tuple(row[name] for name in keys)


def _plain(value: JSON) -> JSON:
    """A value whose text does not depend on how a number was stored."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
