"""World: an environment that is a SQLite database plus tools written in SQL. A JSON document, no code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints, field_validator, model_validator

from envsynth.models.base import SCHEMA_VERSION, Digest, Model

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
"""Name of a table, column, tool or parameter."""

RESERVED_TABLES = frozenset({"trace", "answer", "initial", "main", "temp", "json_each", "json_tree"})
"""Names that grading adds to a world's own tables, and those that SQLite makes of JSON."""


def _named(value: Any) -> Any:
    """A mapping `name: {fields}` as a list of documents with a name, so that people can write either."""
    if isinstance(value, Mapping):
        return [{"name": name, **(fields or {})} for name, fields in value.items()]
    return value


class ColumnType(StrEnum):
    """What a column holds. Money is an integer number of minor units."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"


class ColumnRole(StrEnum):
    """How a column counts when end states are compared."""

    KEY = "key"
    """Names the row."""
    HARD = "hard"
    """Must be as expected, within the column's tolerance."""
    SEMANTIC = "semantic"
    """Free text; compared by checks of its own only."""
    EXEMPT = "exempt"
    """Given by the system; never compared."""


class Column(Model):
    """One column of a table."""

    name: Identifier
    type: ColumnType
    role: ColumnRole = ColumnRole.HARD
    hidden: bool = False
    """Whether nothing that an agent sees may read it."""
    doc: str = ""
    unit: str = ""
    """Such as `cents` or `kg`."""
    references: str = Field(default="", pattern=r"^([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)?$")
    """`table.column` that values must be found in."""
    enum: tuple[str | int, ...] = ()
    """The only values it may hold, as a CHECK; empty: any of its type."""
    decimals: int | None = Field(default=None, ge=0, le=12)
    """Digits after the point when an agent is shown a value of a real column."""
    tolerance: float = Field(default=0.0, ge=0)
    """Largest difference that a comparison forgives."""
    nullable: bool = False
    """Whether a row may be without a value: NULL."""


class Table(Model):
    """One table."""

    name: Identifier
    doc: str = ""
    columns: Annotated[tuple[Column, ...], BeforeValidator(_named)] = Field(min_length=1)
    hidden: bool = False
    """Whether nothing that an agent sees may read it, not even its number of rows."""
    tolerated: bool = False
    """Whether changes here never count as collateral, so that read tools may write here."""

    @field_validator("name")
    @classmethod
    def _free(cls, name: str) -> str:
        if name in RESERVED_TABLES or name.startswith("sqlite_"):
            raise ValueError(f"the table name {name!r} is taken by grading or by SQLite")
        return name

    @model_validator(mode="after")
    def _once(self) -> Table:
        _unique("column", (column.name for column in self.columns), where=f"table {self.name}")
        return self

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns."""
        return tuple(column.name for column in self.columns if column.role is ColumnRole.KEY)


class Parameter(Model):
    """One argument of a tool; flat, as every trainer's tool calling takes it."""

    name: Identifier
    type: Literal["string", "integer", "number", "boolean"]
    doc: str = ""
    """What it means, for the agent."""
    enum: tuple[str | int, ...] = ()
    """The only values it takes; empty: any of its type within its bounds."""
    minimum: float | int | None = None
    """Least number, inclusive; None: unbounded, but for the 64 bits of an integer."""
    maximum: float | int | None = None
    """Largest number, inclusive."""
    min_length: int | None = Field(default=None, ge=0)
    """Fewest characters of a text."""
    max_length: int | None = Field(default=None, ge=0)
    """Most characters of a text; None: `runtime.worlds.tools.MAX_TEXT`."""
    required: bool = True
    """Whether a call must have it; NULL in SQL where it is left out."""


class Guard(Model):
    """A condition of a tool."""

    sql: str
    """One SELECT; its first value must be true (NULL, zero and no row are false)."""
    error: str = Field(min_length=1)
    """What the agent is told where it is not."""


class Each(Model):
    """A tool that takes a list: guards and effects run once for every element, in order, all or nothing."""

    parameter: Identifier
    """The string parameter that holds the list as a JSON array of objects."""
    fields: Annotated[tuple[Parameter, ...], BeforeValidator(_named)] = Field(min_length=1)
    """What each element has; bound in guards and effects by name, with `:position` from 0."""
    maximum: int = Field(default=1000, ge=1)
    """Most elements."""


