"""What an agent is told, what it does with an episode, and how its calls are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from pydantic import Field

from envsynth.models import ChatMessage, ChatTool, Ending, Model, Policy, Tokens, Trajectory
from envsynth.runtime.contract import JSON, Episode, ToolResult
from envsynth.runtime.worlds.episode import WorldEpisode

__all__ = ["Agent", "Limits", "Play", "Played", "Told", "submits_of"]

_WORKSPACE_SUBMITS = frozenset({"submit"})


class Limits(Model):
    """What a rollout may take beyond the task's own budget; part of what its attempts are keyed by."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the model writes in one attempt, reasoning included; looked at between turns. None: no limit."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Wall seconds of one attempt; looked at between turns, so that a call under way is waited for. None: no limit."""


class Told(NamedTuple):
    """What an agent may know of a task beside its tools."""

    task: str
    """Id, for messages."""
    played: str
    """Digest of what is played; seeds follow from it."""
    instruction: str
    turns: int
    """Calls that the episode may have."""
    cost: float | None
    """What its calls may cost together; None: there is no such limit."""
    hint: str
    """Empty: none is told."""
    panel: Mapping[str, Trajectory]
    """Labelled trajectories by label; only fixed policies read them."""
    gated: bool
    """Whether a transcript that is not valid gets reward 0."""


class Played(NamedTuple):
    """How an agent played an episode to its end."""

    ending: Ending
    fault: str = ""
    """As `Attempt.fault`."""
    turns: int = 0
    """As `Attempt.turns`."""
    tools: tuple[ChatTool, ...] = ()
    conversation: tuple[ChatMessage, ...] = ()
    tokens: Tokens = Tokens()
    cost_usd: float | None = 0.0
    model_s: float = 0.0


class Agent(Protocol):
    """A policy. Safe to share between threads: what it remembers of an episode is on its stack."""

    policy: Policy
    name: str
    """As `Attempt.model`."""

    def identity(self, told: Told) -> str:
        """Digest of what decides how it plays this task, `Attempt.settings`; the number of the draw is no part."""

    def play(self, episode: Episode, told: Told, k: int) -> Played:
        """Play a fresh episode until it is over; what it leaves is graded.

        Args:
            episode: reset.
            told: what the agent may know.
            k: number of the draw.

        Raises:
            SandboxError: the environment failed.
            ModelEndpointError: the way to the model failed.
            BudgetSpent: there is no money for another call.
        """


class Play:
    """An episode under way, and what ended it."""

    def __init__(self, episode: Episode, told: Told) -> None:
        self._episode = episode
        self._told = told
        self._calls = 0
        self.submits = submits_of(episode)
        """Tools that hand in."""
        self.ending: Ending | None = None
        """None while it goes on."""

    @property
    def calls(self) -> int:
        """Calls made, refused ones too."""
        return self._calls

    def call(self, tool: str, arguments: JSON) -> ToolResult:
        """Make a call."""
        over = self.ending is not None
        result = self._episode.call(tool, arguments)
        if over:
            return result
        self._calls += 1
        if result.done:
            if self._calls > self._told.turns:
                self.ending = Ending.TURN_BUDGET
            else:
                self.ending = Ending.SUBMITTED if tool in self.submits else Ending.OVER
        return result

    def malformed(self, text: str) -> ToolResult:
        """Record an action that is no call; the episode is over."""
        result = self._episode.malformed(text)
        if self.ending is None:
            self._calls += 1
            self.ending = Ending.MALFORMED
        return result

    def stop(self, why: Ending = Ending.STOPPED) -> Ending:
        """End the episode as it stands, unless it has ended; what ended it."""
        if self.ending is None:
            self._episode.stop()
            self.ending = why
        return self.ending


def submits_of(episode: Episode) -> frozenset[str]:
    """Names of the tools of an episode that hand in."""
    if isinstance(episode, WorldEpisode):
        return frozenset(name for name, tool in episode.task.model.tools.items() if tool.kind == "submit")
    return _WORKSPACE_SUBMITS
