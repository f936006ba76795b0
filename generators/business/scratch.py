"""The scratch database in which a world's rows come together; looser than the world, which is checked at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.models import ColumnRole, Table
from envsynth.runtime.worlds.authority import Connection, Hidden, Phase
from envsynth.runtime.worlds.image import row_id

Row = dict[str, JsonValue]

_INDEXED_ROWS = 50


def numbered(table: Table) -> str:
    """The integer column that numbers rows by itself, or empty."""
    columns = [{"name": c.name, "type": c.type.value, "role": c.role.value} for c in table.columns]
    return row_id({"name": table.name, "columns": columns})


class Scratch:
    """A database in memory with all tables of a world."""

    def __init__(self, tables: Sequence[Table], now: str) -> None:
        self._tables = {table.name: table for table in tables}
        self._connection = Connection(Hidden({"tables": []}), lists=True)
        self._connection.load(_empty(tables))
        self._connection.sql.set_progress_handler(None, 0)
        self._now = now
        self._rows: dict[str, list[Row]] = {}

    def key(self, table: str) -> str:
        """The column by which rows of a table are referred to."""
        found = self._tables[table]
        return found.key[0] if found.key else numbered(found) or found.columns[0].name

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, in order of their number."""
        if table not in self._rows:
            names = [column.name for column in self._tables[table].columns]
            self._rows[table] = [dict(zip(names, row, strict=True)) for row in self.values(table)]
        return self._rows[table]

    def values(self, table: str) -> list[tuple[JsonValue, ...]]:
        """The rows of a table as tuples, in order of their number."""
        names = ", ".join(f'"{column.name}"' for column in self._tables[table].columns)
        self._connection.authority.phase = Phase.OURS
        return self._connection.sql.execute(f'SELECT {names} FROM "{table}" ORDER BY rowid').fetchall()

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Add rows; columns that they have not are NULL.

        Raises:
            GeneratorError: two have the same number.
        """
        names = [column.name for column in table.columns]
        marks = ", ".join("?" * len(names))
        sql, self._connection.authority.phase = self._connection.sql, Phase.OURS
        self._rows.pop(table.name, None)
        try:
            sql.executemany(
                f'INSERT INTO "{table.name}" VALUES ({marks})', [[row.get(name) for name in names] for row in rows]
            )
        except sqlite3.Error as exc:
            raise GeneratorError("drawn rows do not fit", where=f"table {table.name}", cause=str(exc)) from exc
        for column in table.columns if len(self.values(table.name)) >= _INDEXED_ROWS else ():
            if column.references and column.name != numbered(table):
                sql.execute(
                    f'CREATE INDEX IF NOT EXISTS "{table.name}_by_{column.name}" ON "{table.name}" ("{column.name}")'
                )

    def change(self, statement: str, where: str) -> int:
        """Run a statement that changes rows, under the authority of a tool's effect; returns how many it changed.

        Raises:
            GeneratorError: it fails; says where.
        """
        authority = self._connection.authority
        authority.phase = Phase.EFFECT
        authority.denied.clear()
        self._rows.clear()
        try:
            return self._connection.sql.execute(statement, {"now": self._now}).rowcount
        except (sqlite3.Error, sqlite3.Warning) as exc:
            cause = authority.denied[0] if authority.denied else str(exc)
            raise GeneratorError("a statement that prepares rows fails", where=where, cause=cause) from exc
        finally:
            authority.phase = Phase.OURS

    def query(self, statement: str, parameters: Mapping[str, JsonValue] | None = None) -> list[tuple[JsonValue, ...]]:
        """The rows of a query.

        Raises:
            sqlite3.Error: it fails.
        """
        self._connection.authority.phase = Phase.SHOWN
        try:
            return self._connection.sql.execute(statement, {"now": self._now, **(parameters or {})}).fetchall()
        finally:
            self._connection.authority.phase = Phase.OURS

    def close(self) -> None:
        """Free it."""
        self._connection.sql.close()


def _empty(tables: Sequence[Table]) -> bytes:
    plain = sqlite3.connect(":memory:")
    try:
        for table in tables:
            own, keys = numbered(table), [c.name for c in table.columns if c.role is ColumnRole.KEY]
            parts = [
                f'"{column.name}" {column.type.value.upper()}{" PRIMARY KEY" if column.name == own else ""}'
                for column in table.columns
            ]
            if keys and not own:
                parts.append(f"UNIQUE ({', '.join(f'{chr(34)}{key}{chr(34)}' for key in keys)})")
            plain.execute(f'CREATE TABLE "{table.name}" ({", ".join(parts)})')
        return plain.serialize()
    finally:
        plain.close()
