"""Somebody on the line: a state machine in SQL over facts that are told only when asked for.

It never invents a fact, it protests once where it is told no, and it is the same every time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from envsynth.generators.business import speech
from envsynth.generators.business.instruction import articled, phrases
from envsynth.generators.business.plans import Plan, SubGoal, Unfit, shown
from envsynth.generators.business.scene import Scene, braces
from envsynth.models import ToolCall, World

ASK, TELL = "ask_user", "tell_user"
_UNKNOWN, _TOLD = " 0", " "
"""Keys of what nobody can ask for: a topic has no space. They are too short to be found in any other text."""


class Line(NamedTuple):
    """Somebody on the line, about one plan."""

    scene: Scene
    """The world with the person in it."""
    instruction: str
    facts: Mapping[str, str]
    """What they say, by topic."""

    @property
    def questions(self) -> tuple[ToolCall, ...]:
        """Asking for everything they know."""
        return tuple(ToolCall(tool=ASK, arguments={"topic": topic}) for topic in self.facts)

    @property
    def farewell(self) -> ToolCall:
        """Telling them the outcome."""
        return ToolCall(tool=TELL, arguments={"text": phrases()["calls"]["outcome"]})


def on_the_line(scene: Scene, plan: Plan, rng: Random) -> Line:
    """Put the person who asks for a plan on the line.

    Args:
        scene: the world.
        plan: with one part.
        rng: chooses the person and the other topics.

    Raises:
        Unfit: what is asked for cannot be said without its facts.
    """
    part = plan.parts[0]
    facts = _facts(scene, part)
    if len(plan.parts) > 1 or not facts:
        raise Unfit("nothing_to_ask", f"{len(plan.parts)} parts, {len(facts)} facts")
    words = phrases()["calls"]
    instruction = words["frame"].format(
        role=scene.company.role, day=speech.day(scene.today), name=rng.choice(scene.people),
        department=rng.choice(phrases()["departments"]), matter=_matter(scene, part), ask=ASK, tell=TELL,
    )  # fmt: skip
    others = [topic for topic in words["other_topics"] if topic not in facts]
    world = _with_caller(scene.world, facts, others, refused=part.goal.refuses)
    return Line(Scene(replace(scene.company, world=world)), instruction, facts)


def _facts(scene: Scene, part: SubGoal) -> dict[str, str]:
    """What the wording would have told, by topic."""
    words = phrases()["calls"]
    found: dict[str, str] = {}
    for name in braces(part.wording):
        if name in part.referrals:
            entity = scene.entities[part.goal.about[name]]
            told = articled(words["which"].format(value=part.referrals[name].phrase))
            found[_topic(scene.filled(entity.noun, {}), found)] = told
        elif name in part.values:
            topic = _topic(re.sub(r"_(id|cents)$", "", name), found)
            found[topic] = articled(words["value"].format(value=shown(name, part.values[name], scene)))
    return dict(sorted(found.items()))


def _topic(word: str, taken: Mapping[str, str]) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_") or "matter"
    return name if name not in taken else f"other_{name}"


def _matter(scene: Scene, part: SubGoal) -> str:
    """What is asked for, without any fact.

    Raises:
        Unfit: that would say nothing, or give the end away.
    """
    named = [name for name in braces(part.wording) if name in part.values]
    if all(name in part.referrals for name in named):
        nouns = {name: f"a {scene.filled(scene.entities[entity].noun, {})}" for name, entity in part.goal.about.items()}
        text = articled(scene.filled(part.wording, nouns))
        return re.sub(r"(^|[.!?] )([a-z])", lambda found: found[1] + found[2].upper(), text)
    if not part.goal.matter:
        raise Unfit("nothing_to_ask", f"{part.goal.id}: it does not say what it is about")
    return articled(str(phrases()["calls"]["request"]).format(matter=scene.filled(part.goal.matter, {})))


def _with_caller(world: World, facts: Mapping[str, str], others: Sequence[str], *, refused: bool) -> World:
    """The world with the person's facts, and the tools to talk to them."""
    words = phrases()["calls"]
    first, later = (words["protest"], words["accept"]) if refused else (words["thanks"], words["thanks"])
    rows = {**facts, _UNKNOWN: words["unknown"], f"{_TOLD}1": first, f"{_TOLD}2": later}
    more = _document()
    ask = {**more["tools"][ASK]}
    ask["parameters"] = {"topic": {**ask["parameters"]["topic"], "enum": sorted([*facts, *others])}}
    added = World.model_validate({
        "id": world.id, "clock": world.clock, "tables": more["tables"],
        "tools": {ASK: ask, TELL: more["tools"][TELL]}, "rows": {"caller_facts": list(rows.items())},
    })  # fmt: skip
    return world.model_copy(
        update={
            "id": f"{world.id}-line",
            "tables": (*world.tables, *added.tables),
            "tools": (*world.tools, *added.tools),
            "rows": {**world.rows, **added.rows},
        }
    )


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("user.yaml").read_text("utf-8"))
    return found
