"""One task: a plan, solved and written down, with everything that grades it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.changes import end_state
from envsynth.generators.business.instruction import instruction
from envsynth.generators.business.panel import Claim, Line, Panel, grade_panel
from envsynth.generators.business.plans import Plan, Planner, Unfit
from envsynth.generators.business.readback import read_back
from envsynth.generators.business.retold import original_of
from envsynth.generators.business.rubric import LEAST, Conversation, criteria, telling
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.slices import free_arguments
from envsynth.generators.business.stage import Stage
from envsynth.generators.business.user import ASK, TELL, on_the_line
from envsynth.models import Budget, Trajectory, Verifier, World
from envsynth.rewriting import Original
from envsynth.seeds import stream

TRIES = 6
"""Plans that are drawn for one task before it is given up."""

_CONVERSATIONS = 1 / 3


class Wish(NamedTuple):
    """What kind of task is wanted."""

    level: int
    vagueness: int
    process: str
    conversation: bool = False
    """Whether somebody is on the line, who tells facts only when asked."""


def talks(wish: Wish, seed: str) -> bool:
    """Whether a task of some level and vagueness becomes a conversation: a third of those that can be one.

    Args:
        wish: a conversation is about one matter, and nobody tells numbers on the line.
        seed: of the task.
    """
    return wish.level <= 2 and wish.vagueness >= 1 and stream(seed, "conversation").random() < _CONVERSATIONS


class Written(NamedTuple):
    """A finished task, but for its provenance."""

    instruction: str
    world: World
    verifier: Verifier
    panel: tuple[Trajectory, ...]
    budget: Budget
    metadata: dict[str, JsonValue]
    original: Original | None = None
    """The instruction with what it may not lose in other words; None for a conversation, where a person tells it."""


class NoTask(Exception):
    """Every draw was in vain; the last one's reason."""

    def __init__(self, last: Unfit, draws: Sequence[Unfit]) -> None:
        super().__init__(str(last))
        self.last = last
        self.draws = draws
        """Everything that was thrown away on the way, in order."""


def write_task(scene: Scene, stage: Stage, wish: Wish, seed: str) -> Written:
    """Draw plans until one of them makes a task.

    Args:
        scene: the world.
        stage: of the scene.
        wish: level, vagueness and process.
        seed: of this task; equal arguments give equal tasks.

    Raises:
        NoTask: none of `TRIES` plans did.
    """
    if stage.broken:
        raise NoTask(Unfit("broken_at_start", f"the untouched world violates {', '.join(stage.broken)}"), ())
    thrown: list[Unfit] = []
    for number in range(1, TRIES + 1):
        draw = f"{seed}/{number}"
        planner = Planner(scene, stage, stream(draw, "plan"))
        try:
            plan = planner.plan(wish.level, wish.vagueness, wish.process)
            return _on_the_line(scene, plan, draw) if wish.conversation else _asked(scene, stage, plan, draw)
        except Unfit as unfit:
            thrown += [*planner.thrown, unfit]
    raise NoTask(thrown[-1], thrown)


class _Told(NamedTuple):
    """How an agent gets to know what is wanted."""

    instruction: str
    conversation: Conversation | None = None
    lines: tuple[Line, ...] = ()
    """Trajectories that only this kind of task has."""
    original: Original | None = None


def _asked(scene: Scene, stage: Stage, plan: Plan, seed: str) -> Written:
    """A task whose instruction says everything that only a person knows."""
    text = instruction(scene, plan.parts, stream(seed, "words"))
    return _written(scene, stage, plan, _Told(text, original=original_of(scene, stage, plan, text)))


def _on_the_line(scene: Scene, plan: Plan, seed: str) -> Written:
    """A task with somebody on the line who says so when asked."""
    line = on_the_line(scene, plan, stream(seed, "words"))
    stage = Stage.of(line.scene)
    try:
        played = stage.play((*line.questions, *plan.calls, line.farewell))
        talker = Line("mutant:polite_talker", (*line.questions, line.farewell), Claim.WRONG)
        told = _Told(line.instruction, Conversation(ASK, TELL, tuple(line.facts)), (talker,))
        return _written(line.scene, stage, plan._replace(played=played), told)
    finally:
        stage.close()


def _written(scene: Scene, stage: Stage, plan: Plan, told: _Told) -> Written:
    checks = end_state(plan.change, scene.tables, plan.writes)
    draft = Verifier(checks=checks, rubric=criteria(scene, plan, told.conversation))
    panel = grade_panel(scene, stage, plan, draft, told.lines)
    rubric = telling(panel.verifier.rubric, [one.grade for one in panel.lines])
    if len(rubric) < LEAST:
        raise Unfit("rubric_too_thin", f"{len(rubric)} criteria tell trajectories apart")
    trajectories = tuple(
        Trajectory(label=one.line.label, calls=one.line.calls, outcome=one.grade.outcome) for one in panel.lines
    )
    longest = max(len(line.calls) for line in trajectories)
    return Written(
        instruction=told.instruction,
        world=scene.world,
        verifier=panel.verifier.model_copy(
            update={"rubric": rubric, "read_back": read_back(scene, stage, plan, panel)}
        ),
        panel=trajectories,
        budget=Budget(turns=max(20, 2 * len(plan.calls) + 10, longest + 5)),
        metadata={**_metadata(scene, plan, panel), "conversation": told.conversation is not None},
        original=told.original,
    )


def _metadata(scene: Scene, plan: Plan, panel: Panel) -> dict[str, JsonValue]:
    company = scene.company
    unique = {referral.phrase: referral.unique for part in plan.parts for referral in part.referrals.values()}
    return {
        "industry": company.industry.industry,
        "country": company.country.code,
        "process": plan.process,
        "level": plan.level,
        "vagueness": plan.vagueness,
        "difficulty": plan.difficulty,
        "calls": len(plan.calls),
        "services": [service.service for service in company.services],
        "goals": [part.goal.id for part in plan.parts],
        "origins": [company.origins[part.goal.id] for part in plan.parts],
        "refuses": any(part.goal.refuses for part in plan.parts),
        "unique": dict(sorted(unique.items())),
        "equivalents": panel.equivalents,
        "free_arguments": free_arguments(scene, plan, {TELL}),
    }
