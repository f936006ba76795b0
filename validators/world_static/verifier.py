"""Whether a world task's verifier can be evaluated, and asks for anything at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from envsynth.errors import SandboxError
from envsynth.models import Candidate, ChangedRow, Check, Finding, Table, TableChange, World
from envsynth.models.world import Column, ColumnRole, ColumnType
from envsynth.runtime.worlds.checks import diff_fault, equal
from envsynth.runtime.worlds.grading import Ending, WorldDatabase
from envsynth.validators.worlds.opened import Opened

_TYPES: Mapping[ColumnType, tuple[type, ...]] = {
    ColumnType.INTEGER: (int,),
    ColumnType.REAL: (int, float),
    ColumnType.TEXT: (str,),
}


def verifier_findings(candidate: Candidate, open_: Opened) -> Iterator[Finding]:
    """What is wrong with checks, invariants, rubric and utility, each evaluated on the untouched world."""
    image = open_.model.image
    database = WorldDatabase(Ending(open_.model.document, image, image, (), {}))
    try:
        database.seal()
        yield from _evaluated(candidate, open_.world, database)
    finally:
        database.close()
    for check in candidate.verifier.checks:
        if check.kind == "diff":
            yield from (
                Finding(rule="diff_impossible", message=fault, where=f"check {check.id}")
                for fault in diff_faults(check, open_.world)
            )


def _evaluated(candidate: Candidate, world: World, database: WorldDatabase) -> Iterator[Finding]:
    verifier = candidate.verifier
    for check in verifier.checks:
        if check.kind == "sql" and (fault := _value(database, check.sql)[0]):
            yield Finding(rule="check_sql_invalid", message=fault, where=f"check {check.id}")
    yield from _of_invariants(world, database)
    for line in verifier.rubric:
        for fault in (_value(database, line.sql)[0] if line.sql else "", _rows(database, line.evidence)[0]):
            if fault:
                yield Finding(rule="criterion_sql_invalid", message=fault, where=f"criterion {line.id}")
    if verifier.utility is not None:
        if fault := _value(database, verifier.utility.sql, number=True)[0]:
            yield Finding(rule="utility_sql_invalid", message=fault, where="utility")
    elif all(_holds(check, world, database) for check in verifier.checks):
        yield Finding(rule="checks_ask_for_nothing", message="every check holds in the untouched world")


def _of_invariants(world: World, database: WorldDatabase) -> Iterator[Finding]:
    for invariant in world.invariants:
        fault, violated = _rows(database, invariant.sql)
        if fault:
            yield Finding(rule="invariant_sql_invalid", message=fault, where=f"invariant {invariant.id}")
        elif violated:
            message = "the untouched world violates it"
            yield Finding(rule="invariant_violated_at_start", message=message, where=f"invariant {invariant.id}")


def _holds(check: Check, world: World, database: WorldDatabase) -> bool:
    """Whether a check holds in the untouched world; that invariants do is nothing that a task could ask for."""
    if check.kind == "sql":
        return _value(database, check.sql)[1]
    if check.kind == "invariants":
        return True
    tables = [table.document() for table in world.tables]
    return not any(diff_faults(check, world)) and not diff_fault(check.document(), {}, tables, {})


def _value(database: WorldDatabase, sql: str, *, number: bool = False) -> tuple[str, bool]:
    """Why a query has no single value, and whether its first value is true."""
    try:
        rows = database.rows(sql, where="query")
    except SandboxError as exc:
        return exc.cause or exc.what, False
    if database.columns != 1:
        return f"it gives {database.columns} columns, where one is wanted", False
    if number and (len(rows) != 1 or not isinstance(rows[0][0], int | float)):
        return "it gives no number in the untouched world", False
    value = rows[0][0] if rows else None
    return "", isinstance(value, int | float) and value != 0


def _rows(database: WorldDatabase, sql: str) -> tuple[str, bool]:
    """Why a query cannot be evaluated, and whether it gives any row."""
    try:
        return "", bool(database.rows(sql, where="query"))
    except SandboxError as exc:
        return exc.cause or exc.what, False


def diff_faults(check: Check, world: World) -> Iterator[str]:
    """Why nothing that an agent does could be the expected change, or why it is not exact."""
    tables = {table.name: table for table in world.tables}
    for name, change in check.expect.items():
        if name not in tables:
            yield f"there is no table {name}"
        else:
            yield from (f"{name}: {fault}" for fault in _faults_of_table(tables[name], change, world))
    if check.answer is not None:
        yield from _faults_of_answer(check.answer, world)


def _faults_of_table(table: Table, change: TableChange, world: World) -> Iterator[str]:
    columns = {column.name: column for column in table.columns}
    keys = _keys_at_start(table, world)
    hard = {name for name, column in columns.items() if column.role is ColumnRole.HARD}
    for row in change.added:
        yield from _faults_of_values(columns, row)
        if missing := sorted(hard - row.keys()):
            yield f"a new row does not say what {', '.join(missing)} must be"
    for changed in change.changed:
        yield from _faults_of_values(columns, changed.values)
        if not changed.values:
            yield f"the row {changed.key} is expected to change in no column"
        yield from _faults_of_key(table, changed.key, keys)
        yield from _faults_of_tolerance(table, changed, world)
    for gone in change.removed:
        yield from _faults_of_removal(table, gone, keys, world)
    if not table.key and change.changed:
        yield "it has no key: rows are removed and added, and none has a name"


def _faults_of_tolerance(table: Table, changed: ChangedRow, world: World) -> Iterator[str]:
    """A change that a tolerance forgives is none, and cannot be asked for."""
    names = [column.name for column in table.columns]
    for row in world.rows.get(table.name, ()):
        before = dict(zip(names, row, strict=True))
        if [str(before[name]) for name in table.key] == [str(part) for part in changed.key]:
            for column in table.columns:
                value = changed.values.get(column.name)
                if column.tolerance and value is not None and equal(before[column.name], value, column.tolerance):
                    yield f"{column.name} is expected to change by no more than its tolerance: leave it out"


def _faults_of_removal(
    table: Table, gone: tuple[JsonValue, ...] | Mapping[str, JsonValue], keys: frozenset[tuple[str, ...]], world: World
) -> Iterator[str]:
    if table.key:
        if isinstance(gone, Mapping):
            yield f"a row that is gone is named by its key, {', '.join(table.key)}"
        else:
            yield from _faults_of_key(table, gone, keys)
        return
    if not isinstance(gone, Mapping):
        yield "it has no key: a row that is gone is named by its values, by column"
        return
    names = [column.name for column in table.columns]
    wanted = {column.name for column in table.columns if column.role is ColumnRole.HARD}
    if missing := sorted(wanted - gone.keys()):
        yield f"of a row that is gone it is not said what {', '.join(missing)} was"
    elif not any(gone.items() <= dict(zip(names, row, strict=True)).items() for row in world.rows.get(table.name, ())):
        yield f"there is no row {dict(gone)}"


def _faults_of_values(columns: Mapping[str, Column], values: Mapping[str, JsonValue]) -> Iterator[str]:
    for name, value in values.items():
        column = columns.get(name)
        if column is None:
            yield f"there is no column {name}"
        elif value is None:
            if not column.nullable:
                yield f"{name} is never empty"
        elif not isinstance(value, _TYPES[column.type]):
            yield f"{name} is of type {column.type.value}, and {value!r} is not"
        elif column.enum and value not in column.enum:
            yield f"{name} is never {value!r}"


def _faults_of_key(table: Table, key: tuple[JsonValue, ...], known: frozenset[tuple[str, ...]]) -> Iterator[str]:
    if table.key and tuple(map(str, key)) not in known:
        yield f"no row has the key {', '.join(map(str, key))}"


def _keys_at_start(table: Table, world: World) -> frozenset[tuple[str, ...]]:
    places = [place for place, column in enumerate(table.columns) if column.role is ColumnRole.KEY]
    return frozenset(tuple(str(row[place]) for place in places) for row in world.rows.get(table.name, ()))


def _faults_of_answer(answer: Mapping[str, JsonValue], world: World) -> Iterator[str]:
    submits = [tool for tool in world.tools if tool.kind == "submit"]
    if not submits:
        yield "an answer is expected, and no tool hands one in"
        return
    for tool in submits:
        known = {parameter.name for parameter in tool.parameters}
        needed = {parameter.name for parameter in tool.parameters if parameter.required}
        if needed <= answer.keys() <= known:
            return
    yield f"no tool hands in an answer with just {', '.join(sorted(answer)) or 'nothing'}"
