"""The worlds of tests/data/worlds, as admitted tasks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from envsynth.models import (
    Budget,
    Candidate,
    Lead,
    Provenance,
    Task,
    Tier,
    ToolCall,
    Trajectory,
    Verifier,
    World,
    WorldRef,
)
from envsynth.protocols import BlobStore
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

FOLDER = Path(__file__).parents[1] / "data" / "worlds"
TASKS = ("two-armed", "returns-desk-refund", "returns-desk-refuse")


@cache
def _document(name: str) -> Any:
    return yaml.safe_load(FOLDER.joinpath(f"{name}.yaml").read_text("utf-8"))


def _file(task: str) -> str:
    return next(path.stem for path in sorted(FOLDER.glob("*.yaml")) if task.startswith(path.stem))


def world(task: str) -> World:
    """The world of a task."""
    return World.model_validate(_document(_file(task))["world"])


def entry(task: str) -> Any:
    """A task as its file has it: `panel` has the calls, outcomes and process scores."""
    return next(found for found in _document(_file(task))["tasks"] if found["id"] == task)


def trajectories(task: str) -> tuple[Trajectory, ...]:
    """The panel."""
    return tuple(
        Trajectory(label=label, outcome=line["outcome"], calls=tuple(_calls(line["calls"])))
        for label, line in entry(task)["panel"].items()
    )


def _calls(lines: list[Any]) -> list[ToolCall]:
    return [
        ToolCall(tool=tool, arguments=arguments)
        for tool, arguments, *times in lines
        for _ in range(times[0] if times else 1)
    ]


def make_candidate(blobs: BlobStore, task: str) -> Candidate:
    found = entry(task)
    lead = Lead(
        generator="mechanism", generator_version="1", source=f"mechanism:{task}", name=task, revision="1",
        strategy="hidden", ref="a", index=0,
    )  # fmt: skip
    return Candidate(
        instruction=found["instruction"],
        environment=WorldRef(world=blobs.put(world(task).to_json().encode())),
        verifier=Verifier.model_validate(found["verifier"]),
        panel=trajectories(task),
        budget=Budget.model_validate(found["budget"]),
        provenance=Provenance(lead=lead),
    )


def make_world_task(blobs: BlobStore, task: str) -> Task:
    candidate = make_candidate(blobs, task)
    return Task(candidate=candidate, tests=None, panel=candidate.panel, tier=Tier.VERIFIED, verdicts=())


def episode_of(task: str) -> WorldEpisode:
    """An episode, not yet reset."""
    found = entry(task)
    document = {
        "candidate": {
            "instruction": found["instruction"],
            "verifier": Verifier.model_validate(found["verifier"]).document(),
            "budget": Budget.model_validate(found["budget"]).document(),
        }
    }
    return WorldEpisode(WorldTask(document, WorldModel(world(task).document()), task_id=task))
