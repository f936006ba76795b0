"""A company as a task author sees it: its world ready to be played, and goals and entities in neutral names."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.generators.business.blueprint import Entity, Goal, Step
from envsynth.generators.business.compose import Company
from envsynth.generators.business.words import braces
from envsynth.models import Table, Tool, ToolCall, World
from envsynth.runtime.worlds.authority import open_database
from envsynth.runtime.worlds.episode import WorldModel

Values = Mapping[str, JsonValue]
"""Variables of a goal, in neutral names."""
_VARIABLE = re.compile(r"\$([a-z][a-z0-9_]*)")
_PEOPLE = 12
"""Colleagues who may ask for something."""


@dataclass(frozen=True)
class Scene:
    """Everything that tasks of one world are made from. Never changed; shared by all tasks of the world."""

    company: Company

    @property
    def world(self) -> World:
        """In the industry's names."""
        return self.company.world

    @property
    def goals(self) -> Mapping[str, Goal]:
        """In neutral names."""
        return self.company.goals

    @property
    def entities(self) -> Mapping[str, Entity]:
        """In neutral names."""
        return self.company.entities

    @property
    def processes(self) -> Mapping[str, tuple[str, ...]]:
        """Goals by process."""
        return self.company.industry.processes

    @property
    def today(self) -> str:
        """ISO date of the world's clock."""
        return self.world.clock[:10]

    @cached_property
    def model(self) -> WorldModel:
        """The world, ready to be played."""
        return WorldModel(self.world.document())

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """By name."""
        return {table.name: table for table in self.world.tables}

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """By name."""
        return {tool.name: tool for tool in self.world.tools}

    @cached_property
    def reader(self) -> Reader:
        """Queries over the initial state."""
        return Reader(self.company, self.model.image)

    @cached_property
    def people(self) -> tuple[str, ...]:
        """Full names of colleagues; nobody in the world is called so."""
        known = {value for rows in self.world.rows.values() for row in rows for value in row if isinstance(value, str)}
        pool = [name for name in self.company.country.pool("name") if name not in known]
        return tuple(pool[:: max(1, len(pool) // _PEOPLE)][:_PEOPLE])

    def rename(self, word: str) -> str:
        """A neutral name in the industry's; any other stays."""
        return self.company.renamer.name(word)

    def call(self, step: Step, values: Values) -> ToolCall:
        """A step with the goal's variables filled in, in the industry's names.

        Raises:
            GeneratorError: it names a variable that the goal's pick does not give.
        """
        given = {name: self._argument(value, values) for name, value in step.arguments.items()}
        tool, arguments = self.company.renamer.call(step.tool, given)
        return ToolCall(tool=tool, arguments=arguments)

    def filled(self, text: str, values: Values) -> str:
        """A text with its braces filled: variables first, then words and settings.

        Raises:
            GeneratorError: there is no such word.
        """
        return self.company.speaker.say(text, values)

    def _argument(self, value: JsonValue, values: Values) -> JsonValue:
        if not isinstance(value, str):
            return value
        name = variable_of(value)
        if not name:
            return self.filled(value, values)
        if name not in values:
            raise GeneratorError("a step names a variable that its goal does not pick", where=f"${name}")
        return values[name]


class Reader:
    """Queries over the initial state of a world, with `:now` and a goal's variables."""

    def __init__(self, company: Company, image: bytes) -> None:
        self._company = company
        self._connection = open_database()
        self._connection.deserialize(image)
        self._neutral = {own: word for word, own in company.renamer.names.items()}
        self._kept: dict[str, list[dict[str, JsonValue]]] = {}

    def targets(self, goal: Goal) -> list[dict[str, JsonValue]]:
        """Everything that a goal may be about."""
        if goal.id not in self._kept:
            self._kept[goal.id] = self.rows(goal.pick)
        return self._kept[goal.id]

    def rows(self, sql: str, values: Values | None = None, *, limit: int = 0) -> list[dict[str, JsonValue]]:
        """Rows of a query in neutral names; columns named as they are there.

        Args:
            sql: may hold `$name` of `values`.
            values: variables, in neutral names.
            limit: so many rows at most; 0: all.

        Raises:
            GeneratorError: the query is not possible.
        """
        bound = {self._company.renamer.name(name): value for name, value in (values or {}).items()}
        cursor = self._run(self._company.dress(sql), bound)
        names = [self._neutral.get(line[0], line[0]) for line in cursor.description]
        found = cursor.fetchmany(limit) if limit else cursor.fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def value(self, expression: str, values: Values) -> JsonValue:
        """The value of an expression over variables, in neutral names."""
        return next(iter(self.rows(f"SELECT {expression}", values)[0].values()))

    def dressed(self, sql: str, bound: Values | None = None) -> list[tuple[JsonValue, ...]]:
        """Rows of a query in the industry's names."""
        return self._run(sql, bound or {}).fetchall()

    def _run(self, sql: str, bound: Values) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, {**bound, "now": self._company.world.clock})
        except sqlite3.Error as exc:
            raise GeneratorError("a query of a blueprint is not possible", where=sql[:120], cause=str(exc)) from exc


def variable_of(value: JsonValue) -> str:
    """Name of the variable that an argument is, or empty."""
    found = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else ""


def variables_in(text: str) -> Sequence[str]:
    """Names of the `$variables` of an expression, each once."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


__all__ = ["Reader", "Scene", "Values", "braces", "variable_of", "variables_in"]
