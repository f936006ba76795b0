"""Which attempts are wanted, and who makes them."""

from __future__ import annotations

from pydantic import Field

from envsynth.agents import Agent, BlindAgent, Limits, ModelAgent, SkilledAgent, TrajectoryAgent
from envsynth.agents.model import Malformed
from envsynth.context import BuildContext
from envsynth.errors import ConfigError
from envsynth.models import Model, Policy
from envsynth.rollout.calibration import solver_settings

__all__ = ["RolloutRequest", "agent_of"]


class RolloutRequest(Model):
    """Which attempts are wanted."""

    policy: Policy
    names: tuple[str, ...] = ()
    """Task ids, or beginnings of one; empty: those of `where`."""
    where: str = ""
    """SQL condition over the view `task`; empty: every task."""
    attempts: int = Field(default=1, ge=1)
    """Attempts a task."""
    hint: bool = False
    """Whether hints are told; tasks without one are then left out."""
    skill: float | None = None
    """Of the scripted policy: probability of a right step."""
    limits: Limits = Limits()
    """Of an attempt; what is None is as [llm.solver] has it."""
    malformed: Malformed = "as_graded"
    jobs: int | None = Field(default=None, ge=1)
    """Attempts that are made at once; None: as many as the model may be asked at once, or as there are processors."""


def agent_of(request: RolloutRequest, context: BuildContext) -> Agent:
    """The policy of a request.

    Raises:
        ConfigError: it lacks a model or a skill, or has a skill that it cannot use, or does not play by itself.
    """
    if (request.skill is not None) != (request.policy is Policy.SCRIPTED):
        raise ConfigError(
            "a skill is for --policy scripted, which cannot do without", where="command line",
            next_step="envsynth rollout --policy scripted --skill 0.9",
        )  # fmt: skip
    if request.policy is Policy.HARNESS:
        raise ConfigError(
            "a harness plays through the proxy", where="command line",
            next_step="envsynth proxy --task TASK --out DIR -- COMMAND ...",
        )  # fmt: skip
    if request.policy in (Policy.REFERENCE, Policy.IDLE):
        return TrajectoryAgent(request.policy)
    if request.skill is not None:
        return SkilledAgent(request.skill)
    if request.policy is Policy.RANDOM:
        return BlindAgent()
    client = context.model("solver")
    if client is None:
        raise ConfigError(
            "there is no model to play", where="llm.solver", cause="the role solver has no model",
            next_step="envsynth rollout --policy model --llm solver=MODEL@URL, or [llm.solver] in envsynth.toml",
        )  # fmt: skip
    # Equal limits give equal keys: attempts of a build are not made again by a rollout.
    usual, given = solver_settings(client), request.limits
    limits = Limits(
        max_tokens=given.max_tokens or usual.attempt_tokens, max_seconds=given.max_seconds or usual.attempt_seconds
    )
    return ModelAgent(client, limits, request.malformed)
