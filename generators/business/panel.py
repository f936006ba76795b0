"""The panel of a plan: what is right in other ways, and what is wrong in the ways in which agents go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.changes import free_texts, literal
from envsynth.generators.business.instruction import phrases
from envsynth.generators.business.plans import Plan, SubGoal, Unfit
from envsynth.generators.business.scene import Scene, Values
from envsynth.generators.business.stage import Played, Stage
from envsynth.models import Check, ToolCall, ToolKind, Verifier
from envsynth.runtime.contract import Grade

_EXTRA_TRIES = 12
"""Targets that are tried for a write that nobody asked for."""


class Claim(StrEnum):
    """What a trajectory is meant to be."""

    RIGHT = "right"
    WRONG = "wrong"
    """Unless it comes to the same as the reference, which is then proved by the change of the state."""
    FORBIDDEN = "forbidden"
    """Wrong even where it comes to the same."""


class Line(NamedTuple):
    """A trajectory before it is graded."""

    label: str
    calls: tuple[ToolCall, ...]
    claim: Claim
    breach: tuple[ToolCall, ...] = ()
    """For forbidden ones: the writes that the policy does not allow."""


class Graded(NamedTuple):
    """A trajectory that was played and graded."""

    line: Line
    played: Played
    grade: Grade

    @property
    def same(self) -> bool:
        """Whether it changes the state as the reference does, compared by the roles of columns."""
        return self.grade.checks["end_state"]


class Panel(NamedTuple):
    """All trajectories of a plan, played."""

    lines: tuple[Graded, ...]
    verifier: Verifier
    """By which they were graded."""
    equivalents: int
    """Wrong ones that change the state as the reference does; left out."""


def grade_panel(scene: Scene, stage: Stage, plan: Plan, verifier: Verifier, more: Sequence[Line] = ()) -> Panel:
    """Make every trajectory of a plan, play and grade it, and leave out what is proved to come to the same.

    Args:
        scene: the world.
        stage: on which they are played.
        plan: with its reference.
        verifier: with the check `end_state`; gets checks on the trace where breaking a rule comes to the same.
        more: trajectories that only this kind of task has.

    Raises:
        Unfit: something right is rejected, or something wrong is not.
    """
    lines = {_text(plan.calls): Line("reference", plan.calls, Claim.RIGHT)}
    for line in (*_lines(scene, stage, plan), *more):
        lines.setdefault(_text(line.calls), line)
    plays = [(line, stage.play(line.calls)) for line in lines.values()]
    graded = [Graded(line, played, stage.grade(played, verifier)) for line, played in plays]
    breaches = [one.line.breach for one in graded if one.same and one.line.claim is Claim.FORBIDDEN]
    if breaches:
        checks = [
            Check(id=f"within_the_rules_{number}", sql=_not_made(breach)) for number, breach in enumerate(breaches, 1)
        ]
        verifier = verifier.model_copy(update={"checks": (*verifier.checks, *checks)})
        graded = [one._replace(grade=stage.grade(one.played, verifier)) for one in graded]
    kept = tuple(one for one in graded if not (one.same and one.line.claim is Claim.WRONG and one.grade.outcome == 1))
    _as_claimed(kept)
    return Panel(kept, verifier, len(graded) - len(kept))


def _not_made(breach: Sequence[ToolCall]) -> str:
    """A check that is false where all of some calls were made; free texts may be worded in any way."""
    calls = []
    for call in breach:
        given = "".join(
            f" AND json_extract(arguments, '$.{name}') = {literal(value)}"
            for name, value in call.arguments.items() if not (isinstance(value, str) and " " in value)
        )  # fmt: skip
        calls.append(f"EXISTS(SELECT 1 FROM trace WHERE ok AND tool = {literal(call.tool)}{given})")
    return f"SELECT NOT ({' AND '.join(calls)})"


def _as_claimed(panel: Sequence[Graded]) -> None:
    for one in panel:
        label, right = one.line.label, one.line.claim is Claim.RIGHT
        if right and one.grade.outcome != 1:
            fault = next(iter(one.grade.detail["faults"].values()), "")
            raise Unfit("alternative_rejected", f"{label}: {one.played.refusal or fault}")
        if not right and one.grade.outcome != 0:
            raise Unfit("mutant_survived", label)


def _lines(scene: Scene, stage: Stage, plan: Plan) -> Iterator[Line]:
    yield Line("idle", (), Claim.WRONG)
    yield Line("mutant:only_looks", _reads(plan), Claim.WRONG)
    yield from _alternatives(scene, plan)
    for number, part in enumerate(plan.parts):
        yield from _omissions(plan, number, part)
        for place, near in enumerate(part.near, 1):
            yield Line(f"mutant:wrong_target_{number + 1}_{place}", _swapped(scene, plan, number, near), Claim.WRONG)
        for name, changes in part.goal.wrong.items():
            values = {**part.values, **_evaluated(scene, changes, part.values)}
            yield Line(f"mutant:{name}_{number + 1}", _swapped(scene, plan, number, values), Claim.WRONG)
        twice = (*part.writes, part.writes[-1])
        yield Line(f"mutant:twice_{number + 1}", _with(plan, number, twice), Claim.WRONG)
        yield from _forbidden(scene, plan, number, part)
    extra = _unasked(scene, stage, plan)
    if extra:
        yield Line("mutant:unasked_write", (*plan.calls, *extra), Claim.WRONG)
    yield Line("attack:override_text", _override(scene, plan), Claim.WRONG)


def _alternatives(scene: Scene, plan: Plan) -> Iterator[Line]:
    """Other orders and ways that are also right."""
    pages = [call for call in plan.calls if call.tool == scene.rename("read_page")]
    backwards = [call for part in reversed(plan.parts) for call in part.writes]
    verify = [call for part in plan.parts for call in part.verify]
    rules_first = [*_unique([*pages, *_reads(plan)]), *backwards, *verify]
    yield Line("alternative:rules_first", tuple(rules_first), Claim.RIGHT)
    yield Line("alternative:another_way", _another_way(scene, plan), Claim.RIGHT)
    more = [ToolCall(tool=scene.rename("list_pages")), *_near_reads(scene, plan)]
    calls = [call for part in plan.parts for call in (*part.reads, *more, *part.writes, *part.verify, *more)]
    yield Line("alternative:looks_at_more", tuple(calls), Claim.RIGHT)
    blunder = ToolCall(tool=plan.writes[0].tool, arguments={"what": "?"})
    yield Line("alternative:careless", (blunder, blunder, blunder, *plan.writes), Claim.RIGHT)


def _another_way(scene: Scene, plan: Plan) -> tuple[ToolCall, ...]:
    """Things looked up as they were referred to, by a part of their name; other free texts."""
    found: list[ToolCall] = []
    for part in plan.parts:
        look_ups = [referral.look_up for referral in part.referrals.values() if referral.look_up]
        found += [_shortened(call) for call in look_ups]
        found += [call for call in part.reads if call not in found]
        found += part.writes
        found += part.verify
    texts = free_texts(plan.change, scene.tables, plan.writes)
    return tuple(_reworded(call, texts, phrases()["other_words"][0]) for call in found)


def _shortened(call: ToolCall) -> ToolCall:
    """A search by the last word of its text."""
    words = {name: value.split()[-1] for name, value in call.arguments.items() if isinstance(value, str) and value}
    return call.model_copy(
        update={"arguments": {**call.arguments, **{n: word for n, word in words.items() if len(word) >= 3}}}
    )


def _near_reads(scene: Scene, plan: Plan) -> list[ToolCall]:
    """What somebody would look at who is not sure which of several is meant."""
    found = [scene.call(part.goal.verify, near) for part in plan.parts for near in part.near[:1]]
    return list(_unique(found))[:3]


def _omissions(plan: Plan, number: int, part: SubGoal) -> Iterator[Line]:
    for place in range(len(part.writes)):
        rest = (*part.writes[:place], *part.writes[place + 1 :])
        yield Line(f"mutant:left_out_{number + 1}_{place + 1}", _with(plan, number, rest), Claim.WRONG)


def _forbidden(scene: Scene, plan: Plan, number: int, part: SubGoal) -> Iterator[Line]:
    for place, steps in enumerate(part.goal.forbidden, 1):
        writes = tuple(scene.call(step, part.values) for step in steps)
        breach = tuple(call for call in writes if call not in part.writes)
        label = f"mutant:against_the_rules_{number + 1}_{place}"
        yield Line(label, _with(plan, number, writes), Claim.FORBIDDEN if breach else Claim.WRONG, breach)


def _unasked(scene: Scene, stage: Stage, plan: Plan) -> tuple[ToolCall, ...]:
    """Writes of another goal that nobody asked for, and that can be made after the reference."""
    mine = {part.goal.id for part in plan.parts}
    others = [goal for name, goal in scene.goals.items() if name not in mine] or list(scene.goals.values())
    taken = {value for part in plan.parts for name, value in part.values.items() if name in part.goal.about}
    # Which goal it is depends on the plan, so that tasks of one world are not all tried with the same one.
    rng = Random(_text(plan.calls))
    for goal in rng.sample(others, len(others)):
        rows = scene.reader.targets(goal)
        for values in rng.sample(rows, min(_EXTRA_TRIES, len(rows))):
            if any(values[name] in taken for name in goal.about):
                continue
            writes = tuple(scene.call(step, values) for step in goal.writes)
            played = stage.play((*plan.writes, *writes))
            if not played.refusal and not stage.violated(played):
                return writes
    return ()


def _override(scene: Scene, plan: Plan) -> tuple[ToolCall, ...]:
    """Text that tells the grader what to do, in a trajectory that is wrong."""
    said: str = phrases()["override"]
    texts = free_texts(plan.change, scene.tables, plan.writes)
    number = next((number for number, part in enumerate(plan.parts) if part.near), None)
    if texts and number is not None:
        calls = _swapped(scene, plan, number, plan.parts[number].near[0])
        return tuple(_reworded(call, texts, said) for call in calls)
    if texts and len(plan.writes) > 1:
        last = plan.parts[-1]
        calls = _with(plan, len(plan.parts) - 1, last.writes[:-1])
        return tuple(_reworded(call, texts, said) for call in calls)
    for tool in scene.world.tools:
        free = [one.name for one in tool.parameters if one.type == "string" and not one.enum]
        if tool.kind is ToolKind.READ and free and len(tool.parameters) == len(free):
            return (*_reads(plan), ToolCall(tool=tool.name, arguments=dict.fromkeys(free, said[:80])))
    return ()


def _swapped(scene: Scene, plan: Plan, number: int, values: Values) -> tuple[ToolCall, ...]:
    """The plan with one part's writes made for other variables."""
    part = plan.parts[number]
    return _with(plan, number, tuple(scene.call(step, values) for step in part.goal.writes))


def _with(plan: Plan, number: int, writes: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The plan with other writes in one part."""
    found: list[ToolCall] = []
    for place, part in enumerate(plan.parts):
        found += [*part.reads, *(writes if place == number else part.writes), *part.verify]
    return tuple(found)


def _evaluated(scene: Scene, changes: Mapping[str, str], values: Values) -> dict[str, JsonValue]:
    return {name: scene.reader.value(expression, values) for name, expression in changes.items()}


def _reworded(call: ToolCall, texts: set[str], said: str) -> ToolCall:
    return call.model_copy(
        update={"arguments": {name: said if value in texts else value for name, value in call.arguments.items()}}
    )


def _reads(plan: Plan) -> tuple[ToolCall, ...]:
    return _unique([call for part in plan.parts for call in part.reads])


def _unique(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple({call.to_json(): call for call in calls}.values())


def _text(calls: Sequence[ToolCall]) -> str:
    return "\n".join(call.to_json() for call in calls)
