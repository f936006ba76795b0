"""A composed task's instruction in other words: what only it tells, and what an agent can find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envsynth.generators.business import speech
from envsynth.generators.business.blueprint import Goal
from envsynth.generators.business.facts import find_path
from envsynth.generators.business.plans import Plan, SubGoal, said, shown
from envsynth.generators.business.scene import Scene, braces
from envsynth.generators.business.stage import Stage
from envsynth.models import Finding
from envsynth.rewriting import LEAVES_OUT, Fact, Original

__all__ = ["original_of"]

_DECIDES = ("manual", "rule", "policy", "policies", "procedure", "regulation")
"""What a request calls that which decides it."""


def original_of(scene: Scene, stage: Stage, plan: Plan, text: str) -> Original:
    """An instruction with what may not get lost.

    Args:
        scene: the world.
        stage: of the scene, on which reads are played.
        plan: what is asked for.
        text: the instruction.
    """
    marks = {(number, name): f"{number}.{name}" for number, part in enumerate(plan.parts, 1) for name in _names(part)}

    def unfound(left_out: frozenset[str]) -> Iterable[str]:
        for number, part in enumerate(plan.parts, 1):
            silent = {name for name in _names(part) if marks[number, name] in left_out}
            if silent and not _found(scene, stage, part, silent):
                yield from sorted(marks[number, name] for name in silent)
        if "today" in left_out:
            yield "today"

    facts = tuple(_facts(scene, plan, text))

    def objections(answer: str) -> Iterator[Finding]:
        # A value that the manual decides can be found only by whoever is told that it does.
        silent = [fact.mark for fact in facts if not fact.stands_in(answer)]
        if silent and not any(word in answer.casefold() for word in _DECIDES):
            yield Finding(rule="rewrite_names_no_rule", message="what is left out is said to follow from nothing")

    return Original(text, facts, unfound, objections=objections)


def _facts(scene: Scene, plan: Plan, text: str) -> Iterator[Fact]:
    """The day, and everything that wordings tell of their targets."""
    yield Fact("today", speech.day(scene.today))
    for number, part in enumerate(plan.parts, 1):
        for name in _names(part):
            referral, value = part.referrals.get(name), part.values.get(name)
            spelled = referral.phrase if referral else shown(name, value, scene)
            exact = Fact(f"{number}.{name}", spelled, exact=True)
            # An article may have changed on the way into the text.
            plain = not referral and not (isinstance(value, str) and " " in value and not speech.is_day(value))
            found = exact._replace(exact=not plain and exact.stands_in(text))
            yield _as_it_stands(found, text)


def _as_it_stands(fact: Fact, text: str) -> Fact:
    """A fact, with the whole word where the instruction says it as a part of one: the 9 of `9:00`."""
    begins = rf"(?<![\w.,:]){re.escape(fact.spelled)}"
    whole = re.search(rf"{begins}:\d\d", text)
    if whole is None and not fact.stands_in(text):
        whole = re.search(rf"{begins}[^\s,;]*", text)
    return fact._replace(spelled=whole[0].rstrip(".!?"), exact=True) if whole else fact


def _names(part: SubGoal) -> list[str]:
    """Variables that a wording tells, each once."""
    return [name for name in sorted(braces(part.wording)) if name in part.referrals or name in part.values]


def _found(scene: Scene, stage: Stage, part: SubGoal, silent: set[str]) -> bool:
    """Whether what is not told follows from the manual and from what the reads of the reference show.

    A wish may stand in some result by chance; so nothing is left out but what the goal has a vaguer wording without.
    What a thing is called is never left out: nothing else says which one is meant.
    """
    if silent & part.referrals.keys() or not all(_may_follow(part.goal, name) for name in silent):
        return False
    left = " ".join(f"{{{name}}}" for name in _names(part) if name not in silent)
    path = find_path(scene, stage, part.goal, part.values, said(left, part.values, part.referrals))
    return not path.unknown and not path.unread and all(call in part.reads for call in path.reads)


def _may_follow(goal: Goal, name: str) -> bool:
    """Whether a variable is in no wording of some vague level."""
    vague = [wordings for level, wordings in goal.says.items() if level >= LEAVES_OUT]
    return any(all(name not in braces(wording) for wording in wordings) for wordings in vague)
