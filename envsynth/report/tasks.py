"""The page of one task: everything its maker may want to see of it, as a JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from envsynth.catalog import Catalog
from envsynth.errors import SandboxError, boundary
from envsynth.models import Attempt, Check, Task, TraceStep, Trajectory, Utility, World, WorldRef
from envsynth.report.steps import Call, Played, Steps
from envsynth.rollout.playable import Measured, playing
from envsynth.runtime.contract import Grade, ToolResult
from envsynth.runtime.rewards import in_words, normalised
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

__all__ = ["ATTEMPTS", "TaskPage", "pages"]

ATTEMPTS = 32
"""Attempts of one task that can be stepped through."""
PATCH = 60_000
"""Characters shown of a reference's patch."""
_REFERENCES = ("oracle", "bayes", "default", "idle")
Document = dict[str, Any]


class TaskPage(NamedTuple):
    """What the report has of one task."""

    line: Document
    """For the list of tasks."""
    document: Document
    """For the page."""
    world: tuple[str, Document] | None
    """Name and document of its world's tables and tools, which several tasks may share."""


def pages(catalog: Catalog, first: Sequence[str], most: int) -> Iterator[TaskPage]:
    """The pages of as many tasks, each trajectory of a world played again; one whose world is damaged says so.

    Args:
        catalog: where the tasks are.
        first: ids of tasks that come before all others.
        most: how many.
    """
    ids = [row[0] for row in catalog.figures("pages", first=list(first), most=most).rows]
    for start in range(0, len(ids), 50):
        found = {task.id: task for task in catalog.tasks_by_id(ids[start : start + 50])}
        for name in ids[start : start + 50]:
            yield _page(catalog, found[name])


def _page(catalog: Catalog, task: Task) -> TaskPage:
    keys = [row[0] for row in catalog.figures("attempts_of", task=task.id).rows]
    attempts = list(catalog.attempts_of(keys[:ATTEMPTS]))
    environment = task.candidate.environment
    world: tuple[str, Document] | None = None
    details: Document
    if isinstance(environment, WorldRef):
        try:
            world, episode = _opened(catalog, task, environment)
        except SandboxError as exc:
            trajectories, details = _trajectories(task, attempts, Steps(None)), {"trouble": str(exc)}
        else:
            with closing(episode):
                trajectories = _trajectories(task, attempts, Steps(episode))
            details = {"world": world[0]}
    else:
        trajectories = _trajectories(task, attempts, Steps(None))
        details = _workspace(catalog, task)
    trajectories["attempts_left"] = len(keys) - len(attempts)
    return TaskPage(_line(task, len(keys)), {**_told(task), **details, **_verifier(task), **trajectories}, world)


def _opened(catalog: Catalog, task: Task, environment: WorldRef) -> tuple[tuple[str, Document], WorldEpisode]:
    """A task's world by name and document, and an episode in it."""
    with boundary(SandboxError, "the task's world cannot be made", where=task.id, next_step="build the task again"):
        document = json.loads(catalog.blobs.get(environment.world))
        told = (environment.world[:16], _world(World.model_validate(document)))
        made = WorldModel(document)
    return told, WorldEpisode(WorldTask(playing(task.candidate, Measured()), made, task_id=task.id))


def _line(task: Task, attempts: int) -> Document:
    candidate, lead, strength = task.candidate, task.candidate.provenance.lead, task.strength
    return {
        "id": task.id, "family": lead.name, "level": str(candidate.metadata.get("level", lead.strategy)),
        "strategy": lead.strategy, "tier": task.tier.value, "panel": len(task.panel), "attempts": attempts,
        "attacks": strength.attacks, "worked": strength.attacks_worked, "kill_rate": strength.kill_rate,
    }  # fmt: skip


def _told(task: Task) -> Document:
    candidate = task.candidate
    provenance = candidate.provenance
    return {
        "id": task.id, "tier": task.tier.value, "instruction": candidate.instruction, "hint": candidate.hint,
        "kind": candidate.environment.kind, "budget": candidate.budget.document(), "author": provenance.author,
        "source": provenance.lead.source, "revision": provenance.lead.revision, "ref": provenance.lead.ref,
        "generator": f"{provenance.lead.generator} {provenance.lead.generator_version}",
        "strategy": provenance.lead.strategy, "strength": task.strength.model_dump(exclude_none=True),
        "verdicts": [[one.validator, one.version, one.status] for one in task.verdicts],
    }  # fmt: skip


