"""The ledger as a verifiers v1 task with a toolset, in process: tools called directly, and through its MCP server."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Coroutine, Sequence
from typing import Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from players.base import Player
from rules import INSTRUCTION, OPENING, Ledger, Refused
from script import Call
from verifiers.v1.trace import AgentInfo, TraceTask


class LedgerData(vf.TaskData):
    """One row."""

    opening: dict[int, int]


class LedgerState(vf.State):
    """What tools and rewards share."""

    balances: dict[int, int] = {}
    entries: list[tuple[str, int | None, int | None, int]] = []

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.balances, self.entries)


class LedgerTask(vf.Task[LedgerData, LedgerState, vf.TaskConfig]):
    """Opens the accounts and grades the end state."""

    async def setup(self, trace: Any, runtime: Any) -> None:
        trace.state.balances = dict(self.data.opening)

    @vf.reward(weight=1.0)
    async def end_state(self, trace: Any) -> float:
        return trace.state.ledger.grade()


class LedgerToolset(vf.Toolset[vf.ToolsetConfig, LedgerState]):
    """The bank's counter."""

    TOOL_PREFIX = None

    @vf.tool
    def balance(self, account: int) -> dict[str, Any]:
        """Balance of an account."""
        return self.state.ledger.balance(account)

    @vf.tool
    def journal(self) -> list[dict[str, Any]]:
        """The last ten bookings, latest first."""
        return self.state.ledger.journal()

    @vf.tool
    def deposit(self, account: int, amount: int) -> dict[str, Any]:
        """Pay into an account."""
        return self.state.ledger.deposit(account, amount)

    @vf.tool
    def withdraw(self, account: int, amount: int) -> dict[str, Any]:
        """Take out of an account."""
        try:
            return self.state.ledger.withdraw(account, amount)
        except Refused as refused:
            return {"error": str(refused)}

    @vf.tool
    def transfer(self, source: int, target: int, amount: int) -> dict[str, Any]:
        """Move money between two accounts."""
        try:
            return self.state.ledger.transfer(source, target, amount)
        except Refused as refused:
            return {"error": str(refused)}


class LocalToolset(LedgerToolset):
    """The same, with the state at hand where verifiers fetches and sends it over HTTP for every call."""

    async def _pull_state(self) -> Any:
        return self._inert_state

    async def _push_state(self, before: bytes) -> None:
        self._state_adapter.dump_json(self._inert_state)


class VerifiersPlayer(Player):
    """A `Trace` and `Task.setup` an episode, the toolset's method a call, `Task.score` a grade."""

    note = "no MCP, no HTTP, no check of arguments: the tool's method itself, as no rollout of verifiers calls it"

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._task = LedgerTask(LedgerData(prompt=INSTRUCTION, opening=OPENING))
        self._agent = vf.AgentConfig()
        self._trace: Any = None
        self._equip()

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("verifiers", "mcp", "pydantic")}

    def action(self, call: Call) -> Any:
        return call

    def reset(self) -> None:
        # Nothing in it waits, so that no loop is needed, which would take a good part of the time.
        try:
            self._begin().send(None)
        except StopIteration:
            return
        raise RuntimeError("the task's setup waits for something")

    def act(self, action: Any) -> Any:
        return self._methods[action[0]](**action[1])

    def answer(self, answered: Any) -> Any:
        return answered.get("error", answered) if isinstance(answered, dict) else answered

    def fork(self) -> Player:
        return self._twin(self._trace.model_copy(deep=True))

    def grade(self) -> float:
        return float(self._run(self._score()))

    def finish(self) -> float:
        return self.grade()

    def grades_made(self, count: int) -> None:
        async def work() -> None:
            for _ in range(count):
                await self._score()

        self._run(work())

    def episodes(self, actions: Sequence[Any], count: int) -> None:
        async def work() -> None:
            for _ in range(count):
                await self._begin()
                for action in actions:
                    await self._take(action)
                await self._score()

        self._run(work())

    async def _take(self, action: Any) -> Any:
        return self.act(action)

    async def _begin(self) -> None:
        task = self._task
        row = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        self._hold(vf.Trace(task=row, state=LedgerState(), agent=AgentInfo(config=self._agent)))
        await task.setup(self._trace, None)

    async def _score(self) -> float:
        await self._task.score(self._trace)
        return float(self._trace.reward)

    def _hold(self, trace: Any) -> None:
        self._trace = trace
        self._toolset._inert_state = trace.state

    def _equip(self) -> None:
        self._toolset = LocalToolset(vf.ToolsetConfig())
        self._methods = {name: getattr(self._toolset, name) for name in vars(LedgerToolset) if name in dir(Ledger)}

    def _twin(self, trace: Any) -> VerifiersPlayer:
        """A player on another trace that shares what is no state: the task, the loop."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._equip()
        twin._hold(trace)
        return twin

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)


class McpPlayer(VerifiersPlayer):
    """As `VerifiersPlayer`, each call through the MCP server that verifiers serves tools with, without its HTTP."""

    note = "MCP in process; a rollout of verifiers adds HTTP for the call, and twice for the state"

    def _equip(self) -> None:
        super()._equip()
        self._server = MCPServer("ledger")
        self._toolset.register(self._server)

    def act(self, action: Any) -> Any:
        return self._run(self._take(action))

    def answer(self, answered: Any) -> Any:
        found = answered.structured_content
        found = found.get("result", found)
        return found.get("error", found) if isinstance(found, dict) else found

    def acts(self, actions: Sequence[Any], count: int) -> None:
        async def work() -> None:
            for _ in range(count):
                for action in actions:
                    await self._take(action)

        self._run(work())

    async def _take(self, action: Any) -> Any:
        return await self._server.call_tool(action[0], action[1])
