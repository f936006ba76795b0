"""How trajectories end: what of it counts, and where the values that led there were to be found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.stage import Played
from envsynth.models import ColumnRole, Table, ToolCall, World
from envsynth.models.base import canonical_json
from envsynth.models.world import Parameter
from envsynth.runtime.worlds.image import row_id
from envsynth.runtime.worlds.states import Row, TableDiff

__all__ = ["Unfounded", "signature", "unfounded"]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")
SHORTEST = 3
"""Characters of a part of a name that somebody must have told."""
_FREE = (ColumnRole.SEMANTIC, ColumnRole.EXEMPT)

Changes = Mapping[str, TableDiff]


class Unfounded(NamedTuple):
    """A value that a call needs and that nobody told."""

    tool: str
    parameter: str
    value: JsonValue


def signature(world: World, played: Played, changes: Changes) -> str:
    """What of an end counts: equal texts are equal ends, up to free texts and numbers that the system gives."""
    tables = {table.name: table for table in world.tables}
    found = {name: _table_signature(tables[name], diff) for name, diff in changes.items()}
    return canonical_json([{name: one for name, one in found.items() if any(one)}, dict(played.ending.answer)])


def _table_signature(table: Table, diff: TableDiff) -> list[list[str]]:
    free = {column.name for column in table.columns if column.role in _FREE}
    numbered = row_id(table.document())
    added = sorted(_text(row, free | {numbered}) for row in diff.added)
    removed = sorted(_text(row, free) for row in diff.removed)
    changed = [
        canonical_json([list(one.key), {name: one.after[name] for name in sorted(one.columns - free)}])
        for one in diff.changed
        if one.columns - free
    ]
    return [added, removed, sorted(changed)]


def _text(row: Row, left_out: set[str]) -> str:
    return canonical_json({name: value for name, value in row.items() if name not in left_out})


def unfounded(world: World, told: str, played: Played, changes: Changes) -> Iterator[Unfounded]:
    """Values of calls that neither the instruction told nor an earlier answer showed.

    Texts that name a row, or a part of such a name, must be found as they are, and so must texts that end in a compared
    column and whole numbers that name a row. Amounts and days may be worked out.

    Args:
        world: in which it was played.
        told: what the agent knows before the first call.
        played: the reference.
        changes: of its end.
    """
    seen = told.casefold()
    names, numbers = _names(world)
    written = _written(world, changes)
    for call, answer in zip(played.calls, played.answers, strict=True):
        for parameter in _parameters(world, call):
            value = call.arguments.get(parameter.name)
            if value is None or parameter.enum or _is_found(value, seen):
                continue
            text = isinstance(value, str) and not _DAY.fullmatch(value) and (value in written or _is_part(value, names))
            number = type(value) is int and value in numbers.get(parameter.name, ())
            if text or number:
                yield Unfounded(call.tool, parameter.name, value)
        seen += json.dumps(answer.result, ensure_ascii=False).casefold()


def _is_part(value: str, names: set[str]) -> bool:
    """Whether a text is a name, or long enough a part of one to be looked up by."""
    part = value.casefold()
    return value in names or (len(part) >= SHORTEST and any(part in name.casefold() for name in names))


def _is_found(value: JsonValue, seen: str) -> bool:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)[1:-1].casefold() in seen or value.casefold() in seen
    return re.search(rf"(?<![\d.]){re.escape(str(value))}(?![\d])", seen) is not None


def _parameters(world: World, call: ToolCall) -> Sequence[Parameter]:
    return next((tool.parameters for tool in world.tools if tool.name == call.tool), ())


def _names(world: World) -> tuple[set[str], dict[str, set[JsonValue]]]:
    """Texts that compared columns hold at the start, and whole numbers that name rows, by what a parameter calls them.

    A parameter names a row where it is called like the key, like a column that refers to it, or like the table.
    """
    texts: set[str] = set()
    numbers: dict[str, set[JsonValue]] = {}
    for table in world.tables:
        rows = world.rows.get(table.name, ())
        for place, column in enumerate(table.columns):
            values = {row[place] for row in rows if not isinstance(row[place], list | dict)}
            if column.role not in _FREE:
                texts |= {value for value in values if isinstance(value, str)}
            if column.role is ColumnRole.KEY or column.references:
                whole = {value for value in values if type(value) is int}
                for name in {column.name, table.name.removesuffix("s"), f"{table.name.removesuffix('s')}_id"}:
                    if column.role is ColumnRole.KEY or name == column.name:
                        numbers.setdefault(name, set()).update(whole)
    return texts, numbers


def _written(world: World, changes: Changes) -> set[JsonValue]:
    """Texts that the end holds in compared columns and the start did not."""
    tables = {table.name: table for table in world.tables}
    found: set[JsonValue] = set()
    for name, diff in changes.items():
        compared = {column.name for column in tables[name].columns if column.role not in _FREE}
        rows = [*diff.added, *({name: one.after[name] for name in one.columns} for one in diff.changed)]
        found |= {value for row in rows for name, value in row.items() if name in compared and isinstance(value, str)}
    return found
