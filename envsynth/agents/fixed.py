"""Policies whose calls are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from envsynth.agents.base import Play, Played, Told
from envsynth.agents.values import another, schemas_of
from envsynth.errors import ConfigError
from envsynth.models import Policy, ToolCall, Trajectory, digest_of
from envsynth.runtime.contract import JSON, Episode
from envsynth.seeds import stream

__all__ = ["SkilledAgent", "TrajectoryAgent"]

_VERSION = "1"


class TrajectoryAgent:
    """Plays a trajectory: one of the panel by its label, or one that is given."""

    def __init__(self, policy: Policy, trajectory: Trajectory | None = None) -> None:
        """A policy.

        Args:
            policy: `reference` or `idle`: the panel's; `scripted`: a given one.
            trajectory: what is played; None: the panel's line with the policy's name.
        """
        self.policy = policy
        self.name = trajectory.label if trajectory is not None else ""
        self._trajectory = trajectory

    def identity(self, told: Told) -> str:
        """Digest of the calls."""
        return digest_of([_VERSION, [call.document() for call in self._calls(told)]])

    def play(self, episode: Episode, told: Told, k: int) -> Played:
        """Make the calls; equal each time."""
        play = Play(episode, told)
        for call in self._calls(told):
            play.call(call.tool, call.arguments)
            if play.ending is not None:
                break
        return Played(play.stop(), turns=play.calls)

    def _calls(self, told: Told) -> tuple[ToolCall, ...]:
        return (self._trajectory or _line(told, self.policy.value)).calls


class SkilledAgent:
    """The reference, each step right with probability `skill`, else a wrong call: a policy whose skill is known.

    A wrong step has the right tool and another value of one argument that fits its schema, where there is one; else the
    step is left out. Whether one wrong step loses the episode is for the task to say: where each does, the chance to
    succeed is skill to the power of the reference's steps that have an argument or must not be missing.
    """

    policy = Policy.SCRIPTED

    def __init__(self, skill: float) -> None:
        """A policy.

        Args:
            skill: probability of a right step.

        Raises:
            ConfigError: it is no probability.
        """
        if not 0.0 <= skill <= 1.0:
            raise ConfigError(
                f"a skill of {skill:g} is no probability", where="--skill", next_step="give a number from 0 to 1"
            )
        self.skill = skill
        self.name = f"skill={skill:g}"

    def identity(self, told: Told) -> str:
        """Digest of the skill and of the reference's calls."""
        calls = [call.document() for call in _line(told, "reference").calls]
        return digest_of([_VERSION, "skilled", self.skill, calls])

    def play(self, episode: Episode, told: Told, k: int) -> Played:
        """Play draw `k`; the same draw is played alike each time."""
        rng = stream(f"{told.played}/{self.skill!r}/{k}", "skilled-agent")
        schemas = schemas_of(episode.tools())
        play = Play(episode, told)
        for tool, arguments in self._drawn(_line(told, "reference").calls, schemas, rng):
            play.call(tool, arguments)
            if play.ending is not None:
                break
        return Played(play.stop(), turns=play.calls)

    def _drawn(self, calls: Sequence[ToolCall], schemas: dict[str, JSON], rng: Random) -> list[tuple[str, JSON]]:
        # Drawn before anything is played, so that each step's luck is its own.
        right = [rng.random() < self.skill for _ in calls]
        made: list[tuple[str, JSON]] = []
        for call, good in zip(calls, right, strict=True):
            wrong = None if good else another(dict(call.arguments), schemas.get(call.tool, {}), rng)
            if good or wrong is not None:
                made.append((call.tool, dict(call.arguments) if good else wrong))
        return made


def _line(told: Told, label: str) -> Trajectory:
    found = told.panel.get(label)
    if found is None:
        raise ConfigError(
            f"the task's panel has no trajectory {label!r}", where=told.task, cause="it was written by hand or damaged",
            next_step="build its source again",
        )  # fmt: skip
    return found
