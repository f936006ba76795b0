"""From recipes to rows: one table after the other, every draw from the table's own stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import repeat
from random import Random
from typing import NamedTuple, TypeVar

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.generators.business.blueprint import Recipe, Rows, Service
from envsynth.generators.business.countries import Country
from envsynth.generators.business.scratch import Row, Scratch, numbered
from envsynth.models import Column, Table
from envsynth.seeds import stream

_ALIASES = {"email": "ascii_safe_email"}
"""Providers that stand for others: addresses that cannot be anybody's."""
_BRACES = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


T = TypeVar("T")


class Home(NamedTuple):
    """What rows depend on besides their recipes."""

    seed: str
    """Of the world."""
    country: Country
    today: date
    lists: Mapping[str, Sequence[Mapping[str, JsonValue]]]
    counts: Mapping[str, tuple[int, int]]
    """Numbers of rows by table, in the place of the recipes' own."""
    say: Callable[[str], str]
    """Fills words and settings in, and leaves other braces."""


Draw = Callable[[Row], JsonValue]
"""A value of a column, given the row so far; `None` is NULL."""


def fill_service(scratch: Scratch, service: Service, home: Home) -> None:
    """Draw the rows of a service, then evaluate its expressions.

    Args:
        scratch: has the tables of the service, and those that it needs filled.
        service: its SQL filled in.
        home: country, day, lists.

    Raises:
        GeneratorError: a recipe cannot be followed; says which.
    """
    tables = {table.name: table for table in service.tables}
    for name, rows in service.rows.items():
        drawer = Drawer(tables[name], rows, scratch, home)
        scratch.insert(tables[name], drawer.rows())
    for name, rows in service.rows.items():
        for column, recipe in rows.columns.items():
            if recipe.sql is not None:
                statement = f'UPDATE "{name}" SET "{column}" = ({recipe.sql})'
                scratch.change(statement, f"service {service.service}, rows.{name}.columns.{column}")


