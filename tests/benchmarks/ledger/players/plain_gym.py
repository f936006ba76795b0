"""The ledger as a plain gymnasium environment: actions are arrays of integers, as in gymnasium's own examples."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from players.base import SUBMIT, Player
from rules import CLOSING, Ledger, Refused
from script import Call

_TOOLS = ("balance", "journal", "deposit", "withdraw", "transfer", "submit")
_MOST = 1_000_000


class LedgerEnv(gymnasium.Env[Any, Any]):
    """An action is tool, two accounts (0: none) and an amount; an observation the balances."""

    metadata = {"render_modes": []}

    def __init__(self) -> None:
        self.action_space = spaces.MultiDiscrete([len(_TOOLS), 4, 4, _MOST])
        self.observation_space = spaces.Box(0, np.iinfo(np.int64).max, (len(CLOSING),), np.int64)
        self.ledger = Ledger()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.ledger = Ledger()
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        number, one, two, amount = action.tolist()
        tool = _TOOLS[number]
        info: dict[str, Any] = {}
        if tool == "submit":
            return self._observe(), self.ledger.grade(), True, False, info
        try:
            info["result"] = self._use(tool, one, two, amount)
        except Refused as refused:
            info["refused"] = str(refused)
        return self._observe(), 0.0, False, False, info

    def _use(self, tool: str, one: int, two: int, amount: int) -> Any:
        if tool == "balance":
            return self.ledger.balance(one)
        if tool == "journal":
            return self.ledger.journal()
        if tool == "transfer":
            return self.ledger.transfer(one, two, amount)
        return self.ledger.deposit(one, amount) if tool == "deposit" else self.ledger.withdraw(one, amount)

    def _observe(self) -> Any:
        return np.array(list(self.ledger.balances.values()), dtype=np.int64)


gymnasium.register("benchmark/Ledger-v0", f"{__name__}:LedgerEnv", max_episode_steps=1000)


class GymnasiumPlayer(Player):
    """`gymnasium.make` with the wrappers it puts on by itself."""

    note = "integers in, integers out: no texts, no schema of tools"

    def __init__(self, env: Any = None) -> None:
        self._env: Any = env or gymnasium.make("benchmark/Ledger-v0")

    def versions(self) -> dict[str, str]:
        return {"gymnasium": gymnasium.__version__, "numpy": np.__version__}

    def action(self, call: Call) -> Any:
        given = call.arguments
        one = given.get("account", given.get("source", 0))
        return np.array([_TOOLS.index(call.tool), one, given.get("target", 0), given.get("amount", 0)], dtype=np.int64)

    def reset(self) -> None:
        self._env.reset()

    def act(self, action: Any) -> Any:
        return self._env.step(action)

    def answer(self, answered: Any) -> Any:
        info = answered[4]
        return info.get("refused") or info["result"]

    def fork(self) -> Player:
        return GymnasiumPlayer(copy.deepcopy(self._env))

    def close(self) -> None:
        self._env.close()

    def grade(self) -> float:
        return float(self._env.unwrapped.ledger.grade())

    def finish(self) -> float:
        return float(self._env.step(self.action(SUBMIT))[1])
