"""A second proof that a statement reads nothing hidden: from SQLite's own instructions, not from what it asked for.

The authorizer is not asked in every case (it is not for columns joined by USING); what is not opened is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import Connection, Hidden, Phase
from envsynth.runtime.worlds.image import row_id

_OPENS = frozenset({"OpenRead", "OpenWrite", "ReopenIdx"})


class Tree(NamedTuple):
    """What lies at a root page: a table, or an index on one."""

    table: str
    columns: Sequence[str]
    """As its records hold them."""
    numbered: str
    """The column that is no part of the records of a table, because it numbers them."""


class Storage:
    """Where a world's tables and indices lie."""

    def __init__(self, connection: Connection, tables: Iterable[JSON]) -> None:
        connection.authority.phase = Phase.OURS
        sql = connection.sql
        documents = {table["name"]: table for table in tables}
        self._trees: dict[int, Tree] = {}
        for kind, name, table, root in sql.execute("SELECT type, name, tbl_name, rootpage FROM sqlite_master"):
            if kind == "table":
                columns = [column["name"] for column in documents[table]["columns"]]
                self._trees[root] = Tree(table, columns, row_id(documents[table]))
            elif kind == "index":
                columns = [str(line[2]) for line in sql.execute(f'PRAGMA index_info("{name}")')]
                self._trees[root] = Tree(table, columns, "")

    def hidden_read(self, program: Iterable[Sequence[JSON]], hidden: Hidden) -> str:
        """The first hidden table or column that a program opens or reads; empty where there is none."""
        return next(self._hidden_reads(program, hidden), "")

    def _hidden_reads(self, program: Iterable[Sequence[JSON]], hidden: Hidden) -> Iterator[str]:
        cursors: dict[int, Tree] = {}
        for _, opcode, one, two, *_ in program:
            if opcode in _OPENS and two in self._trees:
                tree = cursors[one] = self._trees[two]
                if tree.table in hidden.tables:
                    yield tree.table
                elif (tree.table, tree.numbered) in hidden.columns:
                    yield f"{tree.table}.{tree.numbered}"
            elif opcode == "Column":
                yield from _hidden_column(cursors, one, two, hidden)


def _hidden_column(cursors: Mapping[int, Tree], cursor: int, place: int, hidden: Hidden) -> Iterator[str]:
    tree = cursors.get(cursor)
    if tree is not None and place < len(tree.columns) and (tree.table, tree.columns[place]) in hidden.columns:
        yield f"{tree.table}.{tree.columns[place]}"
