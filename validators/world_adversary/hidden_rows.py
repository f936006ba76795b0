"""The rows that a world hides, and what else they could have been."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envsynth.models import Table, World
from envsynth.models.world import Column
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import open_database

MAX_ROWS = 400
"""Hidden rows that are looked at; of more, so many at even distances."""
STEPS = (0, 1)
"""Ways to change a row: towards the largest, and towards the smallest of its columns' values."""


class HiddenRow(NamedTuple):
    """One row with hidden values."""

    table: str
    rowid: int
    label: str
    """What names it, for people."""
    others: tuple[dict[str, JSON], ...]
    """For each step, other values of its columns; empty where its being there is all it says."""


def hidden_rows(image: bytes, world: World) -> list[HiddenRow]:
    """The rows of a state that have hidden values which could be others."""
    connection = _opened(image)
    try:
        found = [row for table in world.tables for row in _rows_of(connection, table)]
    finally:
        connection.close()
    step = -(-len(found) // MAX_ROWS) or 1
    return found[::step]


def altered(image: bytes, rows: Iterable[HiddenRow], step: int) -> bytes:
    """The same state with other hidden values."""
    connection = _opened(image)
    try:
        for row in rows:
            values = row.others[step]
            if values:
                places = ", ".join(f'"{name}" = ?' for name in values)
                connection.execute(
                    f'UPDATE "{row.table}" SET {places} WHERE _rowid_ = ?', (*values.values(), row.rowid)
                )
            else:
                connection.execute(f'DELETE FROM "{row.table}" WHERE _rowid_ = ?', (row.rowid,))
        return connection.serialize()
    finally:
        connection.close()


def _opened(image: bytes) -> sqlite3.Connection:
    connection = open_database()
    connection.deserialize(image)
    return connection


def _rows_of(connection: sqlite3.Connection, table: Table) -> list[HiddenRow]:
    concealed = [column for column in table.columns if table.hidden or column.hidden]
    if not concealed:
        return []
    rows = connection.execute(f'SELECT _rowid_, * FROM "{table.name}" ORDER BY _rowid_').fetchall()
    naming = _naming(table, rows)
    free = [column for column in concealed if column.name not in naming]
    places = {column.name: place for place, column in enumerate(table.columns, 1)}
    ranges = {one.name: _range(one, [row[places[one.name]] for row in rows]) for one in free}
    found = []
    for row in rows:
        label = " ".join(f"{name} {row[places[name]]}" for name in naming)
        others = tuple(_others(free, places, ranges, row, step) for step in STEPS)
        # Where all its values are those of every row, only whether it is there says anything.
        if any(others) or not free:
            kept = tuple(one or others[1 - step] for step, one in enumerate(others))
            found.append(HiddenRow(table.name, row[0], label or f"row {row[0]}", kept))
    return found


def _naming(table: Table, rows: Sequence[Sequence[JSON]]) -> tuple[str, ...]:
    """Columns by which rows are found: the key, else the first ones by which the rows are sorted."""
    if table.key:
        return table.key
    count = 0
    while count + 1 < len(table.columns):
        values = [tuple(row[1 : count + 2]) for row in rows]
        try:
            in_order = values == sorted(values)
        except TypeError:
            in_order = False
        if not in_order:
            break
        count += 1
        if len(set(values)) == len(values):
            break
    return tuple(column.name for column in table.columns[:count])


def _range(column: Column, values: Sequence[JSON]) -> tuple[JSON, ...]:
    """The values that a column has, and some that it could have where it has only one; from small to large."""
    known = {value for value in values if value is not None}
    if len(known) < 2 and column.enum:
        known |= set(column.enum)
    if len(known) == 1 and not column.references:
        (only,) = known
        if isinstance(only, str):
            known.add(f"{only}?")
        else:
            known.add(1 - only if only in (0, 1) else only + 1)
    return tuple(sorted(known))


def _others(
    free: Sequence[Column], places: dict[str, int], ranges: dict[str, tuple[JSON, ...]], row: Sequence[JSON], step: int
) -> dict[str, JSON]:
    found = {}
    for column in free:
        choices = [value for value in ranges[column.name] if value != row[places[column.name]]]
        if choices:
            found[column.name] = choices[-1 if step == 0 else 0]
    return found
