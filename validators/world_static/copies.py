"""Hidden columns that stand somewhere else in full: in a visible column, in a text, among the literals of SQL.

Single values stand anywhere by chance. A row of them in the hidden order does not, if there are enough and they are
not too much alike: what counts is how unlikely the run is among the column's own values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log2
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.models import Candidate, Finding, World
from envsynth.models.world import ColumnRole
from envsynth.runtime.worlds.sqltext import tokens
from envsynth.validators.world_static.statements import statements
from envsynth.validators.world_static.texts import shown_texts

MIN_RUN = 6
"""Values in a row; and at least half of the column."""
MIN_BITS = 12.0
"""By which a run is unlikely."""
_STRIDES = (1, 2, 3, 4)
"""A copy may have days, names and such in between."""
_PLAIN = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
_GROUPED = re.compile(r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|(?<![\w.])-?\d+(?:\.\d+)?")
_NUMERAL = re.compile(r"\d+(\.\d+)?")

_MESSAGE = (
    "{number} values in a row are those of hidden {column} ({values}, ...): who reads this knows what is hidden; take"
    " them out, or let the column be visible"
)


class _Secret(NamedTuple):
    """A hidden column's values, in the order of its rows."""

    column: str
    values: tuple[JsonValue, ...]
    bits: dict[JsonValue, float]


class _Place(NamedTuple):
    """Values in a row, that an agent may come to see."""

    where: str
    values: tuple[JsonValue, ...]


def copy_findings(candidate: Candidate, world: World) -> Iterator[Finding]:
    """The first place where each hidden column is copied."""
    secrets = list(_secrets(world))
    if not secrets:
        return
    # What the instruction writes out, or what tables reveal, is meant to be known there, and nowhere else.
    meant = {"instruction": "instruction", "rows": "table "}.get(candidate.world.tells)
    places = [place for place in _places(candidate, world) if meant is None or not place.where.startswith(meant)]
    for secret in secrets:
        for place in places:
            run = _longest_run(secret, place.values)
            if run:
                values = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in run[:3])
                message = _MESSAGE.format(number=len(run), column=secret.column, values=values)
                yield Finding(rule="hidden_copied", message=message, where=place.where)
                break


def _secrets(world: World) -> Iterator[_Secret]:
    for table in world.tables:
        rows = world.rows.get(table.name, ())
        for place, column in enumerate(table.columns):
            if not (table.hidden or column.hidden) or column.role is ColumnRole.KEY or len(rows) < MIN_RUN:
                continue
            values = tuple(map(_plain, (row[place] for row in rows)))
            counted = Counter(values)
            bits = {value: -log2(number / len(values)) for value, number in counted.items()}
            if not _is_progression(values) and sum(map(bits.__getitem__, values)) >= MIN_BITS:
                yield _Secret(f"{table.name}.{column.name}", values, bits)


def _places(candidate: Candidate, world: World) -> Iterator[_Place]:
    for table in world.tables:
        for place, column in enumerate(table.columns):
            if not table.hidden and not column.hidden:
                values = tuple(_plain(row[place]) for row in world.rows.get(table.name, ()))
                yield _Place(f"table {table.name}, column {column.name}", values)
    for shown in shown_texts(candidate, world):
        yield from (_Place(shown.where, values) for values in _numbers(shown.text))
    for tool in world.tools:
        for parameter in (*tool.parameters, *(tool.each.fields if tool.each else ())):
            where = f"tool {tool.name}, parameter {parameter.name}"
            yield _Place(where, tuple(map(_plain, parameter.enum)))
    for statement in statements(world):
        yield _Place(statement.where, tuple(_literals(statement.sql)))


def _numbers(text: str) -> Iterator[tuple[JsonValue, ...]]:
    """The numbers of a text, with commas read as what sets them apart, and as what groups their digits."""
    plain = tuple(float(found) for found in _PLAIN.findall(text))
    yield plain
    grouped = tuple(float(found.replace(",", "")) for found in _GROUPED.findall(text))
    if grouped != plain:
        yield grouped


def _literals(sql: str) -> Iterator[JsonValue]:
    for piece in tokens(sql):
        if piece.kind == "string":
            inner = piece.text[1:-1]
            yield from next(_numbers(inner)) or (inner,)
        elif piece.kind == "other" and _NUMERAL.fullmatch(piece.text):
            yield float(piece.text)


def _longest_run(secret: _Secret, values: Sequence[JsonValue]) -> tuple[JsonValue, ...]:
    """The first run of a secret's values that is long and unlikely enough; empty where there is none."""
    least = max(MIN_RUN, -(-len(secret.values) // 2))
    for stride in _STRIDES:
        for first in range(stride):
            shown = values[first::stride]
            if len(shown) < least or len(secret.bits.keys() & set(shown)) < len(set(secret.values)) // 2:
                continue
            for run in _common_runs(secret.values, shown):
                if len(run) >= least and sum(secret.bits[value] for value in run) >= MIN_BITS:
                    return run
    return ()


def _common_runs(one: Sequence[JsonValue], two: Sequence[JsonValue]) -> Iterator[tuple[JsonValue, ...]]:
    """Every longest run of values that stands in both."""
    before: dict[int, int] = {}
    places: dict[JsonValue, list[int]] = {}
    for place, value in enumerate(two):
        places.setdefault(value, []).append(place)
    for end, value in enumerate(one):
        here = {place: before.get(place - 1, 0) + 1 for place in places.get(value, ())}
        for place, length in before.items():
            if here.get(place + 1, 0) != length + 1:
                yield tuple(one[end - length : end])
        before = here
    yield from (tuple(one[len(one) - length :]) for length in before.values())


def _is_progression(values: Sequence[JsonValue]) -> bool:
    """Whether values go up or down in equal steps, as those of many a visible column do."""
    numbers = [value for value in values if isinstance(value, float)]
    steps = {two - one for one, two in pairwise(numbers)}
    return len(numbers) == len(values) and len(steps) <= 1


def _plain(value: JsonValue) -> JsonValue:
    """A value by which it is compared."""
    return float(value) if isinstance(value, int | float) else value
