"""The ledger as a skyrl-gym environment: text in, text out, tools in a `ToolGroup`; after its `SearchCodeEnv`."""

from __future__ import annotations

import copy
import importlib.metadata
import json
import re
from typing import Any

import skyrl_gym
from players.base import Player
from rules import INSTRUCTION, Ledger, Refused
from script import Call
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput
from skyrl_gym.tools.core import ToolGroup, tool


class LedgerTools(ToolGroup):
    """The bank's counter."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        super().__init__(name="LedgerTools")

    @tool
    def balance(self, account: int) -> Any:
        return self._ledger.balance(account)

    @tool
    def journal(self) -> Any:
        return self._ledger.journal()

    @tool
    def deposit(self, account: int, amount: int) -> Any:
        return self._ledger.deposit(account, amount)

    @tool
    def withdraw(self, account: int, amount: int) -> Any:
        return self._ledger.withdraw(account, amount)

    @tool
    def transfer(self, source: int, target: int, amount: int) -> Any:
        return self._ledger.transfer(source, target, amount)


class LedgerTextEnv(BaseTextEnv):
    """The bank; `<tool><name>[arguments]</name></tool>` calls, `<solution></solution>` ends."""

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.max_turns = (extras or {}).get("max_turns", 2)
        self.ledger = Ledger()
        self.init_tool_groups([LedgerTools(self.ledger)])
        self.chat_history: list[dict[str, str]] = []

    def step(self, action: str) -> BaseTextEnvStepOutput:
        self.turns += 1
        self.chat_history.append({"role": "assistant", "content": action})
        if self.turns >= self.max_turns or ("<solution>" in action and "</solution>" in action):
            return BaseTextEnvStepOutput(observations=[], reward=self.ledger.grade(), done=True, metadata={})
        name, group = None, None
        try:
            group, name, given = self._parse(action)
            content = json.dumps(self._execute_tool(group, name, given))
        except (Refused, ValueError, KeyError, TypeError) as error:
            content = f"error: {error}"
        observed = {"role": "user", "content": content}
        self.chat_history.append(observed)
        tools = [found.get_tool_names() for found in self.tool_groups]
        known = {"tool_group": group, "tool_name": name, "tools": tools}
        return BaseTextEnvStepOutput(observations=[observed], reward=0, done=False, metadata=known)

    def _parse(self, action: str) -> tuple[str, str, Any]:
        block = re.search(r"<tool>(.*?)</tool>", action, re.DOTALL)
        inner = re.search(r"<(\w+)>(.*?)</\1>", block.group(1).strip(), re.DOTALL) if block else None
        if inner is None:
            raise ValueError("No <tool>...</tool> block found in action string.")
        name = inner.group(1)
        if name not in self.tool_to_toolgroup:
            raise ValueError(f"Tool '{name}' not found in any registered tool group.")
        return self.tool_to_toolgroup[name], name, json.loads(inner.group(2).strip())


skyrl_gym.register(id="ledger", entry_point=LedgerTextEnv)
_PROMPT = [{"role": "user", "content": INSTRUCTION}]


class SkyrlPlayer(Player):
    """`skyrl_gym.make` and `init` an episode, `step` a call."""

    note = "there is no reset: an environment is made for every episode"

    def __init__(self, env: Any = None) -> None:
        self._env = env

    def versions(self) -> dict[str, str]:
        return {"skyrl-gym": importlib.metadata.version("skyrl-gym")}

    def action(self, call: Call) -> Any:
        return f"<tool><{call.tool}>{json.dumps(list(call.arguments.values()))}</{call.tool}></tool>"

    def reset(self) -> None:
        self._env = skyrl_gym.make("ledger", env_config={}, extras={"max_turns": 1000})
        self._env.init(_PROMPT)

    def act(self, action: Any) -> Any:
        return self._env.step(action)

    def answer(self, answered: Any) -> Any:
        content = answered["observations"][0]["content"]
        return content.removeprefix("error: ") if content.startswith("error: ") else json.loads(content)

    def fork(self) -> Player:
        return SkyrlPlayer(copy.deepcopy(self._env))

    def grade(self) -> float:
        return float(self._env.ledger.grade())

    def finish(self) -> float:
        return float(self._env.step("<solution></solution>")["reward"])
