"""Episodes as gymnasium environments."""

from __future__ import annotations

import json
import marshal
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, overload

import gymnasium
from gymnasium import spaces
from gymnasium.vector.utils import shared_memory

from .contract import Episode, Grade, ToolResult
from .gym_actions import STOP, Actions, TextActions, WideText
from .observe import confine, render

MAX_OBSERVATION = 100_000
"""Characters."""

Observation = dict[str, Any]

_LENGTH_BYTES = 4
_CHARACTER_BYTES = 3
"""Longest UTF-8 form of a character of `character_set`."""


class ObservedText(WideText):
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


class ToolEnv(gymnasium.Env[Observation, Any]):
    """An episode whose actions are tool calls.

    An action is a JSON text `{"tool": name, "arguments": {...}}`, or what `actions` says; the empty text stops, and
    what was reached is graded. An observation is `text` (what the tool answered; the instruction at first) and `turn`
    (calls made so far). The reward is 0 until the episode is over, and then the grade's; the last `info["grade"]` has
    every component. Any other action that is no tool call ends the episode with gate 0.

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
        actions: Actions | None = None,
        render_mode: str | None = None,
    ) -> None:
        """An environment over one task.

        Args:
            open_episode: makes the episode; called at the first reset.
            task_id: told in every `info`.
            max_turns: tool calls that an episode may have.
            actions: how calls are spelt; None: as JSON texts.
            render_mode: none is known.
        """
        self.task_id = task_id
        self.render_mode = render_mode
        self.observation_space = spaces.Dict(
            {
                "text": ObservedText.of(0, MAX_OBSERVATION),
                "turn": spaces.Discrete(max_turns + 2),
            }
        )
        self._actions = actions or TextActions()
        self.action_space = self._actions.space
        self._max_turns = max_turns
        self._open_episode = open_episode
        self._episode: Episode | None = None
        self._tools = b""
        """As bytes of what makes fresh copies the quickest."""
        self._turn = 0
        self._done = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start afresh; `info["tools"]` has the tools' names, descriptions and JSON Schemas."""
        super().reset(seed=seed)
        if self._episode is None:
            self._episode = self._open_episode()
            self._tools = marshal.dumps(self._episode.tools())
        instruction = self._episode.reset(int(self.np_random.integers(2**31)))
        self._turn, self._done = 0, False
        return self._observe(instruction), {"task_id": self.task_id, "tools": marshal.loads(self._tools)}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make one tool call, or stop; `truncated` when the budget of calls is overdrawn."""
        if self._episode is None or self._done:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        call = self._actions.parse(action)
        if isinstance(call, str):
            result = self._episode.malformed(action if isinstance(action, str) else repr(action)[:MAX_OBSERVATION])
            result = result._replace(error=f"{result.error}: {call}")
        elif call is STOP:
            result = self._episode.stop()
        else:
            result = self._episode.call(call["tool"], call["arguments"])
        self._turn += call is not STOP
        self._done = result.done
        info = self._info(result)
        truncated = result.done and self._turn > self._max_turns
        reward = info["grade"]["reward"] if result.done else 0.0
        return self._observe(render(result)), reward, result.done and not truncated, truncated, info

    def render(self) -> None:
        """Nothing: there is no picture of a workspace or a world."""

    def __getstate__(self) -> dict[str, Any]:
        # An episode is a running sandbox, or a database in memory, of this process.
        return {**self.__dict__, "_episode": None, "_done": True}

    def close(self) -> None:
        """Free the episode."""
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


def grade_document(grade: Grade) -> dict[str, Any]:
    """A grade as plain, fresh values."""
    document: dict[str, Any] = json.loads(json.dumps(grade._asdict()))
    return document
