"""Policies at play: through the generated tools of a real episode, in the family's neutral names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from envsynth.generators.mechanism.contract import Policy, Refused, Skin
from envsynth.models import ToolCall, Verifier, World
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask


class Played(NamedTuple):
    """What a policy did, and what it came to."""

    calls: tuple[ToolCall, ...]
    utility: float
    score: float
    """Outcome of grading."""
    over: bool


class Stage:
    """One world, on which policies are played one after the other, each from the start."""

    def __init__(self, world: World, skin: Skin | None, verifier: Verifier, turns: int) -> None:
        """A stage.

        Args:
            world: dressed in `skin`; None: in neutral names.
            skin: whose names it has.
            verifier: with a utility.
            turns: budget of calls.
        """
        self._forward: Mapping[str, str] = skin.names if skin else {}
        self._backward = {new: old for old, new in self._forward.items()}
        document = {
            "candidate": {
                "instruction": "", "verifier": verifier.document(), "budget": {"turns": turns, "cost": None},
            }
        }  # fmt: skip
        task = WorldTask(document, WorldModel(world.document()), task_id=world.id)
        self._episode = WorldEpisode(task)
        self._calls: list[ToolCall] = []

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self._episode.over

    def call(self, tool: str, **arguments: Any) -> Any:
        """A policy's call, in neutral names."""
        named = {self._forward.get(name, name): self._renamed(value) for name, value in arguments.items()}
        self._calls.append(ToolCall(tool=self._forward.get(tool, tool), arguments=named))
        answer = self._episode.call(self._calls[-1].tool, named)
        if not answer.ok:
            raise Refused(f"{self._calls[-1].tool}: {answer.error}")
        return self._neutral(answer.result)

    def play(self, policy: Policy) -> Played:
        """Play a policy from the start and grade it.

        Raises:
            Refused: a call that the policy did not expect to fail did.
        """
        self._episode.reset()
        self._calls = []
        policy(self)
        grade = self._episode.grade()
        return Played(tuple(self._calls), grade.detail["utility"], grade.outcome, self._episode.over)

    def close(self) -> None:
        """Free the episode."""
        self._episode.close()

    def _renamed(self, value: Any) -> Any:
        """A plan, as a list or its JSON text, with the fields of its elements in the skin's names; as JSON text."""
        if isinstance(value, str) and value.startswith("["):
            value = json.loads(value)
        if not isinstance(value, list):
            return value
        return json.dumps([{self._forward.get(name, name): field for name, field in row.items()} for row in value])

    def _neutral(self, result: Any) -> Any:
        if isinstance(result, list):
            return [self._neutral(row) for row in result]
        if isinstance(result, dict):
            return {self._backward.get(name, name): self._neutral(value) for name, value in result.items()}
        return result


def idle(player: object) -> None:
    """The policy that does nothing."""