def _verifier(task: Task) -> Document:
    verifier = task.candidate.verifier
    return {
        "checks": [
            {"id": check.id, "kind": check.kind, "text": check.sql or _compared(check)} for check in verifier.checks
        ],
        "rubric": [
            {"id": line.id, "class": line.class_.value, "text": line.text, "sql": line.sql, "prompt": line.prompt,
             "evidence": line.evidence}
            for line in verifier.rubric
        ],
        "reward": in_words(verifier.reward.document()),
        "utility": None if verifier.utility is None else _utility(verifier.utility),
        "read_back": verifier.read_back,
    }  # fmt: skip


def _compared(check: Check) -> str:
    """What a check without SQL compares, for people."""
    if check.kind != "diff":
        return ""
    expected = {
        table: {kind: rows for kind, rows in change.document().items() if rows}
        for table, change in check.expect.items()
    }
    whole = {"changes": expected} if check.answer is None else {"changes": expected, "answer": check.answer}
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _utility(utility: Utility) -> Document:
    """The query, and what the reference policies came to."""
    scale = {"default": utility.default, "reference": utility.reference}
    names = [name for name in _REFERENCES if name in utility.realised or name in utility.expected]
    rows = [(name, utility.realised.get(name), utility.expected.get(name)) for name in names]
    return {
        "sql": utility.sql, "hindsight": utility.hindsight, **scale,
        "rows": [[name, got, None if got is None else normalised(got, scale), mean] for name, got, mean in rows],
    }  # fmt: skip


def _world(world: World) -> Document:
    """A world without its rows."""
    return {
        "id": world.id, "clock": world.clock, "over": world.over,
        "tables": [
            {
                "name": table.name, "doc": table.doc, "hidden": table.hidden, "tolerated": table.tolerated,
                "rows": len(world.rows.get(table.name, ())),
                "columns": [[one.name, one.type.value, one.role.value, one.hidden] for one in table.columns],
            }
            for table in world.tables
        ],
        "tools": [tool.model_dump(mode="json", exclude_defaults=True) for tool in world.tools],
        "invariants": [invariant.document() for invariant in world.invariants],
    }  # fmt: skip


def _workspace(catalog: Catalog, task: Task) -> Document:
    workspace, solution = task.candidate.workspace, task.candidate.reference
    patch = "" if solution is None else catalog.blobs.get(solution.patch).decode("utf-8", "replace")
    lists = {} if task.tests is None else task.tests.document()
    recipe, command = workspace.recipe, workspace.command
    return {
        "patch": patch[:PATCH], "patch_left": max(0, len(patch) - PATCH), "tests": lists,
        "recipe": f"{recipe.language} {recipe.interpreter}, {len(recipe.requirements)} packages as of {recipe.newest}",
        "command": " ".join((command.runner, *command.arguments, *command.targets)),
    }  # fmt: skip


def _trajectories(task: Task, attempts: Sequence[Attempt], steps: Steps) -> Document:
    panel = [_labelled(line, steps.add([Call(one.tool, one.arguments) for one in line.calls])) for line in task.panel]
    tried = [_tried(one, steps.add([_call(step) for step in one.trace])) for one in attempts]
    return {"panel": panel, "attempts": tried, "steps": steps.nodes, "texts": steps.texts}


def _labelled(line: Trajectory, played: Played) -> Document:
    return {
        "label": line.label, "calls": len(line.calls), "leaf": played.leaf, "wanted": line.outcome,
        "trouble": played.trouble, "grade": None if played.grade is None else _grade(played.grade),
    }  # fmt: skip


def _tried(attempt: Attempt, played: Played) -> Document:
    assert attempt.grade is not None  # only finished ones are asked for
    return {
        "label": f"{attempt.policy.value} {attempt.model}".strip() + (", hinted" if attempt.hinted else ""),
        "k": attempt.k, "calls": len(attempt.trace), "leaf": played.leaf, "trouble": played.trouble,
        "differs": played.differs, "ending": "" if attempt.ending is None else attempt.ending.value,
        "failure": "" if attempt.failure is None else attempt.failure.value,
        "grade": _grade(Grade(**attempt.grade.model_dump())),
    }  # fmt: skip


def _call(step: TraceStep) -> Call:
    return Call(step.tool, step.arguments, ToolResult(step.ok, step.result, step.error, False))


def _grade(grade: Grade) -> Document:
    faults: Mapping[str, Any] = grade.detail.get("faults") or {}
    return {
        "reward": grade.reward, "outcome": grade.outcome, "process": grade.process, "gate": grade.gate,
        "checks": grade.checks, "criteria": grade.criteria, "penalties": grade.penalties,
        "faults": {name: str(fault)[:500] for name, fault in faults.items()},
    }  # fmt: skip
