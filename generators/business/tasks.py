"""One task: a plan, solved and written down, with everything that grades it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.changes import end_state
from envsynth.generators.business.instruction import instruction
from envsynth.generators.business.panel import Panel, grade_panel
from envsynth.generators.business.plans import Plan, Planner, Unfit
from envsynth.generators.business.readback import read_back
from envsynth.generators.business.rubric import LEAST, criteria, telling
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.slices import free_arguments
from envsynth.generators.business.stage import Stage
from envsynth.models import Budget, Trajectory, Verifier, World
from envsynth.seeds import stream

TRIES = 6
"""Plans that are drawn for one task before it is given up."""


class Wish(NamedTuple):
    """What kind of task is wanted."""

    level: int
    vagueness: int
    process: str
    conversation: bool = False
    """Whether somebody is on the line, who tells facts only when asked."""


class Written(NamedTuple):
    """A finished task, but for its provenance."""

    instruction: str
    world: World
    verifier: Verifier
    panel: tuple[Trajectory, ...]
    budget: Budget
    metadata: dict[str, JsonValue]


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
    thrown: list[Unfit] = []
    for number in range(1, TRIES + 1):
        planner = Planner(scene, stage, stream(f"{seed}/{number}", "plan"))
        try:
            plan = planner.plan(wish.level, wish.vagueness, wish.process)
            return _written(scene, stage, plan, f"{seed}/{number}")
        except Unfit as unfit:
            thrown += [*planner.thrown, unfit]
    raise NoTask(thrown[-1], thrown)


def _written(scene: Scene, stage: Stage, plan: Plan, seed: str) -> Written:
    checks = end_state(plan.change, scene.tables, plan.writes)
    panel = grade_panel(scene, stage, plan, Verifier(checks=checks, rubric=criteria(scene, plan)))
    rubric = telling(panel.verifier.rubric, [one.grade for one in panel.lines])
    if len(rubric) < LEAST:
        raise Unfit("rubric_too_thin", f"{len(rubric)} criteria tell trajectories apart")
    trajectories = tuple(
        Trajectory(label=one.line.label, calls=one.line.calls, outcome=one.grade.outcome) for one in panel.lines
    )
    longest = max(len(line.calls) for line in trajectories)
    return Written(
        instruction=instruction(scene, plan.parts, stream(seed, "words")),
        world=scene.world,
        verifier=panel.verifier.model_copy(update={"rubric": rubric}),
        panel=trajectories,
        budget=Budget(turns=max(20, 2 * len(plan.calls) + 10, longest + 5)),
        metadata=_metadata(scene, stage, plan, panel),
    )


def _metadata(scene: Scene, stage: Stage, plan: Plan, panel: Panel) -> dict[str, JsonValue]:
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
        "free_arguments": free_arguments(scene, plan),
        "read_back": read_back(scene, stage, plan, panel),
    }
