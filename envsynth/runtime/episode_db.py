"""The database of a finished episode, and the only way a check or criterion reads it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import SandboxError
from .contract import JSON
from .trees import word_table

MAX_STEPS = 50_000_000
"""Instructions of SQLite's virtual machine that one query may take: a few seconds, the same on every machine."""
_STEP = 10_000
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 * 2**20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 1,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
}
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_QUERY = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)


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


class EpisodeDatabase:
    """A database in memory that only queries can touch once it is sealed."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._connection.execute("ATTACH ':memory:' AS initial")
        self._connection.executescript(Path(__file__).parent.joinpath("sql", "workspace.sql").read_text("utf-8"))
        self._functions = frozenset(word_table("sql_functions.txt"))
        self._denied: list[str] = []
        self.columns = 0
        """Columns of the latest query; 0 when it was none."""

    def insert(self, table: str, rows: Iterable[Sequence[JSON]]) -> None:
        """Fill a table, before the database is sealed. Text that is no Unicode is stored with escapes."""
        ready = [[_storable(value) for value in row] for row in rows]
        if ready:
            marks = ", ".join("?" * len(ready[0]))
            self._connection.execute("BEGIN")
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", ready)
            self._connection.execute("COMMIT")

    def seal(self) -> None:
        """Allow nothing but queries from now on."""
        for function in ("json_each", "json_tree"):
            # SQLite sets these tables up at their first use, which the authorizer would see as a write.
            self._connection.execute(f"SELECT 1 FROM {function}('[]')").fetchall()
        self._connection.execute("PRAGMA query_only = ON")
        for limit, value in _LIMITS.items():
            self._connection.setlimit(limit, value)
        self._connection.set_authorizer(self._authorize)

    def rows(self, sql: str, *, where: str) -> list[tuple[JSON, ...]]:
        """The rows of one SELECT.

        Args:
            sql: one statement.
            where: what the query belongs to, for messages.

        Raises:
            SandboxError: the query cannot be evaluated; that is never a grade.
        """
        self._denied.clear()
        self.columns = 0
        left = [MAX_STEPS // _STEP]

        def count() -> int:
            left[0] -= 1
            return int(left[0] < 0)

        self._connection.set_progress_handler(count, _STEP)
        try:
            if not _QUERY.match(sql):
                raise ValueError("it is no query")
            cursor = self._connection.execute(sql)
            self.columns = len(cursor.description or ())
            return cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as exc:
            cause = self._denied[0] if self._denied else "it takes too many steps" if left[0] < 0 else str(exc)
            raise SandboxError(
                "a query of the verifier cannot be evaluated", where=where, cause=cause,
                next_step="mend the task's verifier; the episode was not graded", retryable=False,
            ) from exc  # fmt: skip
        finally:
            self._connection.set_progress_handler(None, 0)

    def truth(self, sql: str, *, where: str) -> bool | None:
        """Truth of the first value of one SELECT; None for NULL and for no row.

        Raises:
            SandboxError: the query cannot be evaluated.
        """
        rows = self.rows(sql, where=where)
        value = rows[0][0] if rows else None
        return None if value is None else _is_true(value)

    def close(self) -> None:
        """Free the memory."""
        self._connection.close()

    def _authorize(self, action: int, one: str | None, two: str | None, schema: str | None, inner: str | None) -> int:
        if action in _READING and not (one or "").lower().startswith(("sqlite_", "pragma_")):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            if (two or "").lower() in self._functions:
                return sqlite3.SQLITE_OK
            self._denied.append(f"the function {two} is not allowed")
        else:
            self._denied.append("only reading is allowed")
        return sqlite3.SQLITE_DENY


def _is_true(value: JSON) -> bool:
    """Only a number can be true: SQL would read text by its leading digits, and a text is no answer to a check."""
    return isinstance(value, int | float) and value != 0


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