class Drawer:
    """Draws the rows of one table."""

    def __init__(self, table: Table, rows: Rows, scratch: Scratch, home: Home) -> None:
        self._table, self._rows, self._scratch, self._home = table, rows, scratch, home
        self._rng = stream(home.seed, f"rows/{table.name}")
        self._columns = {column.name: column for column in table.columns}
        self._entry: dict[str, Mapping[str, JsonValue]] = {}
        """By list: the entry of the row that is being drawn."""
        self._entries: dict[str, Iterator[Mapping[str, JsonValue]]] = {}
        self._owner: Row = {}
        self._owner_key = ""
        order = in_order(rows.columns, table.name)
        self._draws = [(name, self._draw(name, rows.columns[name])) for name in order]
        own = numbered(table)
        self._number = own if own and own not in rows.columns else ""

    def rows(self) -> list[Row]:
        """All rows."""
        low, high = self._home.counts.get(self._table.name, self._rows.count)
        found: list[Row] = []
        for owner in self._owners():
            self._owner = owner
            for _ in range(self._rng.randint(low, high)):
                self._entry = {}
                row: Row = {self._number: len(found) + 1} if self._number else {}
                for name, draw in self._draws:
                    row[name] = draw(row)
                found.append(row)
        return found

    def _owners(self) -> Sequence[Row]:
        if not self._rows.per:
            return [{}]
        self._owner_key = self._scratch.key(self._rows.per)
        return self._scratch.rows(self._rows.per)

    def _draw(self, name: str, recipe: Recipe) -> Draw:
        draw, share, rng = self._whole(name, recipe), recipe.missing, self._rng
        return (lambda row: None if rng.random() < share else draw(row)) if share else draw

    def _whole(self, name: str, recipe: Recipe) -> Draw:
        kinds: Mapping[str, Callable[[str, Recipe], Draw]] = {
            "serial": self._serial, "faker": self._faker, "choice": self._choice, "integer": self._integer,
            "money": self._money, "days": self._days, "after": self._after, "ref": self._ref, "listed": self._listed,
            "text": self._text,
        }  # fmt: skip
        for kind, make in kinds.items():
            if getattr(recipe, kind) is not None:
                return make(name, recipe)
        fixed = None if recipe.sql is not None else self._home.say(v) if isinstance(v := recipe.value, str) else v
        return lambda row: fixed

    def _serial(self, name: str, recipe: Recipe) -> Draw:
        numbers = iter(range(recipe.serial or 0, 2**62))
        text = self._columns[name].type == "text"
        return lambda row: str(next(numbers)) if text else next(numbers)

    def _faker(self, name: str, recipe: Recipe) -> Draw:
        provider = recipe.faker or ""
        values = _shuffled(self._home.country.pool(_ALIASES.get(provider, provider)), self._rng)
        if provider == "city":
            pool = self._home.country.pool("city")
            return lambda row: self._rng.choice(pool)
        return lambda row: next(values)

    def _choice(self, name: str, recipe: Recipe) -> Draw:
        given, rng, say = recipe.choice, self._rng, self._home.say
        if isinstance(given, Mapping):
            options = [say(word) if isinstance(word, str) else word for word in given]
            weights = list(given.values())
            return lambda row: rng.choices(options, weights)[0]
        values = [say(value) if isinstance(value, str) else value for value in given or ()]
        return lambda row: rng.choice(values)

    def _integer(self, name: str, recipe: Recipe) -> Draw:
        low, high = recipe.integer or (0, 0)
        return lambda row: self._rng.randint(low, high)

    def _money(self, name: str, recipe: Recipe) -> Draw:
        low, high = recipe.money or (0, 0)
        amount = self._home.country.amount
        return lambda row: amount(self._rng.randint(low, high))

    def _days(self, name: str, recipe: Recipe) -> Draw:
        low, high = recipe.days or (0, 0)
        return lambda row: (self._home.today + timedelta(self._rng.randint(low, high))).isoformat()

    def _after(self, name: str, recipe: Recipe) -> Draw:
        column, low, high = recipe.after or ("", 0, 0)
        country, rng = self._home.country, self._rng
        of = self._value_of(column)

        def draw(row: Row) -> JsonValue:
            first = of(row)
            if first is None:
                return None
            days = [date.fromisoformat(str(first)[:10]) + timedelta(number) for number in range(low, high + 1)]
            return rng.choice([day for day in days if country.is_working(day)] or days).isoformat()

        return draw

    def _value_of(self, column: str) -> Draw:
        """A column of the row; or `owner.column`, or `reference.column`: of the row that a column points at."""
        first, dot, rest = column.partition(".")
        if not dot:
            return lambda row: row[first]
        if first == "owner":
            return lambda row: self._owner[rest]
        table, key = self._target(first)
        found = {row[key]: row[rest] for row in self._scratch.rows(table)}
        return lambda row: found.get(row[first])

    def _target(self, column: str) -> tuple[str, str]:
        given = self._rows.columns[column].ref or ""
        given = self._columns[column].references if given == "owner" or not given else given
        table, _, key = given.partition(".")
        return table, key or self._scratch.key(table)

    def _ref(self, name: str, recipe: Recipe) -> Draw:
        if recipe.ref == "owner":
            return lambda row: self._owner[self._owner_key]
        table, _, column = (recipe.ref or "").partition(".")
        keys = [row[column or self._scratch.key(table)] for row in self._scratch.rows(table)]
        if not keys:
            raise GeneratorError("a reference to a table without rows", where=f"{self._table.name}.{name}", cause=table)
        return lambda row: self._rng.choice(keys)

    def _listed(self, name: str, recipe: Recipe) -> Draw:
        which, _, field = (recipe.listed or "").partition(".")
        entries = self._home.lists.get(which, ())
        if not entries:
            raise GeneratorError("the industry has no such list", where=f"{self._table.name}.{name}", cause=which)
        self._entries.setdefault(which, _shuffled(entries, self._rng))
        scale = self._home.country.amount if is_money(self._columns[name]) else None

        def draw(row: Row) -> JsonValue:
            if which not in self._entry:
                self._entry[which] = next(self._entries[which])
            value = self._entry[which].get(field)
            return scale(value) if scale and isinstance(value, int | float) else value

        return draw

    def _text(self, name: str, recipe: Recipe) -> Draw:
        text = self._home.say(recipe.text or "")
        column = self._columns[name]

        def draw(row: Row) -> JsonValue:
            return _of_type(column, _BRACES.sub(lambda found: str(row[found[1]]), text))

        return draw


def is_money(column: Column) -> bool:
    """Whether a column holds amounts of money."""
    return column.unit == "cents" or column.name.endswith("cents")


def in_order(columns: Mapping[str, Recipe], table: str) -> list[str]:
    """Columns, each after those that it is drawn from.

    Raises:
        GeneratorError: they are drawn from each other in a circle, or from one that is not there.
    """
    needs = {name: sorted(_inputs(recipe, columns)) for name, recipe in columns.items()}
    order: dict[str, None] = {}
    for _ in repeat(None, len(columns)):
        ready = [name for name in columns if name not in order and all(one in order for one in needs[name])]
        order.update(dict.fromkeys(ready))
    rest = [name for name in columns if name not in order]
    if rest:
        cause = " → ".join(rest)
        raise GeneratorError("columns are drawn from each other in a circle", where=f"table {table}", cause=cause)
    return list(order)


def _inputs(recipe: Recipe, columns: Mapping[str, Recipe]) -> Iterator[str]:
    if recipe.after is not None:
        first, dot, _ = recipe.after[0].partition(".")
        if not (dot and first == "owner"):
            yield first
    if recipe.text is not None:
        yield from (word for word in _BRACES.findall(recipe.text) if word in columns)


def _shuffled(values: Sequence[T], rng: Random) -> Iterator[T]:
    """The values in a random order, again and again."""
    while True:
        yield from rng.sample(values, len(values))


def _of_type(column: Column, text: str) -> JsonValue:
    """A text of a recipe as its column holds it."""
    if column.type == "integer":
        return int(text)
    return float(text) if column.type == "real" else text
