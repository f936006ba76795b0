"""Statements of documents, prepared as they will be when a world is played, before there are any rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from envsynth.models import Table
from envsynth.runtime.worlds.authority import Connection, Hidden, Phase
from envsynth.runtime.worlds.image import build_image
from envsynth.runtime.worlds.tools import marked

_ENDING = (
    "CREATE TABLE main.trace (turn INTEGER PRIMARY KEY, tool TEXT, arguments TEXT, ok INTEGER, result TEXT, error TEXT,"
    " cost REAL)",
    "CREATE TABLE main.answer (key TEXT PRIMARY KEY, value)",
)


class Prepared:
    """An empty database with tables, on which statements are prepared and never run for effect."""

    def __init__(self, tables: Sequence[Table]) -> None:
        """A database.

        Raises:
            ValueError: a table cannot be made.
        """
        document = {"tables": [table.document() for table in tables], "rows": {}}
        image = build_image(document)
        self._connection = Connection(Hidden(document), lists=True)
        self._connection.load(image)
        sql = self._connection.sql
        sql.execute("ATTACH ':memory:' AS initial")
        sql.deserialize(image, name="initial")
        for statement in _ENDING:
            sql.execute(statement)

    def close(self) -> None:
        """Free it."""
        self._connection.sql.close()

    def fault(self, statement: str, parameters: Iterable[str] = (), *, effect: bool = False) -> str:
        """Why a statement cannot be prepared; empty where it can.

        Args:
            statement: one query, or one change where it is an effect.
            parameters: names that are bound, besides `now`.
            effect: whether it may change rows; else it may only read.
        """
        connection = self._connection
        connection.authority.phase = phase = Phase.EFFECT if effect else Phase.SHOWN
        connection.authority.denied.clear()
        connection.steps.refill()
        try:
            connection.sql.execute(f"EXPLAIN {marked(phase, statement)}", _bound(parameters)).fetchall()
        except (sqlite3.Error, sqlite3.Warning) as exc:
            return connection.authority.denied[0] if connection.authority.denied else str(exc)
        finally:
            connection.authority.phase = Phase.OURS
        return ""

    def columns(self, query: str, parameters: Iterable[str] = ()) -> list[str]:
        """Names of a query's columns; none where it cannot be prepared."""
        if not query or self.fault(query, parameters):
            return []
        self._connection.steps.refill()
        return [str(line[0]) for line in self._connection.sql.execute(query, _bound(parameters)).description]

    def tables_read(self, query: str, parameters: Iterable[str] = ()) -> frozenset[str]:
        """Tables that a query reads; parameters as for `fault`."""
        found: set[str] = set()

        def look(action: int, one: str | None, *rest: object) -> int:
            if action == sqlite3.SQLITE_READ and one:
                found.add(one.lower())
            return sqlite3.SQLITE_OK

        sql = self._connection.sql
        try:
            sql.set_authorizer(look)
            sql.execute(f"EXPLAIN /* whose tables */ {query}", _bound(parameters)).fetchall()
        except (sqlite3.Error, sqlite3.Warning):
            return frozenset()
        finally:
            sql.set_authorizer(self._connection.authority)
        return frozenset(found)


def _bound(parameters: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(("now", *parameters))