class ToolKind(StrEnum):
    """What a tool may do."""

    READ = "read"
    """Changes nothing but tolerated tables."""
    WRITE = "write"
    CLOCK = "clock"
    """Lets virtual time pass; otherwise as `write`."""
    THINK = "think"
    """Has no SQL at all."""
    SUBMIT = "submit"
    """Ends the episode; its arguments are the answer."""


class Tool(Model):
    """One tool, in SQL over named parameters."""

    name: Identifier
    kind: ToolKind
    doc: str = ""
    """What it does, for the agent."""
    parameters: Annotated[tuple[Parameter, ...], BeforeValidator(_named)] = ()
    each: Each | None = None
    """Where it takes a list."""
    guards: tuple[Guard, ...] = ()
    """Conditions, asked in order before the effects; the first that does not hold refuses the whole call."""
    effects: tuple[str, ...] = ()
    """Statements (INSERT, UPDATE, DELETE, REPLACE), one transaction, rolled back as a whole.

    They may read what is hidden. What they show of it is told as it takes effect, or spends something; and whether the
    database refuses a row must not depend on it, for refusals are free.
    """
    result: str = ""
    """One SELECT in a stated order; empty: the agent is told that it is done."""
    shape: Literal["rows", "row", "json"] = "rows"
    """`rows`: a list of objects; `row`: the first as an object, or null; `json`: the first value, parsed as JSON."""
    decimals: dict[str, int] = Field(default_factory=dict)
    """Digits after the point by result column; before what the table's column says."""
    cost: float = Field(default=0.0, ge=0)
    """What a successful call spends of the budget's cost."""

    @model_validator(mode="after")
    def _fits(self) -> Tool:
        _unique("parameter", (parameter.name for parameter in self.parameters), where=f"tool {self.name}")
        if self.each is not None and self.each.parameter not in {p.name for p in self.parameters if p.type == "string"}:
            raise ValueError(f"tool {self.name}: `each` names no string parameter")
        if self.kind is ToolKind.THINK and (self.effects or self.guards or self.result):
            raise ValueError(f"tool {self.name}: a think tool has no SQL")
        return self


class Invariant(Model):
    """What must hold at the end of every episode."""

    id: Identifier
    sql: str
    """One SELECT of the rows that violate it."""
    enforced: bool = True
    """Whether guards already keep it; else it is only stated, and checked at the end."""
    stated_in: str = ""
    """Where an agent can read it, such as `policies/returns`; demanded where it is not enforced."""

    @model_validator(mode="after")
    def _stated(self) -> Invariant:
        if not self.enforced and not self.stated_in:
            raise ValueError(f"invariant {self.id}: neither enforced nor stated anywhere")
        return self


class World(Model):
    """Tables, rows and tools. Blob of the store: tasks name it by digest."""

    schema_version: int = SCHEMA_VERSION
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    clock: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$")
    """Virtual time at reset (ISO 8601 without zone); `:now` in every statement. No tool sees any other."""
    tables: Annotated[tuple[Table, ...], BeforeValidator(_named)] = Field(min_length=1)
    rows: dict[str, tuple[tuple[JsonValue, ...], ...]] = Field(default_factory=dict)
    """Rows by table, values in the order of the columns."""
    tools: Annotated[tuple[Tool, ...], BeforeValidator(_named)] = Field(min_length=1)
    invariants: tuple[Invariant, ...] = ()
    over: str = ""
    """One SELECT, true once nothing is left to do: the episode then ends with the call that made it so.

    It reads nothing hidden: that an episode goes on is there to be seen. Empty: it ends with a submit tool or, where
    there is none, when the agent stops; the calls of a budget are always finite.
    """

    @model_validator(mode="after")
    def _fits(self) -> World:
        _unique("table", (table.name for table in self.tables), where="the world")
        _unique("tool", (tool.name for tool in self.tools), where="the world")
        widths = {table.name: len(table.columns) for table in self.tables}
        for name, rows in self.rows.items():
            if name not in widths:
                raise ValueError(f"rows of a table that is not there: {name}")
            if any(len(row) != widths[name] for row in rows):
                raise ValueError(f"a row of {name} has not {widths[name]} values")
        return self


class WorldRef(Model):
    """The environment of a task that is played in a world."""

    kind: Literal["world"] = "world"
    world: Digest
    """Blob of the `World` document; many tasks may share one."""
    tells: Literal["nothing", "rows", "instruction"] = "nothing"
    """Where hidden columns are told on purpose: nowhere, in visible rows, or in the instruction. All else is a leak."""


def _unique(what: str, names: Iterable[str], *, where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{where}: two {what}s are called {name}")
        seen.add(name)
