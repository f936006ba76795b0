"""Every way to hold an episode that needs no target installed, behind one face: for laws that hold for all of them.

The emitted packages are imported as they are. Of targets that are not installed stand-ins are put in place, which do no
more than the real ones do at the same call; that of verifiers sends state back and forth as its servers do.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.models import Task
from envsynth.runtime.pack import Pack
from envsynth.runtime.player import Player


class Runner:
    """One place where episodes are played, one after the other."""

    pooled = True
    """Whether another episode may begin in it."""
    parallel = True
    """Whether calls of one turn may come together."""
    known_only = False
    """Whether the target itself answers calls of tools that it does not know."""

    def __init__(self, package: Any) -> None:
        self.package = package

    player: Any

    def begin(self, task: str) -> Any:
        """Start a task; what is told."""
        raise NotImplementedError

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """One call; all that comes back."""
        raise NotImplementedError

    def together(self, calls: Sequence[tuple[str, dict[str, Any]]], in_threads: Callable[..., list[Any]]) -> list[Any]:
        """Calls of one turn at once; what each was answered."""
        return in_threads(lambda call: self.call(*call), calls)

    def malformed(self) -> Any:
        """An action that is no call, where such can be made."""
        return self.player.malformed("?")

    @property
    def episode(self) -> Any:
        """What is played."""
        return self.player._episode

    def rewards(self) -> Any:
        """Every component."""
        return self.player.rewards()

    def close(self) -> None:
        """Free it."""
        self.player.close()


class OfPlayer(Runner):
    """The pack's own player."""

    format = "trl"

    def __init__(self, package: Any) -> None:
        super().__init__(package)
        folder = Path(package.__file__).parent
        self.player = Player(Pack(folder, name=package.__name__))

    def begin(self, task: str) -> Any:
        return self.player.begin(task)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.player.call(tool, arguments)


class OfTrl(Runner):
    """An emitted environment class of TRL; one object of each class, as its trainer pools them."""

    format = "trl"

    def __init__(self, package: Any) -> None:
        super().__init__(package)
        self._rows = {row["task"]: row for row in package.rows()}
        self._classes = package.environments()
        self._pool: dict[str, Any] = {}
        self._env: Any = None

    @property
    def player(self) -> Any:  # type: ignore[override]
        return self._env._player

    def begin(self, task: str) -> Any:
        row = self._rows[task]
        name = row["environment"]
        self._env = self._pool.setdefault(name, None) or self._classes[name]()
        self._pool[name] = self._env
        return self._env.reset(**row)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        method = getattr(self._env, tool, None) if tool.isidentifier() and not tool.startswith("_") else None
        if method is None or tool in ("reset", "get_reward"):
            return self._env._call(tool, arguments)
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError:
            return self._env._call(tool, arguments)
        return method(**arguments)

    def rewards(self) -> Any:
        return {**self._env._rewards(), "told": self._env.get_reward()}

    def close(self) -> None:
        for env in self._pool.values():
            env._player.close()


class OfGymnasium(Runner):
    """An emitted gymnasium environment a task; an action is one call, and steps never come together."""

    format = "gymnasium"
    parallel = False

    def __init__(self, package: Any) -> None:
        super().__init__(package)
        self._envs: dict[str, Any] = {}
        self._last: Any = None

    def begin(self, task: str) -> Any:
        env = self._envs.get(task) or self.package.TaskEnv(task)
        self._envs[task], self._env = env, env
        self._last = env.reset(seed=7)
        return self._last

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self._step(json.dumps({"tool": tool, "arguments": arguments}))

    def malformed(self) -> Any:
        return self._step("?")

    def _step(self, action: str) -> Any:
        if self._env._done:
            return "over"
        self._last = self._env.step(action)
        return self._last

    @property
    def episode(self) -> Any:
        return self._env._episode

    def rewards(self) -> Any:
        return [self._last, self._env._episode.grade()]

    def close(self) -> None:
        for env in self._envs.values():
            env.close()


class OfOpenEnv(Runner):
    """The emitted environment of OpenEnv."""

    format = "openenv"

    def __init__(self, package: Any) -> None:
        super().__init__(package)
        self.env = package.environment.TaskEnvironment()

    @property
    def player(self) -> Any:  # type: ignore[override]
        return self.env._player

    def begin(self, task: str) -> Any:
        return self.env.reset(task=task).model_dump()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.env.step(self.package.ToolAction(tool=tool, arguments=arguments)).model_dump()

    def rewards(self) -> Any:
        return [self.player.rewards(), self.env.state.model_dump()]


class OfMcp(Runner):
    """The emitted MCP server's episode: a process for each, so that none begins in another's place."""

    format = "mcp"
    pooled = False

    def begin(self, task: str) -> Any:
        self.server = self.package.server.Episode(task, None)
        self.player = self.server._player
        return self.server.instruction

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return asyncio.run(self._called(tool, arguments))

    async def _called(self, tool: str, arguments: dict[str, Any]) -> Any:
        result = await self.server.call_tool(None, SimpleNamespace(name=tool, arguments=arguments))
        return result.content[0].text

    def together(self, calls: Sequence[tuple[str, dict[str, Any]]], in_threads: Callable[..., list[Any]]) -> list[Any]:
        async def every() -> list[Any]:
            return await asyncio.gather(*(self._called(*call) for call in calls))

        return asyncio.run(every())


