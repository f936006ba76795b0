"""The ledger as an OpenEnv environment, in process; after the template of `openenv init`."""

from __future__ import annotations

import copy
import importlib.metadata
from typing import Any, Literal
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.rubrics.base import Rubric
from players.base import SUBMIT, Player
from rules import INSTRUCTION, Ledger, Refused
from script import Call


class LedgerAction(Action):
    """One tool call."""

    tool: Literal["balance", "journal", "deposit", "withdraw", "transfer", "submit"]
    account: int | None = None
    source: int | None = None
    target: int | None = None
    amount: int | None = None


class LedgerObservation(Observation):
    """What a call was answered with."""

    result: Any = None
    error: str | None = None


class LedgerRubric(Rubric):
    """The reward of the end state."""

    def __init__(self, env: LedgerEnvironment) -> None:
        super().__init__()
        self._env = env

    def forward(self, action: Any, observation: Any) -> float:
        return self._env.ledger.grade()


class LedgerEnvironment(Environment):
    """The bank."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__(rubric=LedgerRubric(self))
        self.ledger = Ledger()
        self._state = State(episode_id=str(uuid4()), step_count=0)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> LedgerObservation:
        self._reset_rubric()
        self.ledger = Ledger()
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return LedgerObservation(result=INSTRUCTION, done=False, reward=0.0)

    def step(self, action: Any, timeout_s: float | None = None, **kwargs: Any) -> LedgerObservation:
        self._state.step_count += 1
        if action.tool == "submit":
            observation = LedgerObservation(done=True)
            observation.reward = self._apply_rubric(action, observation)
            return observation
        try:
            return LedgerObservation(result=self._use(action), done=False, reward=0.0)
        except Refused as refused:
            return LedgerObservation(error=str(refused), done=False, reward=0.0)

    @property
    def state(self) -> State:
        return self._state

    def _use(self, action: LedgerAction) -> Any:
        if action.tool == "balance":
            return self.ledger.balance(action.account)
        if action.tool == "journal":
            return self.ledger.journal()
        if action.tool == "transfer":
            return self.ledger.transfer(action.source, action.target, action.amount)
        return getattr(self.ledger, action.tool)(action.account, action.amount)


class OpenEnvPlayer(Player):
    """`Environment.step` with an `Action` made of the agent's arguments each time."""

    def __init__(self, env: LedgerEnvironment | None = None) -> None:
        self._env = env or LedgerEnvironment()

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("openenv", "pydantic")}

    def action(self, call: Call) -> Any:
        return {"tool": call.tool, **call.arguments}

    def reset(self) -> None:
        self._env.reset()

    def act(self, action: Any) -> Any:
        return self._env.step(LedgerAction(**action))

    def answer(self, answered: Any) -> Any:
        return answered.error or answered.result

    def fork(self) -> Player:
        return OpenEnvPlayer(copy.deepcopy(self._env))

    def close(self) -> None:
        self._env.close()

    def grade(self) -> float:
        return self._env.rubric(None, None)

    def finish(self) -> float:
        return self.act(self.action(SUBMIT)).reward
