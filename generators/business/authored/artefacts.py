"""What an author model writes, artefact by artefact: a world, then its tasks.

The order is that of this file. Each artefact is small enough for one answer, is examined the moment it exists, and is
put together with the others into the documents that every author writes: `models.World` and `models.Candidate`. What a
model is asked for has the class's name as the name of its schema.

Of a world, once:   Brief → Schema → Policies → Tools → Rows
Of each task:       Plan → Instruction → Checks → Rubric (→ Hint)

Every world also has the table `pages` (page, title, body), filled from `Policies`, and the read tools `list_pages` and
`read_page`; authors do not write them, and may read `pages` in SQL and call the tools in plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from envsynth.models import Check, Criterion, Invariant, Model, Table, Tool, ToolCall
from envsynth.models.world import Identifier

__all__ = [
    "Brief",
    "Checks",
    "Hint",
    "Instruction",
    "Matter",
    "Mistake",
    "Page",
    "Plan",
    "Policies",
    "Rows",
    "Rubric",
    "Schema",
    "Service",
    "Tools",
    "Way",
]

Line = Annotated[str, StringConstraints(min_length=1, max_length=400)]
"""One line of plain words."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
"""A few paragraphs of plain words."""


def _named(value: object) -> object:
    """A mapping `name: {fields}` as a list of documents with a name: authors write either."""
    if isinstance(value, Mapping) and all(isinstance(fields, Mapping) for fields in value.values()):
        return [{"name": name, **fields} for name, fields in value.items()]
    return value


class Service(Model):
    """A part of the organisation's work that has tables and tools of its own."""

    name: Identifier
    does: Line
    """What it keeps track of, and what can be done in it."""


class Matter(Model):
    """A kind of request that people come with; each task is about one of them."""

    name: Identifier
    asks: Line
    """What they want done, and which rule or fact makes it hard."""


class Brief(Model):
    """First of a world: who the organisation is and what happens in it. Everything later follows from it."""

    title: Line
    """Name of the organisation; made up."""
    story: Text
    """What it does, for whom, and how its services depend on each other."""
    agent: Line
    """Whose work the agent does, such as `a clerk at the returns desk`."""
    clock: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$")
    """The moment at which every task begins; `:now` in SQL."""
    money: Line = "none"
    """Currency and minor unit in which amounts are kept, such as `euro, in cents`; `none` where there is no money."""
    services: tuple[Service, ...] = Field(min_length=1, max_length=8)
    matters: tuple[Matter, ...] = Field(min_length=1, max_length=12)
    """Tasks take them in turn."""


class Schema(Model):
    """Second: the tables. Hidden columns, tapes and counters included; `pages` left out."""

    tables: Annotated[tuple[Table, ...], BeforeValidator(_named)] = Field(min_length=1, max_length=24)


class Page(Model):
    """A page of the manual, which the agent can read."""

    page: Identifier
    """Its name, for `read_page`; `pages/NAME` is `stated_in` of its invariants."""
    title: Line
    body: Text
    """The rules that hold, in words, each with the numbers that decide."""


class Policies(Model):
    """Third: the manual, and its rules as SQL.

    An invariant is one SELECT of the rows that violate it. It may read everything, compare with the start
    (`initial.table`) and read the calls (`trace`); `:now` is not bound there. `enforced`: guards of tools keep it.
    Otherwise it is only stated (`stated_in` is `pages/PAGE`), tools let it be broken, and it is checked at the end.
    """

    pages: tuple[Page, ...] = Field(min_length=1, max_length=12)
    invariants: tuple[Invariant, ...] = Field(min_length=1, max_length=20)


class Tools(Model):
    """Fourth: the tools, in SQL; `list_pages` and `read_page` left out."""

    tools: Annotated[tuple[Tool, ...], BeforeValidator(_named)] = Field(min_length=2, max_length=40)


class Rows(Model):
    """Fifth: what stands in the tables at the start."""

    rows: dict[str, tuple[tuple[JsonValue, ...], ...]]
    """By table: lists of values in the order of the table's columns. Tables that start empty may be left out."""


class Way(Model):
    """Another right way to do what a plan wants. Must get 1."""

    label: Identifier
    calls: tuple[ToolCall, ...] = Field(min_length=1)


class Mistake(Model):
    """A plausible wrong way. Must get 0."""

    label: Identifier
    mistake: Line
    """What is wrong with it: what was overlooked, mixed up, or forbidden."""
    calls: tuple[ToolCall, ...] = Field(min_length=1)


class Plan(Model):
    """First of a task: what somebody wants, and how it is done rightly and wrongly. No agent ever sees it."""

    matter: Identifier
    """Name of the brief's matter that it is about."""
    person: Line
    """Who asks, in what situation."""
    wants: Text
    """What they want, in words, with what they leave to the rules of the manual."""
    knows: tuple[Line, ...] = Field(min_length=1, max_length=12)
    """Facts that only they know and have to tell, each with its values: which order, whose account, which amount."""
    reference: tuple[ToolCall, ...] = Field(min_length=2, max_length=40)
    """Every call of a careful agent, in order: what it looks up first, the pages it reads, what it writes."""
    alternatives: tuple[Way, ...] = Field(default=(), max_length=6)
    wrong: tuple[Mistake, ...] = Field(min_length=3, max_length=12)
    """Each can be played; one does nothing but read, one takes the wrong target, one breaks a stated rule if any."""


class Instruction(Model):
    """Second of a task: what the agent is told, as the person would say it."""

    text: str = Field(min_length=40, max_length=3000)


class Checks(Model):
    """Third of a task: what grades the end of an episode; written without sight of the plan."""

    checks: tuple[Check, ...] = Field(min_length=1, max_length=12)


class Rubric(Model):
    """Fourth of a task: what a careful agent does on the way, in SQL over the trace."""

    criteria: tuple[Criterion, ...] = Field(min_length=3, max_length=12)


class Hint(Model):
    """Fifth of a free task: what somebody who knows the way would say, in a few sentences."""

    text: str = Field(min_length=20, max_length=1500)
