"""Episodes as gymnasium environments."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces

from .contract import JSON, Episode, Grade, ToolResult
from .observe import character_set, confine, render

MAX_OBSERVATION = 100_000
"""Characters."""
MAX_ACTION = 2_000_000
"""Characters."""

Observation = dict[str, Any]


class ToolEnv(gymnasium.Env[Observation, str]):
    """An episode whose actions are tool calls.

    An action is a JSON text `{"tool": name, "arguments": {...}}`. An observation is `text` (what the tool answered; the
    instruction at first) and `turn` (calls made so far). The reward is 0 until the episode is over, and then the
    grade's; the last `info["grade"]` has every component. An action that is no tool call ends the episode with gate 0.

    Raises, from `reset` and `step`:
        SandboxError: the environment failed. Throw the episode away; it says nothing about the agent.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        open_episode: Callable[[], Episode],
        *,
        task_id: str,
        max_turns: int,
        render_mode: str | None = None,
    ) -> None:
        """An environment over one task.

        Args:
            open_episode: makes the episode; called at the first reset.
            task_id: told in every `info`.
            max_turns: tool calls that an episode may have.
            render_mode: none is known.
        """
        self.task_id = task_id
        self.render_mode = render_mode
        self.observation_space = spaces.Dict(
            {
                "text": spaces.Text(MAX_OBSERVATION, min_length=0, charset=character_set()),
                "turn": spaces.Discrete(max_turns + 2),
            }
        )
        self.action_space = spaces.Text(MAX_ACTION, min_length=0, charset=character_set())
        self._max_turns = max_turns
        self._open_episode = open_episode
        self._episode: Episode | None = None
        self._turn = 0
        self._done = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start afresh; `info["tools"]` has the tools' names, descriptions and JSON Schemas."""
        super().reset(seed=seed)
        if self._episode is None:
            self._episode = self._open_episode()
        instruction = self._episode.reset(int(self.np_random.integers(2**31)))
        self._turn, self._done = 0, False
        return self._observe(instruction), {"task_id": self.task_id, "tools": self._episode.tools()}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make one tool call; `truncated` when the budget of calls is overdrawn."""
        if self._episode is None or self._done:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        call = parse_action(action)
        if isinstance(call, str):
            result = self._episode.malformed(action if isinstance(action, str) else "")
            result = result._replace(error=f"{result.error}: {call}")
        else:
            result = self._episode.call(call["tool"], call["arguments"])
        self._turn += 1
        self._done = result.done
        info = self._info(result)
        truncated = result.done and self._turn > self._max_turns
        reward = info["grade"]["reward"] if result.done else 0.0
        return self._observe(render(result)), reward, result.done and not truncated, truncated, info

    def close(self) -> None:
        """Free the workspace."""
        episode, self._episode, self._done = self._episode, None, True
        if episode is not None:
            episode.close()

    def _observe(self, text: str) -> Observation:
        return {"text": confine(text, limit=MAX_OBSERVATION), "turn": self._turn}

    def _info(self, result: ToolResult) -> dict[str, Any]:
        info: dict[str, Any] = {"task_id": self.task_id, "ok": result.ok, "error": result.error}
        if result.done and self._episode is not None:
            info["grade"] = grade_document(self._episode.grade())
        return info


def parse_action(action: str) -> JSON:
    """The call of an action, as `{"tool": …, "arguments": …}`, or a text saying why it is none."""
    if not isinstance(action, str):
        return "it is not a text"
    if len(action) > MAX_ACTION:
        return f"it is longer than {MAX_ACTION} characters"
    try:
        call = json.loads(action, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        return 'it is not an object with "tool" and "arguments"'
    if not call.keys() <= {"tool", "arguments"} or not isinstance(call.get("arguments", {}), dict):
        return 'it has other fields than "tool" and "arguments", or arguments that are no object'
    return {"tool": call["tool"], "arguments": call.get("arguments", {})}


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


def grade_document(grade: Grade) -> dict[str, Any]:
    """A grade as plain, fresh values."""
    document: dict[str, Any] = json.loads(json.dumps(grade._asdict()))
    return document
