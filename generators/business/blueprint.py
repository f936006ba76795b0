"""The artefacts that an author of business worlds supplies, as typed documents: services, industries, goals.

Data in neutral names. An industry composes services and gives every name, status and noun of theirs a word of its own;
a country brings people, places and money. The blueprint author reads these documents from files; any other author
writes the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from envsynth.models import Guard, Invariant, Model, Table, Tool
from envsynth.models.world import Identifier

VAGUENESS = (0, 1, 2, 3)
"""0 ids, 1 names, 2 descriptions by relation and time, 3 goals whose parameters follow from policy."""


def _named(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"id": name, **(fields or {})} for name, fields in value.items()]
    return value


def _tables(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"name": name, **(fields or {})} for name, fields in value.items()]
    return value


class Recipe(Model):
    """How the values of one column are drawn, row by row; exactly one kind is given."""

    serial: int | None = None
    """First number; each row has the next."""
    faker: str | None = None
    """Name of a Faker provider of the country, such as `name`, `street_address`, `city`, `company`, `phone_number`."""
    choice: dict[str | int, float] | list[JsonValue] | None = None
    """Values with weights, or equally likely ones."""
    integer: tuple[int, int] | None = None
    """Smallest and largest, equally likely."""
    money: tuple[int, int] | None = None
    """Smallest and largest amount in units of about one US cent; scaled to the country's money, in its minor units, and
    rounded to an amount that a price tag would show."""
    days: tuple[int, int] | None = None
    """A date, in days from the world's today: `[-30, -1]` lies in the last month."""
    after: tuple[str, int, int] | None = None
    """A date: column of the same row, and how many days later at least and at most; never a day off work is tried."""
    ref: str | None = None
    """`table` or `table.column`: the key of a row that is already there, equally likely; made before in this service or
    in one that it needs."""
    listed: str | None = None
    """`list.field`: a field of an entry of the industry's list, without repetition while entries last; all columns of a
    row that draw from one list take the same entry."""
    text: str | None = None
    """Text with other columns of the row, settings and words of the industry in braces."""
    sql: str | None = None
    """An expression, evaluated over the row once all rows of the service are there (as in UPDATE t SET c = …)."""
    value: JsonValue = None
    """The same in every row; also for columns that stay NULL."""
    missing: float = Field(default=0.0, ge=0, le=1)
    """Share of rows in which a nullable column stays NULL."""


class Rows(Model):
    """How a table is filled."""

    count: tuple[int, int]
    """Fewest and most rows."""
    per: str = ""
    """A table: `count` rows for each of its rows, whose key is then `{owner}` of `ref: owner` recipes."""
    columns: dict[str, Recipe]
    """By column; each column but self-numbering ones."""


class Attribute(Model):
    """What a person may say of an entity, in the order in which it is tried (Dale and Reiter 1995)."""

    column: str = ""
    """A visible column of the entity's table; or"""
    entity: str = ""
    """another entity,"""
    via: str = ""
    """found by this column of this entity's table (its key there)."""
    phrase: str
    """With `{value}`: how it is said, such as `from {value}` or `delivered {value}`; dates are said as people do at
    vagueness 2 (`yesterday`, `on 3 March`)."""
    head: bool = False
    """Whether it can stand alone as the noun (a person's name)."""
    time: bool = False
    """Whether the column is a date."""


class Entity(Model):
    """Something that instructions refer to."""

    id: Identifier
    table: str
    noun: str
    """With words of the industry in braces: `{order}`."""
    attributes: tuple[Attribute, ...] = Field(min_length=1)
    look_up: tuple[str, dict[str, str]]
    """A read tool by which it is found, with its arguments: `$column` is a value of the entity, `$owner.column` one of
    an entity it is found by."""


class Step(Model):
    """One call of a plan."""

    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """`$name` is a variable of the goal's pick; text may hold `{name}` too."""


