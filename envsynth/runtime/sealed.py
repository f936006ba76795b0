"""A SQLite database that only queries can touch, within a budget: what every check and criterion reads."""

from __future__ import annotations

import re
import sqlite3
from functools import cache

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
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
"""What a query does, in the words of SQLite's authorizer."""
_QUERY = re.compile(r"\s*(SELECT|WITH|VALUES)\b", re.IGNORECASE)


@cache
def known_functions() -> frozenset[str]:
    """Functions that queries may call: deterministic, without side effects."""
    return frozenset(word_table("sql_functions.txt"))


class SealedDatabase:
    """Queries over a connection, once it is sealed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._functions = known_functions()
        self._denied: list[str] = []
        self.columns = 0
        """Columns of the latest query; 0 when it was none."""
        self.names: tuple[str, ...] = ()
        """What they are called, as SQLite says it."""

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
        self.columns, self.names = 0, ()
        left = [MAX_STEPS // _STEP]

        def count() -> int:
            left[0] -= 1
            return int(left[0] < 0)

        self._connection.set_progress_handler(count, _STEP)
        try:
            if not _QUERY.match(sql):
                raise ValueError("it is no query")
            cursor = self._connection.execute(sql)
            self.names = tuple(str(column[0]) for column in cursor.description or ())
            self.columns = len(self.names)
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
        if action in READING and not (one or "").lower().startswith(("sqlite_", "pragma_")):
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
