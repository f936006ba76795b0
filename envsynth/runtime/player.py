"""One episode at a time for trainers' own runtimes: names and texts in, texts and numbers out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Concatenate, ParamSpec, TypeVar

from ..errors import SandboxError
from .contract import JSON, Episode
from .observe import cut, render
from .pack import Pack
from .rewards import reward_vector

MAX_TEXT = 100_000
"""Characters of a result that an agent is shown."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_play(method: Callable[Concatenate[Player, Episode, _P], _R]) -> Callable[Concatenate[Player, _P], _R]:
    """One call at a time on the episode; whatever it raises is a failed environment."""

    @wraps(method)
    def alone(self: Player, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self._lock:
            if self._failed:
                raise SandboxError(
                    "the environment has failed", where=self._task, cause="an earlier call found it so",
                    next_step="throw the episode away and begin another",
                )  # fmt: skip
            if self._episode is None:
                raise RuntimeError("no task was begun")
            try:
                return method(self, self._episode, *args, **kwargs)
            except BaseException:
                self._failed = True
                raise

    return alone


class Player:
    """Plays tasks of a pack, one after the other. Parallel calls of one turn take turns.

    What is shown of a call is text; mistakes are told as text that begins with `error:`. A result says nothing of the
    reward before the episode is over. Once the environment failed there is no grade until another task is begun: many
    trainers tell a tool's exception to the model and go on.
    """

    def __init__(self, pack: Pack, *, sandbox: str = "", cache_dir: Path | None = None) -> None:
        """A player without an episode.

        Args:
            pack: whose tasks are played.
            sandbox: for workspaces; as for `Pack.open`.
            cache_dir: for workspaces; as for `Pack.open`.
        """
        self._pack = pack
        self._sandbox = sandbox
        self._cache_dir = cache_dir
        self._lock = RLock()
        self._task = ""
        self._episode: Episode | None = None
        self._failed = False
        self.done = False
        """Whether the episode is over."""

    @property
    def task(self) -> str:
        """Id of the task that is played; empty before the first."""
        return self._task

    def begin(self, task: str) -> str:
        """Start a task afresh, whatever was played before; returns its instruction.

        Raises:
            ConfigError: no such task.
            SandboxError: the environment failed.
        """
        with self._lock:
            if self._episode is None or self._failed or task != self._task:
                self.close()
                self._failed = False
                self._episode = self._pack.open(task, sandbox=self._sandbox, cache_dir=self._cache_dir)
                self._task = task
            self.done = False
            return self._reset()

    def tools(self) -> list[JSON]:
        """Name, description and JSON Schema parameters of the task's tools."""
        return self._pack.tools(self._task)

    @_in_play
    def call(self, episode: Episode, tool: str, arguments: JSON) -> str:
        """One tool call: what the agent is shown of it.

        Raises:
            SandboxError: the environment failed; the episode says nothing about the agent.
        """
        result = episode.call(tool, arguments)
        self.done = result.done
        return cut(render(result), limit=MAX_TEXT)

    def call_text(self, tool: str, arguments: str) -> str:
        """As `call`, with arguments as the JSON text that a model wrote; no JSON object at all ends the episode."""
        try:
            parsed = json.loads(arguments or "{}", parse_constant=_no_number)
        except (ValueError, RecursionError):
            parsed = None
        return self.call(tool, parsed) if isinstance(parsed, dict) else self.malformed(arguments)

    def play(self, calls: Iterable[JSON]) -> dict[str, float]:
        """Make calls until the episode is over; returns the components of what was reached.

        Args:
            calls: each with `tool` and `arguments`.
        """
        for call in calls:
            if self.done:
                break
            self.call(call["tool"], call["arguments"])
        return self.rewards()

    @_in_play
    def malformed(self, episode: Episode, text: str) -> str:
        """An action that is no tool call: the episode is over, and its gate is 0.

        Raises:
            SandboxError: the environment failed; the episode says nothing about the agent.
        """
        result = episode.malformed(text)
        self.done = result.done
        return cut(render(result), limit=MAX_TEXT)

    @_in_play
    def stop(self, episode: Episode) -> None:
        """The agent has nothing more to do; what was reached is graded.

        Raises:
            SandboxError: the environment failed; the episode says nothing about the agent.
        """
        episode.stop()
        self.done = True

    @_in_play
    def rewards(self, episode: Episode) -> dict[str, float]:
        """Every component of the present grade: `rewards.reward_vector`.

        Raises:
            SandboxError: the environment failed; there is no grade.
        """
        return reward_vector(episode.grade())

    @_in_play
    def _reset(self, episode: Episode) -> str:
        return episode.reset()

    def close(self) -> None:
        """Free the episode; safe to call twice."""
        with self._lock:
            episode, self._episode = self._episode, None
            if episode is not None:
                episode.close()


def _no_number(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")
