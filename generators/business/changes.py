"""From a recorded change to the checks that demand it, by the roles of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from envsynth.models import ChangedRow, Check, Column, ColumnRole, Table, TableChange, ToolCall
from envsynth.runtime.worlds.image import row_id
from envsynth.runtime.worlds.states import TableDiff

Tables = Mapping[str, Table]
Change = Mapping[str, TableDiff]
MIN_TEXT = 5
"""Characters of a free text that says anything."""
_FREE = (ColumnRole.SEMANTIC, ColumnRole.EXEMPT)


def end_state(change: Change, tables: Tables, writes: Sequence[ToolCall]) -> tuple[Check, ...]:
    """Everything that must hold at the end.

    Args:
        change: what the reference did.
        tables: of the world.
        writes: the reference's mutations; what their arguments say is expected as it was said.
    """
    given = _given(writes)
    expect = {name: _expected(tables[name], diff, given) for name, diff in change.items()}
    texts = _texts(change, tables, given)
    return (
        Check(id="end_state", kind="diff", expect=expect),
        *(Check(id=f"says_something_{number}", sql=sql) for number, sql in enumerate(texts, 1)),
        Check(id="invariants", kind="invariants"),
    )


def free_texts(change: Change, tables: Tables, writes: Sequence[ToolCall]) -> set[str]:
    """Arguments of the mutations that end in free text and nowhere else."""
    free: set[JsonValue] = set()
    bound: set[JsonValue] = set()
    for name, diff in change.items():
        roles = {column.name: column.role for column in tables[name].columns}
        for row in (*diff.added, *(changed.after for changed in diff.changed)):
            for column, value in row.items():
                (free if roles[column] is ColumnRole.SEMANTIC else bound).add(value)
    given = {value for value in _given(writes) if isinstance(value, str)}
    return {value for value in given & free if value not in bound and isinstance(value, str)}


def _given(writes: Sequence[ToolCall]) -> set[JsonValue]:
    return {value for call in writes for value in call.arguments.values()}


def _expected(table: Table, diff: TableDiff, given: set[JsonValue]) -> TableChange:
    return TableChange(
        added=tuple(_added(table, row, given) for row in diff.added),
        changed=tuple(
            ChangedRow(key=changed.key, values={name: changed.after[name] for name in sorted(changed.columns)})
            for changed in diff.changed
        ),
        removed=tuple(tuple(row[name] for name in table.key) if table.key else row for row in diff.removed),
    )


def _added(table: Table, row: Mapping[str, JsonValue], given: set[JsonValue]) -> dict[str, JsonValue]:
    """A new row without free texts, and without a number that the system gave it."""
    numbered = row_id(table.document())
    left_out = {column.name for column in table.columns if column.role in _FREE}
    if numbered and row.get(numbered) not in given:
        left_out.add(numbered)
    return {name: value for name, value in row.items() if name not in left_out}


def _texts(change: Change, tables: Tables, given: set[JsonValue]) -> Iterator[str]:
    """Queries that are true where each free text that was to be written says something."""
    for name, diff in change.items():
        table = tables[name]
        free = [column for column in table.columns if column.role is ColumnRole.SEMANTIC]
        for row in diff.added:
            conditions = _conditions(_added(table, row, given))
            yield from (_says_something(table, column, conditions) for column in free if row[column.name] in given)
        for changed in diff.changed:
            conditions = _conditions(dict(zip(table.key, changed.key, strict=True)))
            for column in free:
                if column.name in changed.columns and changed.after[column.name] in given:
                    yield _says_something(table, column, conditions)


def _says_something(table: Table, column: Column, conditions: str) -> str:
    where = f'{conditions} AND length(trim("{column.name}")) >= {MIN_TEXT}'
    return f'SELECT EXISTS(SELECT 1 FROM "{table.name}" WHERE {where})'


def _conditions(values: Mapping[str, JsonValue]) -> str:
    return " AND ".join(f'"{name}" IS {literal(value)}' for name, value in values.items()) or "1"


def literal(value: JsonValue) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
