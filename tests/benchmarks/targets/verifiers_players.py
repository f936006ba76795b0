"""The ledger in verifiers as envsynth emits it: an episode's trace and setup, its tools' MCP server, its score."""

from __future__ import annotations

from typing import Any

import verifiers.v1 as vf
from ledger_pack import TaskTaskset, taskset
from ledger_pack.through import HereTools
from ledger_pack.tools import TaskState, TaskToolsConfig
from mcp.server.mcpserver import MCPServer
from players.verifiers_env import McpPlayer
from texts import told
from verifiers.v1.trace import AgentInfo, TraceTask


class EmittedPlayer(McpPlayer):
    """As `McpPlayer`; a reset also begins the episode that the tools have, and a grade plays its calls again."""

    forks = False

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        self._task = next(iter(TaskTaskset(taskset.WorldTasksetConfig()).load()))
        self._agent = vf.AgentConfig()
        self._trace: Any = None
        self._equip()

    def answer(self, answered: Any) -> Any:
        return told(answered.content[0].text if hasattr(answered, "content") else answered[0].text)

    async def _score(self) -> float:
        # A rollout is graded once: no calls are remembered from the grade before.
        taskset._graded.cache_clear()
        return await super()._score()

    async def _begin(self) -> None:
        task = self._task
        row = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        self._hold(vf.Trace(task=row, state=TaskState(), agent=AgentInfo(config=self._agent)))
        await task.setup(self._trace, None)
        await self._toolset.setup_task(task.data)

    def _equip(self) -> None:
        self._toolset, self._server = HereTools(TaskToolsConfig()), MCPServer("ledger")
        self._run(self._toolset.setup_task(self._task.data))
        self._toolset.register(self._server)
