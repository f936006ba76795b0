"""A world under other names: every name, text and word that an agent reads is another one, the rows stay.

Mechanisms wear skins and business worlds wear industries; both are written in neutral names first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

# A quoted string, or a word; words inside strings are data.
_TOKEN = re.compile(r"'(?:[^']|'')*'|[a-z_][a-z0-9_]*", re.IGNORECASE)


def _same(value: JsonValue) -> JsonValue:
    return value


def _as_written(key: str, text: str) -> str:
    return text


class Wording(NamedTuple):
    """How a world is to read."""

    rename: Callable[[str], str]
    """Neutral name → its own; KeyError or the same where there is none."""
    sql: Callable[[str], str]
    """A statement in neutral names → in its own."""
    say: Callable[[str], str]
    """Fills a text in."""
    told: Callable[[str, str], str] = _as_written
    """The text that stands for `tool.NAME`, `parameter.TOOL.NAME` (neutral names), and the world's own text."""
    value: Callable[[JsonValue], JsonValue] = _same
    """A neutral word of an enumerated column or parameter → its own."""
    unit: Callable[[str], str] = str


def rename_world(world: World, wording: Wording, name: str) -> World:
    """The world under other names.

    Args:
        world: in neutral names.
        wording: what it is to look like.
        name: the new world's id.
    """
    rename, sql, say = wording.rename, wording.sql, wording.say
    stated = {table.name: rename(table.name) for table in world.tables}

    def where(stated_in: str) -> str:
        table, slash, page = stated_in.partition("/")
        return stated.get(table, table) + slash + page

    return World(
        id=name, clock=world.clock,
        tables=tuple(_table(table, wording) for table in world.tables),
        rows={rename(table.name): _rows(table, world, wording) for table in world.tables if table.name in world.rows},
        tools=tuple(_tool(tool, wording) for tool in world.tools),
        invariants=tuple(
            found.model_copy(update={"sql": sql(found.sql), "stated_in": where(say(found.stated_in))})
            for found in world.invariants
        ),
        over=sql(world.over),
    )  # fmt: skip


def _table(table: Table, wording: Wording) -> Table:
    columns = tuple(_column(column, wording) for column in table.columns)
    return Table(
        name=wording.rename(table.name), doc=wording.say(table.doc), columns=columns, hidden=table.hidden,
        tolerated=table.tolerated,
    )  # fmt: skip


def _column(found: Column, wording: Wording) -> Column:
    rename = wording.rename
    target = ".".join(rename(part) for part in found.references.split(".")) if found.references else ""
    update = {
        "name": rename(found.name), "references": target, "doc": wording.say(found.doc),
        "unit": wording.unit(found.unit), "enum": tuple(map(wording.value, found.enum)),
    }  # fmt: skip
    return found.model_copy(update=update)


def _rows(table: Table, world: World, wording: Wording) -> tuple[tuple[JsonValue, ...], ...]:
    rows = world.rows[table.name]
    worded = [number for number, column in enumerate(table.columns) if any(isinstance(v, str) for v in column.enum)]
    if not worded or wording.value is _same:
        return rows
    found = []
    for row in rows:
        values = list(row)
        for number in worded:
            values[number] = wording.value(values[number])
        found.append(tuple(values))
    return tuple(found)


def _parameter(found: Parameter, tool: str, wording: Wording) -> Parameter:
    doc = wording.say(wording.told(f"parameter.{tool}.{found.name}", found.doc))
    enum = tuple(map(wording.value, found.enum))
    return found.model_copy(update={"name": wording.rename(found.name), "doc": doc, "enum": enum})


def _tool(found: Tool, wording: Wording) -> Tool:
    rename, sql, say = wording.rename, wording.sql, wording.say
    each = found.each and Each(
        parameter=rename(found.each.parameter),
        fields=tuple(_parameter(field, found.name, wording) for field in found.each.fields),
        maximum=found.each.maximum,
    )
    return Tool(
        name=rename(found.name), kind=found.kind, doc=say(wording.told(f"tool.{found.name}", found.doc)),
        parameters=tuple(_parameter(one, found.name, wording) for one in found.parameters), each=each,
        guards=tuple(Guard(sql=sql(guard.sql), error=say(guard.error)) for guard in found.guards),
        effects=tuple(map(sql, found.effects)), result=sql(found.result), shape=found.shape,
        decimals={rename(column): digits for column, digits in found.decimals.items()}, cost=found.cost,
    )  # fmt: skip


def names_of(world: World) -> Iterator[str]:
    """Every name of tables, columns, tools, parameters and fields, as often as it stands there."""
    for table in world.tables:
        yield table.name
        yield from (column.name for column in table.columns)
    for tool in world.tools:
        yield tool.name
        yield from (parameter.name for parameter in tool.parameters)
        yield from (field.name for field in tool.each.fields) if tool.each else ()


def checked_names(needed: Iterable[str], names: Mapping[str, str], *, who: str, where: str) -> Mapping[str, str]:
    """The names that are needed, each with its own.

    Raises:
        GeneratorError: one is missing, or two are called the same.
    """
    wanted = sorted(set(needed))
    missing = [word for word in wanted if word not in names]
    if missing:
        raise GeneratorError(f"{who} has no name for {', '.join(missing)}", where=where, next_step="add them")
    for one, other in same_names({word: names[word] for word in wanted}):
        raise GeneratorError(f"{who} calls {one} and {other} the same", where=where)
    return {word: names[word] for word in wanted}


def same_names(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of words that would be called the same."""
    taken: dict[str, str] = {}
    for word, own in names.items():
        other = taken.setdefault(own, word)
        if other != word:
            yield other, word


def sql_renamer(rename: Callable[[str], str], string: Callable[[str], str] = str) -> Callable[[str], str]:
    """What puts statements into other names.

    Args:
        rename: a word → another; KeyError or the same where it is no name.
        string: a string, with its quotes → another.
    """

    def word(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith("'"):
            return string(text)
        try:
            return rename(text)
        except KeyError:
            return text

    return lambda sql: _TOKEN.sub(word, sql)
