"""Every text of a document that has braces, with where it stands and which braces it fills itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsynth.generators.business.blueprint import Goal, Service
from envsynth.models import Tool

Place = tuple[str | int, ...]
Texts = Iterator[tuple[Place, str, frozenset[str]]]
_WORD = re.compile(r"[a-z_][a-z0-9_]*")


def service_texts(service: Service) -> Texts:
    """Texts and SQL of a service."""
    none: frozenset[str] = frozenset()
    yield ("title",), service.title, none
    yield ("page",), service.page, none
    for number, table in enumerate(service.tables):
        yield ("tables", number), table.doc, none
        yield from ((("tables", number, "columns", place), one.doc, none) for place, one in enumerate(table.columns))
    for name, rows in service.rows.items():
        for column, recipe in rows.columns.items():
            place = ("rows", name, "columns", column)
            given = [*(recipe.choice or ()), recipe.value, recipe.sql]
            yield from ((place, text, none) for text in given if isinstance(text, str))
            yield place, recipe.text or "", frozenset(rows.columns)
    for kind in ("derive", "traps"):
        yield from (((kind, number), sql, none) for number, sql in enumerate(getattr(service, kind)))
    for tool in service.tools:
        yield from ((("tools", tool.name, *place), text, none) for place, text in tool_texts(tool))
    yield from ((("invariants", number), one.sql, none) for number, one in enumerate(service.invariants))
    for number, entity in enumerate(service.entities):
        yield ("entities", number), entity.noun, none
        yield from ((("entities", number), one.phrase, frozenset({"value"})) for one in entity.attributes)
    for goal in service.goals:
        yield from ((("goals", goal.id, *place), text, more) for place, text, more in goal_texts(goal))


def tool_texts(tool: Tool) -> Iterator[tuple[Place, str]]:
    """Texts and SQL of a tool."""
    yield ("doc",), tool.doc
    yield ("result",), tool.result
    for number, parameter in enumerate((*tool.parameters, *(tool.each.fields if tool.each else ()))):
        yield ("parameters", number), parameter.doc
    for number, guard in enumerate(tool.guards):
        yield ("guards", number), guard.sql
        yield ("guards", number), guard.error
    yield from ((("effects", number), effect) for number, effect in enumerate(tool.effects))


def goal_texts(goal: Goal) -> Texts:
    """Texts and SQL of a goal; phrasings and arguments may name its variables."""
    none: frozenset[str] = frozenset()
    variables = frozenset(_WORD.findall(goal.pick.lower())) | frozenset(goal.about)
    yield ("title",), goal.title, variables
    yield ("matter",), goal.matter, none
    yield ("pick",), goal.pick, none
    yield ("near",), goal.near, none
    yield from ((("computed", name), sql, none) for name, sql in goal.computed.items())
    for mutant, changes in goal.wrong.items():
        yield from ((("wrong", mutant), sql, none) for sql in changes.values())
    for level, phrasings in goal.says.items():
        yield from ((("says", str(level)), text, variables) for text in phrasings)
    for kind in ("reads", "writes"):
        for number, step in enumerate(getattr(goal, kind)):
            yield from (((kind, number), v, variables) for v in step.arguments.values() if isinstance(v, str))
    yield from ((("verify",), v, variables) for v in goal.verify.arguments.values() if isinstance(v, str))
    for plan, steps in enumerate(goal.forbidden):
        for number, step in enumerate(steps):
            place = ("forbidden", plan, number)
            yield from ((place, v, variables) for v in step.arguments.values() if isinstance(v, str))
