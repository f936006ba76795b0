"""Single-step tasks: what comes next after each beginning of a reference, and how an answer is compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from envsynth.generators.business.changes import MIN_TEXT, free_texts
from envsynth.generators.business.plans import Plan
from envsynth.generators.business.scene import Scene
from envsynth.models import Candidate, ToolCall
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.checks import equal
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

FREE, EXACT = "free", "exact"
"""How an argument is compared: any text that says something, or just this value."""


class Slice(NamedTuple):
    """One next-call task."""

    place: int
    """0-based place of the expected call in the reference."""
    history: tuple[JSON, ...]
    """Calls so far: `tool`, `arguments`, `result`."""
    expected: ToolCall
    compared: Mapping[str, str]
    """By argument: `exact` or `free`."""

    def document(self, candidate: Candidate) -> dict[str, JsonValue]:
        """As JSON, with what the agent is told and the world it is in; the tools are the world's."""
        return {
            "task": candidate.id, "place": self.place, "world": candidate.world.world,
            "instruction": candidate.instruction, "history": list(self.history),
            "expected": self.expected.document(), "compared": dict(self.compared),
        }  # fmt: skip


def free_arguments(scene: Scene, plan: Plan, talking: Collection[str]) -> list[JsonValue]:
    """By call of a reference: its free arguments, for a candidate's metadata; all others are compared exactly.

    Args:
        scene: the world.
        plan: with its reference.
        talking: tools whose arguments are all free.
    """
    texts = free_texts(plan.change, scene.tables, plan.writes)
    return [
        [name for name, value in sorted(call.arguments.items()) if value in texts or call.tool in talking]
        for call in plan.calls
    ]


def slices(candidate: Candidate, model: WorldModel) -> Iterator[Slice]:
    """The next-call tasks of a candidate, from its reference played once.

    Args:
        candidate: of this generator: `free_arguments` of its metadata says which arguments are free.
        model: its world.
    """
    document = {
        "candidate": {
            "instruction": candidate.instruction, "verifier": candidate.verifier.document(),
            "budget": candidate.budget.document(),
        }
    }  # fmt: skip
    reference = next(line for line in candidate.panel if line.label == "reference")
    free: Any = candidate.metadata["free_arguments"]
    episode = WorldEpisode(WorldTask(document, model, task_id=candidate.id))
    try:
        episode.reset()
        history: list[JSON] = []
        for place, call in enumerate(reference.calls):
            compared = {name: FREE if name in free[place] else EXACT for name in call.arguments}
            yield Slice(place, tuple(history), call, compared)
            answer = episode.call(call.tool, dict(call.arguments))
            history.append({"tool": call.tool, "arguments": dict(call.arguments), "result": answer.result})
    finally:
        episode.close()


def matches(expected: Slice, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether a call is the expected one, compared by the role of each argument."""
    wanted = expected.expected
    if tool != wanted.tool or arguments.keys() != wanted.arguments.keys():
        return False
    return all(_fits(expected.compared[name], value, arguments[name]) for name, value in wanted.arguments.items())


def _fits(role: str, wanted: JsonValue, got: JsonValue) -> bool:
    if role == FREE:
        return isinstance(got, str) and len(got.strip()) >= MIN_TEXT
    return equal(wanted, got)
