"""The process rubric of a plan: what a careful person does on the way, in SQL over the trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import JsonValue

from envsynth.generators.business.changes import literal
from envsynth.generators.business.plans import Plan, SubGoal
from envsynth.generators.business.scene import Scene
from envsynth.models import Criterion, ToolCall, ToolKind
from envsynth.runtime.contract import Grade

LEAST, MOST = 6, 12
"""Criteria of a rubric."""


class Conversation(NamedTuple):
    """What a rubric asks of tasks with somebody on the line."""

    ask: str
    tell: str
    """Tools."""
    topics: tuple[str, ...]
    """That must be asked."""


def criteria(scene: Scene, plan: Plan, conversation: Conversation | None = None) -> tuple[Criterion, ...]:
    """Every criterion that can apply to a plan.

    Args:
        scene: the world.
        plan: with targets, pages and distractors.
        conversation: where somebody is on the line.
    """
    values = _fields(scene, plan, conversation)
    found = []
    for name, line in _table().items():
        if any(not values.get(need) for need in line["needs"]):
            continue
        text = {key: line[key].format_map(values) for key in ("sql", "evidence")}
        told = all(part.told <= line.get("told_below", -1) and not part.goal.refuses for part in plan.parts)
        kind = "important" if told else line["class"]
        found.append(Criterion.model_validate({"id": name, "class": kind, "text": line["text"], **text}))
    return tuple(found)


def telling(rubric: Sequence[Criterion], grades: Iterable[Grade]) -> tuple[Criterion, ...]:
    """Those that some trajectory of the panel meets and some other does not, `MOST` at most.

    Args:
        rubric: graded.
        grades: of every trajectory of the panel.
    """
    verdicts: dict[str, set[bool]] = {line.id: set() for line in rubric}
    for grade in grades:
        for name, met in grade.criteria.items():
            if met is not None:
                verdicts[name].add(met)
    return tuple(line for line in rubric if len(verdicts[line.id]) == 2)[:MOST]


@cache
def _table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("rubric.yaml").read_text("utf-8"))
    return found


def _fields(scene: Scene, plan: Plan, conversation: Conversation | None) -> dict[str, str]:
    """What stands for the braces; empty where there is nothing."""
    talking = (conversation.ask, conversation.tell) if conversation else ()
    writes = [
        tool.name for tool in scene.world.tools
        if tool.kind in (ToolKind.WRITE, ToolKind.CLOCK) and tool.name not in talking
    ]  # fmt: skip
    page = scene.rename("page")
    return {
        "targets": _values(_target(scene, call, _keys(part)) for part in plan.parts for call in part.writes),
        "pages": _values(
            (_page(scene, part), *_target(scene, part.writes[0], _keys(part)))
            for part in plan.parts
            if part.goal.policy
        ),
        "verified": _values((part.writes[-1].tool, look.tool) for part in plan.parts for look in part.verify),
        "order": _values(pair for part in plan.parts for pair in _pairs(scene, part)),
        "near": _values(_near(scene, plan)),
        "breaches": _values(_breaches(scene, plan)),
        "reads": _list(tool.name for tool in scene.world.tools if tool.kind is ToolKind.READ),
        "writes": _list(writes),
        "read_page": literal(scene.rename("read_page")),
        "page": literal(f"$.{page}"),
        "calls": str(len(plan.calls)),
        "ask": literal(conversation.ask) if conversation else "",
        "tell": literal(conversation.tell) if conversation else "",
        "topics": _values((topic,) for topic in conversation.topics) if conversation else "",
    }


Row = tuple[JsonValue, ...]


def _target(scene: Scene, call: ToolCall, keys: Mapping[str, JsonValue]) -> Row:
    """The argument by which a write says what it is about: tool, JSON path, value."""
    values = list(keys.values())
    for parameter in scene.tools[call.tool].parameters:
        value = call.arguments.get(parameter.name)
        if value in values and not isinstance(value, bool):
            return call.tool, f"$.{parameter.name}", value
    name = next(iter(call.arguments), "")
    return call.tool, f"$.{name}", call.arguments.get(name)


def _keys(part: SubGoal) -> dict[str, JsonValue]:
    return {name: part.values[name] for name in part.goal.about}


def _page(scene: Scene, part: SubGoal) -> str:
    return scene.company.renamer.page(part.goal.policy)


def _pairs(scene: Scene, part: SubGoal) -> Iterator[Row]:
    """Writes that follow each other, where both are about the same thing."""
    for first, second in zip(part.writes, part.writes[1:], strict=False):
        one, two = _target(scene, first, _keys(part)), _target(scene, second, _keys(part))
        if first.tool != second.tool and one[1:] == two[1:]:
            yield first.tool, second.tool, one[1], one[2]


def _near(scene: Scene, plan: Plan) -> Iterator[Row]:
    right = {_target(scene, call, _keys(part)) for part in plan.parts for call in part.writes}
    for part in plan.parts:
        for near in part.near:
            keys = {name: near[name] for name in part.goal.about}
            for step in part.goal.writes:
                row = _target(scene, scene.call(step, near), keys)
                if row not in right:
                    yield row


def _breaches(scene: Scene, plan: Plan) -> Iterator[Row]:
    right = {_target(scene, call, _keys(part)) for part in plan.parts for call in part.writes}
    for part in plan.parts:
        for steps in part.goal.forbidden:
            for step in steps:
                row = _target(scene, scene.call(step, part.values), _keys(part))
                if row not in right:
                    yield row


def _values(rows: Iterable[Row]) -> str:
    """Rows of a VALUES clause, each once."""
    return ", ".join(dict.fromkeys(f"({', '.join(map(literal, row))})" for row in rows))


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(literal, names))
