"""What can be wrong with goals and entities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from envsynth.generators.business.blueprint import VAGUENESS, Entity, Goal, Step, steps_of
from envsynth.generators.business.prepared import Prepared
from envsynth.generators.business.words import as_names, braces
from envsynth.models import Table, Tool

_VARIABLE = re.compile(r"\$([a-z_][a-z0-9_]*)")

Found = tuple[tuple[str | int, ...], str]
"""Where in the goal's document, and what."""


@dataclass(frozen=True)
class Surroundings:
    """What goals and entities may refer to."""

    tools: Mapping[str, Tool]
    entities: Mapping[str, Entity]
    tables: Mapping[str, Table]
    pages: frozenset[str]
    settings: Sequence[str]
    prepared: Prepared

    def entity_faults(self, entity: Entity) -> Iterator[Found]:
        """What is wrong with an entity."""
        table = self.tables.get(entity.table)
        if table is None:
            yield ("table",), f"there is no table {entity.table}"
            return
        columns = {column.name: column for column in table.columns}
        for number, attribute in enumerate(entity.attributes):
            place = ("attributes", number)
            wanted = attribute.column or attribute.via
            if wanted not in columns:
                yield place, f"there is no column {entity.table}.{wanted}"
            elif columns[wanted].hidden or table.hidden:
                yield place, f"{entity.table}.{wanted} is hidden"
            if attribute.entity and attribute.entity not in self.entities:
                yield place, f"there is no entity {attribute.entity}"
            if "{value}" not in attribute.phrase:
                yield place, "its phrase has no {value}"
        name, arguments = entity.look_up
        tool = self.tools.get(name)
        if tool is None:
            yield ("look_up",), f"it is looked up with {name}, and there is no such tool"
        else:
            yield from ((("look_up",), message) for message in _argument_faults(tool, list(arguments), "look_up"))


def goal_faults(goal: Goal, scope: Surroundings) -> Iterator[Found]:
    """What is wrong with a goal."""
    pick = as_names(goal.pick, scope.settings)
    if fault := scope.prepared.fault(pick):
        yield ("pick",), f"pick: {fault}"
        return
    variables = frozenset(scope.prepared.columns(pick))
    yield from _about_faults(goal, variables, scope)
    for path, step in steps_of(goal):
        for message in _step_faults(step, variables, scope):
            yield path, message
    if goal.policy and goal.policy not in scope.pages:
        yield ("policy",), f"there is no page {goal.policy} of the manual"
    if goal.near and (fault := scope.prepared.fault(as_names(goal.near, scope.settings), variables)):
        yield ("near",), f"near: {fault}"
    yield from _wrong_faults(goal, variables, scope)


def _about_faults(goal: Goal, variables: frozenset[str], scope: Surroundings) -> Iterator[Found]:
    for variable, entity in goal.about.items():
        if variable not in variables:
            yield ("about",), f"about: pick gives no {variable}"
        if entity not in scope.entities:
            yield ("about",), f"about: there is no entity {entity}"
    for level, phrasings in goal.says.items():
        if level not in VAGUENESS:
            yield ("says",), f"there is no vagueness {level}"
        if not phrasings:
            yield ("says",), f"no phrasing at vagueness {level}"
        for text in phrasings:
            for variable in sorted(goal.about.keys() - set(braces(text))):
                message = f"a phrasing does not name {{{variable}}}, and so may be about any {goal.about[variable]}"
                yield ("says", str(level)), message


def _step_faults(step: Step, variables: frozenset[str], scope: Surroundings) -> Iterator[str]:
    tool = scope.tools.get(step.tool)
    if tool is None:
        yield f"there is no tool {step.tool}"
        return
    yield from _argument_faults(tool, list(step.arguments), step.tool)
    enums = {parameter.name: parameter.enum for parameter in tool.parameters}
    for name, value in step.arguments.items():
        if isinstance(value, str):
            named = _VARIABLE.fullmatch(value)
            if named and named[1] not in variables:
                yield f"{step.tool}: pick gives no {named[1]}"
                continue
            if named or "{" in value:
                continue
        given = enums.get(name, ())
        if given and step.tool != "read_page" and value not in given:
            yield f"{step.tool}: {name} is never {value!r}"
        if step.tool == "read_page" and value not in scope.pages:
            yield f"there is no page {value} of the manual"


def _argument_faults(tool: Tool, given: Sequence[str], where: str) -> Iterator[str]:
    known = {parameter.name for parameter in tool.parameters}
    for name in given:
        if name not in known:
            yield f"{where}: {tool.name} has no parameter {name}"
    for parameter in tool.parameters:
        if parameter.required and parameter.name not in given:
            yield f"{where}: {tool.name} wants {parameter.name}"


def _wrong_faults(goal: Goal, variables: frozenset[str], scope: Surroundings) -> Iterator[Found]:
    for variable, expression in goal.computed.items():
        if variable not in variables:
            yield ("computed", variable), f"computed: pick gives no {variable}"
        if fault := scope.prepared.fault(f"SELECT {as_names(expression, scope.settings)}", variables):
            yield ("computed", variable), f"computed: {fault}"
    for mutant, changes in goal.wrong.items():
        for variable, expression in changes.items():
            if variable not in variables:
                yield ("wrong", mutant), f"wrong: pick gives no {variable}"
            statement = f"SELECT {as_names(expression, scope.settings)}"
            if fault := scope.prepared.fault(statement, variables):
                yield ("wrong", mutant), f"wrong: {fault}"