class Goal(Model):
    """Something a person may ask for, with everything needed to solve it first and write it down afterwards."""

    id: Identifier
    title: str
    matter: str = ""
    """What somebody on the line says it is about, without a fact and without its end: `a price that should change`."""
    refuses: bool = False
    """Whether the right end is to decline, by a required positive action (escalate, reject with reason)."""
    pick: str
    """One SELECT over the initial state: each row is a possible target, its columns are the goal's variables. Only rows
    where the goal is right, ordered by a key."""
    about: dict[str, str]
    """Entity by variable that holds its key: what the instruction must refer to, `{variable}` in `says`."""
    reads: tuple[Step, ...]
    """Look-ups by which an agent that was told no more than the instruction finds every variable, in order."""
    writes: tuple[Step, ...] = Field(min_length=1)
    """The plan's mutations, in order."""
    verify: Step
    """A read call that shows the result."""
    says: dict[int, tuple[str, ...]]
    """Phrasings by vagueness, with `{variable}`s; those of `about` become referring expressions at 1 and above. Level 3
    names no parameter that the policy decides."""
    policy: str = ""
    """Page of the manual that decides it; demanded at vagueness 3 and for refusals."""
    near: str = ""
    """One SELECT like `pick`, with `$name` of the right target, of plausible wrong ones: the trap one step away, the
    namesake. They are the task's distractors and mutants."""
    computed: dict[str, str] = Field(default_factory=dict)
    """Variables that an agent has to work out, as no read shows them: SQL expression over other variables and settings,
    such as `$price_cents * (100 - {fee_percent}) / 100`, that gives what `pick` gives. Reads show its variables, the
    page its settings."""
    wrong: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Wrong parameters by name of the mutant: variable → SQL expression over the variables, such as `$cents + 1`."""
    forbidden: tuple[tuple[Step, ...], ...] = ()
    """Plans that reach for the same end and break a policy: panel entries with outcome 0."""
    weight: float = Field(default=1.0, gt=0)
    """How often it is drawn, relative to the other goals of a process."""


class Service(Model):
    """One service blueprint."""

    service: Identifier
    title: str
    needs: tuple[str, ...] = ()
    """Services whose tables this one refers to."""
    settings: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Numbers of the policy, one drawn for each world: `{name}` in SQL and texts."""
    tables: Annotated[tuple[Table, ...], BeforeValidator(_tables)]
    rows: dict[str, Rows] = Field(default_factory=dict)
    """By table, in the order in which they are filled."""
    derive: tuple[str, ...] = ()
    """Statements that make the rows coherent, in order, after all rows of the service (sums, statuses by history)."""
    traps: tuple[str, ...] = ()
    """Statements that put rows one step away from a violation (the window closed yesterday, one cent short)."""
    tools: Annotated[tuple[Tool, ...], BeforeValidator(_tables)]
    invariants: tuple[Invariant, ...] = ()
    page: str
    """Its page of the policy manual, with settings and words in braces; says every rule that its goals depend on."""
    entities: Annotated[tuple[Entity, ...], BeforeValidator(_named)] = ()
    goals: Annotated[tuple[Goal, ...], BeforeValidator(_named)] = ()

    @model_validator(mode="after")
    def _page_is_stated(self) -> Service:
        for goal in self.goals:
            if (goal.refuses or 3 in goal.says) and not goal.policy:
                raise ValueError(f"goal {goal.id}: names no page of the manual that decides it")
        return self


class Rule(Model):
    """A rule of the company whose trigger lies in one service and whose target in another."""

    id: Identifier
    trigger: str
    """Service."""
    target: str
    """Another service."""
    states: str
    """The rule as the manual says it, on a page of its own."""
    sql: str
    """One SELECT of the rows that violate it, over the final state (`initial` is attached)."""
    enforced: tuple[str, Guard] | None = None
    """Tool of the target service, and guard that keeps it there, whose error names the rule's page of the manual; None:
    it is only stated, and checked at the end."""
    settings: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Numbers of the rule, one drawn for each world; its statement names each in braces."""
    traps: tuple[str, ...] = ()
    """Statements that put rows one step away from breaking it, after those of all services."""
    goals: Annotated[tuple[Goal, ...], BeforeValidator(_named)] = ()
    """Refusals and detours that the rule makes."""


class Industry(Model):
    """A composition of services with its own vocabulary."""

    industry: Identifier
    title: str
    services: tuple[str, ...] = Field(min_length=4, max_length=7)
    without: tuple[Identifier, ...] = ()
    """Tools of its services that it does without, so that a company has at most 26; goals that call them are none of
    its own. Where somebody is on the line, there are two more to talk with."""
    company: tuple[str, ...] = Field(min_length=4)
    """Patterns of company names, with Faker's `{surname}` and `{city}`."""
    role: str
    """Who the agent is, in one sentence with `{company}`; opens every instruction."""
    names: dict[Identifier, Identifier]
    """Every table, column, tool, parameter and result name of its services → the industry's own; one to one."""
    values: dict[str, str] = Field(default_factory=dict)
    """Statuses and other enumerated texts of its services → its own words."""
    words: dict[str, str]
    """Nouns for braces in texts: `order`, `orders`, `customer`, …"""
    lists: dict[str, tuple[dict[str, JsonValue], ...]] = Field(default_factory=dict)
    """What it deals in: entries with fields, such as name and price (in US cents)."""
    rules: Annotated[tuple[Rule, ...], BeforeValidator(_named)] = Field(min_length=1)
    settings: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    """Replaces settings of its services."""
    counts: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """Replaces numbers of rows by table."""
    processes: dict[Identifier, tuple[str, ...]]
    """Goals by process; `scenario:industry/process` makes tasks of these only."""


def parts_of(services: Sequence[Service], industry: Industry) -> tuple[Service | Rule, ...]:
    """Everything of a company that has settings and goals: its services and its rules."""
    return (*services, *industry.rules)


def steps_of(goal: Goal) -> Iterator[tuple[tuple[str | int, ...], Step]]:
    """All calls of a goal's plans, with where they stand."""
    for kind, steps in (("reads", goal.reads), ("writes", goal.writes)):
        for number, step in enumerate(steps):
            yield (kind, number), step
    yield ("verify",), goal.verify
    for plan, steps in enumerate(goal.forbidden):
        for number, step in enumerate(steps):
            yield ("forbidden", plan, number), step
