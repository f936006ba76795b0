"""The database of a workspace's finished episode, and the only way a check or criterion reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError
from .contract import JSON
from .sealed import SealedDatabase


class ListedTest(NamedTuple):
    """A row of `tests`."""

    id: str
    list: str
    """`F2P` or `P2P`."""
    before: str
    after: str


class TraceRow(NamedTuple):
    """A row of `trace`; `arguments` and `result` are JSON texts."""

    turn: int
    tool: str
    arguments: str
    ok: bool
    result: str
    error: str | None
    cost: float


class EpisodeDatabase(SealedDatabase):
    """A database in memory that only queries can touch once it is sealed."""

    def __init__(self) -> None:
        super().__init__(sqlite3.connect(":memory:", isolation_level=None))
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._connection.execute("ATTACH ':memory:' AS initial")
        self._connection.executescript(Path(__file__).parent.joinpath("sql", "workspace.sql").read_text("utf-8"))

    def insert(self, table: str, rows: Iterable[Sequence[JSON]]) -> None:
        """Fill a table, before the database is sealed. Text that is no Unicode is stored with escapes."""
        ready = [[_storable(value) for value in row] for row in rows]
        if ready:
            marks = ", ".join("?" * len(ready[0]))
            self._connection.execute("BEGIN")
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", ready)
            self._connection.execute("COMMIT")


def _storable(value: JSON) -> JSON:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value


def validate_sql(sql: str, *, single_value: bool = True) -> str:
    """Why a query cannot be a check, criterion or evidence of a workspace task; empty when it can.

    It is run on an empty episode, under the limits of grading.

    Args:
        sql: one SELECT.
        single_value: whether exactly one column is wanted, as for checks and criteria.
    """
    database = EpisodeDatabase()
    try:
        database.seal()
        database.rows(sql, where="query")
    except SandboxError as exc:
        return exc.cause
    finally:
        database.close()
    if single_value and database.columns != 1:
        return f"it gives {database.columns} columns, where one is wanted"
    return ""
