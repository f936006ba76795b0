"""Episodes as gymnasium environments."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, overload

import gymnasium
from gymnasium import spaces
from gymnasium.vector.utils import shared_memory

from .contract import JSON, Episode, Grade, ToolResult
from .observe import character_set, confine, render

MAX_OBSERVATION = 100_000
"""Characters."""
MAX_ACTION = 2_000_000
"""Characters."""

Observation = dict[str, Any]

_LENGTH_BYTES = 4
_CHARACTER_BYTES = 3
"""Longest UTF-8 form of a character of `character_set`."""


class ObservedText(spaces.Text):
    """Text that crosses processes whole.

    gymnasium reads the shared memory of a plain `Text` once, when an asynchronous vector environment is made, and so
    gives the same meaningless text ever after.
    """

    @property
    def record_bytes(self) -> int:
        """Size of one text in shared memory: its length in bytes, then UTF-8."""
        return _LENGTH_BYTES + _CHARACTER_BYTES * self.max_length


class SharedTexts(Sequence[str]):
    """The latest text of each environment, read when asked for; a deep copy is a tuple of what they are now."""

    def __init__(self, memory: Any, record_bytes: int, count: int) -> None:
        self._memory = memory
        self._record_bytes = record_bytes
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        start = range(self._count)[index] * self._record_bytes
        record = memoryview(self._memory.get_obj()).cast("B")[start : start + self._record_bytes]
        length = int.from_bytes(record[:_LENGTH_BYTES], "little")
        return bytes(record[_LENGTH_BYTES : _LENGTH_BYTES + length]).decode()

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return repr(tuple(self))


@shared_memory.create_shared_memory.register
def _create_shared_text(space: ObservedText, n: int = 1, ctx: Any = multiprocessing) -> Any:
    return ctx.Array("B", n * space.record_bytes)


@shared_memory.read_from_shared_memory.register
def _read_shared_text(space: ObservedText, shared_memory: Any, n: int = 1) -> Any:
    return SharedTexts(shared_memory, space.record_bytes, n)


@shared_memory.write_to_shared_memory.register
def _write_shared_text(space: ObservedText, index: int, values: str, shared_memory: Any) -> None:
    raw = values.encode()
    record = len(raw).to_bytes(_LENGTH_BYTES, "little") + raw
    start = index * space.record_bytes
    memoryview(shared_memory.get_obj()).cast("B")[start : start + len(record)] = record


class ToolEnv(gymnasium.Env[Observation, str]):
    """An episode whose actions are tool calls.

    An action is a JSON text `{"tool": name, "arguments": {...}}`. An observation is `text` (what the tool answered; the
    instruction at first) and `turn` (calls made so far). The reward is 0 until the episode is over, and then the
    grade's; the last `info["grade"]` has every component. An action that is no tool call ends the episode with gate 0.

    A pickled or copied environment has no episode: reset it first.

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
                "text": ObservedText(MAX_OBSERVATION, min_length=0, charset=character_set()),
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

    def render(self) -> None:
        """Nothing: there is no picture of a workspace."""

    def __getstate__(self) -> dict[str, Any]:
        # A workspace is a running sandbox of this process.
        return {**self.__dict__, "_episode": None, "_done": True}

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
