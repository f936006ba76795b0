"""What comparisons of states forgive: free texts, and numbers that are nearly right. It must not be what decides."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from envsynth.models import Candidate, Column, ColumnRole, Finding, Table, World
from envsynth.models.world import ColumnType

MOST_FORGIVEN = {ColumnType.REAL: 0.05, ColumnType.INTEGER: 0.001}
"""Of what a column holds, or must hold, in the middle: a tolerance is for rounding, and money is kept in integers."""
_UNKNOWN = 100.0
"""Taken for the middle of a column that holds nothing yet."""

_SEMANTIC = (
    "it counts as free text, which no comparison of states looks at, and it is {what}: what can be right or wrong is"
    " `hard`"
)
_TOLERANCE = (
    "a tolerance of {tolerance:g} forgives wrong values where {middle:g} is usual: let it be for rounding, {most:g} at"
    " most, or leave it out"
)


def forgiving_findings(candidate: Candidate, world: World) -> Iterator[Finding]:
    """Columns that an author lets nobody compare although their values are right or wrong."""
    for table in world.tables:
        for place, column in enumerate(table.columns):
            where = f"table {table.name}, column {column.name}"
            if column.role is ColumnRole.SEMANTIC and (what := _kind(column)):
                yield Finding(rule="semantic_no_text", message=_SEMANTIC.format(what=what), where=where)
            if column.tolerance:
                values = _magnitudes(candidate, world, table, place)
                middle = median(values) if values else _UNKNOWN
                if column.tolerance > (most := MOST_FORGIVEN.get(column.type, 0.0) * middle):
                    message = _TOLERANCE.format(tolerance=column.tolerance, middle=middle, most=most)
                    yield Finding(rule="tolerance_too_large", message=message, where=where)


def _kind(column: Column) -> str:
    """Why a column's values are no free texts; empty where they may be."""
    if column.type is not ColumnType.TEXT:
        return "a number"
    if column.references:
        return "the name of a row"
    return "one of a few words" if column.enum else ""


def _magnitudes(candidate: Candidate, world: World, table: Table, place: int) -> list[float]:
    """How large the numbers are that a column must hold at the end; where nothing asks for any, those of the start."""
    name = table.columns[place].name
    changes = [check.expect[table.name] for check in candidate.verifier.checks if table.name in check.expect]
    rows = [row for change in changes for row in (*change.added, *(one.values for one in change.changed))]
    wanted = [row[name] for row in rows if name in row] or [row[place] for row in world.rows.get(table.name, ())]
    return [float(abs(value)) for value in wanted if isinstance(value, int | float) and value]
