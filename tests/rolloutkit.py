"""Tasks to be rolled out: worlds in which every step counts, and the shop; loaded by the conftests that need it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import world_bench

from envsynth.cache import Cache
from envsynth.catalog import Catalog
from envsynth.models import Check, Cost, Lead, Outcome, Provenance, Task, Tier, Trajectory, Verifier
from envsynth.models.verifier import Budget
from envsynth.rollout import Playable, Playables

VALUES = 10


def no_backend() -> Any:
    raise AssertionError("a world needs no sandbox")


def playable_of(cache: Cache, task: Task) -> Playable:
    """The task without its hint."""
    return Playables(cache.get, cache.root).of_task(task, no_backend).without_hint()


def shop_task(cache: Cache, **changes: Any) -> Task:
    """The task of `world_bench`: four lamps, a note, and the number handed in."""
    candidate = world_bench.candidate(cache, world_bench.worldkit.shop(), **changes)
    return task_of(candidate, world_bench.SHOP_PANEL)


def wheel_task(cache: Cache, **changes: Any) -> Task:
    """A graded outcome: one coin a day realises 25 between a default of 17 and a reference of 26."""
    candidate = world_bench.wheel_task(cache, **changes)
    return task_of(candidate, candidate.panel)


def steps_task(cache: Cache, steps: int, number: int = 0, *, hint: str = "") -> Task:
    """A world of so many steps; each must be done with its own one of ten values, and each wrong one is fatal."""
    rng = Random(f"steps/{steps}/{number}")
    wanted = [rng.randrange(VALUES) for _ in range(steps)]
    document = {
        "id": "steps", "clock": "2026-03-10T09:00:00",
        "tables": {"done": {"columns": {"step": {"type": "integer", "role": "key"}, "value": {"type": "integer"}}}},
        "rows": {"done": []},
        "tools": {
            f"step_{step}": {
                "kind": "write", "doc": "Do it.",
                "parameters": {"value": {"type": "integer", "enum": list(range(VALUES)), "doc": "How."}},
                "effects": [f"INSERT OR REPLACE INTO done VALUES ({step}, :value)"],
            }
            for step in range(steps)
        },
    }  # fmt: skip
    check = Check.model_validate(
        {"id": "end", "kind": "diff",
         "expect": {"done": {"added": [{"step": step, "value": value} for step, value in enumerate(wanted)]}}}
    )  # fmt: skip
    lead = Lead(
        generator="mechanism", generator_version="1", source="steps", name="steps", revision="r", strategy="hidden",
        ref=f"{number:08x}", index=number,
    )  # fmt: skip
    panel = (
        world_bench.line("reference", 1, *((f"step_{step}", {"value": value}) for step, value in enumerate(wanted))),
        world_bench.line("idle", 0),
    )
    candidate = world_bench.candidate(
        cache, document, instruction=f"Do the steps of list {number}.", verifier=Verifier(checks=(check,)),
        panel=panel, provenance=Provenance(lead=lead), budget=Budget(turns=2 * steps), hint=hint,
    )  # fmt: skip
    return task_of(candidate, panel)


def task_of(candidate: Any, panel: Sequence[Trajectory]) -> Task:
    return Task(candidate=candidate, tests=None, panel=tuple(panel), tier=Tier.VERIFIED, verdicts=())


def catalog_of(path: Path, cache: Cache, tasks: Sequence[Task]) -> Path:
    """A catalog of admitted tasks."""
    outcomes = [
        Outcome(lead=task.candidate.provenance.lead, ladder="1" * 64, candidate=task.candidate, task=task)
        for task in tasks
    ]
    with Catalog.open(path) as catalog:
        build = catalog.begin_build({})
        catalog.record(build, outcomes, cache)
        catalog.end_build(build, "done", Cost())
    return path