class OfVerifiers(Runner):
    """The emitted toolset of verifiers and its server's tools; the state travels around every call."""

    format = "verifiers"
    pooled = False
    known_only = True

    def begin(self, task: str) -> Any:
        self.toolset = self.package.tools.TaskTools(self.package.tools.TaskToolsConfig())
        self.player = self.toolset._player
        self.server = SimpleNamespace(_tool_manager=SimpleNamespace(_tools={}))
        asyncio.run(self.toolset.setup_task(SimpleNamespace(task_id=task)))
        self.toolset.register(self.server)
        return sorted(self.server._tool_manager._tools)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return asyncio.run(self._called(tool, arguments))

    async def _called(self, tool: str, arguments: dict[str, Any]) -> Any:
        known = self.server._tool_manager._tools.get(tool)
        return "unknown" if known is None else await known.fn(arguments)

    def together(self, calls: Sequence[tuple[str, dict[str, Any]]], in_threads: Callable[..., list[Any]]) -> list[Any]:
        async def every() -> list[Any]:
            return await asyncio.gather(*(self._called(*call) for call in calls))

        return asyncio.run(every())

    def rewards(self) -> Any:
        made = self.toolset.sent.calls
        return [self.player.rewards(), made, self.package.taskset.rewards_of(self.player.task, made)]


RUNNERS: tuple[type[Any], ...] = (OfPlayer, OfTrl, OfGymnasium, OfOpenEnv, OfMcp, OfVerifiers)


# --- stand-ins --------------------------------------------------------------------------------------------------

_C, _S = TypeVar("_C"), TypeVar("_S")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Observation(_Strict):
    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = {}


class _State(BaseModel):
    episode_id: str | None = None
    step_count: int = 0


class _Toolset(Generic[_C, _S]):
    """As in verifiers 0.4: the state is fetched before a call and sent whole after it; the last one wins."""

    def __init__(self, config: Any) -> None:
        self.sent = sys.modules["verifiers.v1"].state_class()
        self.state = self.sent

    def _with_state(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapper(*given: Any) -> Any:
            fetched = self.sent.model_copy(deep=True)
            await asyncio.sleep(0)
            self.state = fetched
            result = fn(*given)
            await asyncio.sleep(0)
            self.sent = fetched
            return result

        return wrapper


class _VfState(BaseModel):
    def __init_subclass__(cls) -> None:
        sys.modules["verifiers.v1"].state_class = cls  # type: ignore[attr-defined]


class _Of(Generic[_C, _S]):
    """A generic base."""


class _Three:
    def __class_getitem__(cls, _: Any) -> Any:
        return cls


def _record(*_: Any, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**fields)


def _as_is(*given: Any, **_: Any) -> Any:
    return given[0] if given else _as_is


STAND_INS: dict[str, dict[str, Any]] = {
    "openenv": {}, "openenv.core": {"EnvClient": _Three}, "openenv.core.client_types": {"StepResult": _record},
    "openenv.core.env_server": {}, "openenv.core.env_server.interfaces": {"Environment": object},
    "openenv.core.env_server.types": {"State": _State, "Action": _Strict, "Observation": _Observation},
    "mcp": {}, "mcp.server": {}, "mcp.server.lowlevel": {"Server": object}, "mcp.server.stdio": {"stdio_server": None},
    "mcp_types": dict.fromkeys(("Tool", "ListToolsResult", "CallToolResult", "TextContent"), _record),
    "mcp.server.mcpserver": {"MCPServer": object}, "mcp.server.mcpserver.tools": {},
    "mcp.server.mcpserver.tools.base": {"Tool": _record}, "mcp.server.mcpserver.utilities": {},
    "mcp.server.mcpserver.utilities.func_metadata": {"ArgModelBase": BaseModel, "FuncMetadata": BaseModel},
    "verifiers": {},
    "verifiers.v1": {
        "Toolset": _Toolset, "ToolsetConfig": BaseModel, "State": _VfState, "TaskData": BaseModel,
        "TaskConfig": BaseModel, "Task": _Three, "Taskset": _Three, "TasksetConfig": BaseModel, "stop": _as_is,
        "metric": _as_is, "reward": _as_is,
    },
}  # fmt: skip
INSIDE = {"openenv": ("environment",), "mcp": ("server",), "verifiers": ("tools", "taskset")}
"""Modules of emitted packages that runners use, by format."""


@contextmanager
def imported(tasks: Sequence[Task], blobs: Cache, folder: Path) -> Iterator[dict[str, Any]]:
    """The emitted packages by format, importable; with stand-ins for what is not installed."""
    formats = sorted({runner.format for runner in RUNNERS})
    before, path = dict(sys.modules), list(sys.path)
    try:
        for name, contents in STAND_INS.items():
            sys.modules[name] = module = ModuleType(name)
            module.__dict__.update(contents)
        found = {}
        for name in formats:
            pack = plugins.load("exporters", name)().export(tasks, blobs, folder / f"law-{name}-pack", {})
            sys.path.insert(0, str(pack))
            found[name] = importlib.import_module(f"law_{name}_pack")
            for inside in INSIDE.get(name, ()):
                importlib.import_module(f"law_{name}_pack.{inside}")
        yield found
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - set(before):
            if name.split(".")[0] in STAND_INS or name.startswith("law_"):
                del sys.modules[name]
        sys.modules.update({name: before[name] for name in STAND_INS if name in before})
