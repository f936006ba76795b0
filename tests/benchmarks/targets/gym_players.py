"""The ledger in gymnasium: with texts as actions, written for it, and as envsynth emits it."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import ledger_pack
from gymnasium import spaces
from players.base import SUBMIT, Player
from rules import INSTRUCTION, Ledger, Refused
from script import Call
from texts import told

_CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"


class TextLedgerEnv(gymnasium.Env[Any, Any]):
    """An action is a JSON text `{"tool": ..., "arguments": {...}}`, an observation the answer's JSON text."""

    metadata = {"render_modes": []}

    def __init__(self) -> None:
        self.action_space = spaces.Text(10_000, min_length=0, charset=_CHARACTERS)
        text = spaces.Text(10_000, min_length=0, charset=_CHARACTERS)
        self.observation_space = spaces.Dict({"text": text, "turn": spaces.Discrete(1002)})
        self.ledger = Ledger()
        self.turn = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.ledger, self.turn = Ledger(), 0
        return {"text": INSTRUCTION, "turn": 0}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        call = json.loads(action)
        self.turn += 1
        if call["tool"] == "submit":
            return {"text": "", "turn": self.turn}, self.ledger.grade(), True, False, {}
        try:
            text, error = json.dumps(getattr(self.ledger, call["tool"])(**call["arguments"])), ""
        except Refused as refused:
            text, error = "", str(refused)
        return {"text": text, "turn": self.turn}, 0.0, False, False, {"error": error}


gymnasium.register("benchmark/TextLedger-v0", f"{__name__}:TextLedgerEnv", max_episode_steps=1000)


class TextsPlayer(Player):
    """`gymnasium.make` with the wrappers it puts on by itself."""

    note = "tools are looked up by name; arguments are not checked"
    env_id = "benchmark/TextLedger-v0"

    def __init__(self) -> None:
        self._env: Any = gymnasium.make(self.env_id)
        self.grades = False

    def versions(self) -> dict[str, str]:
        return {"gymnasium": gymnasium.__version__}

    def action(self, call: Call) -> Any:
        return json.dumps({"tool": call.tool, "arguments": call.arguments})

    def reset(self) -> None:
        self._env.reset()

    def act(self, action: Any) -> Any:
        return self._env.step(action)

    def answer(self, answered: Any) -> Any:
        return answered[4]["error"] or json.loads(answered[0]["text"])

    def finish(self) -> float:
        return float(self._env.step(self.action(SUBMIT))[1])

    def close(self) -> None:
        self._env.close()


class EmittedPlayer(TextsPlayer):
    """The pack's environment by its id, as its README has it."""

    note = "arguments are checked against the tool's schema, every call is in the transcript, SQL does the work"

    def __init__(self) -> None:
        self._env = gymnasium.make(f"ledger_pack:{ledger_pack.tasks()[0]['id']}-v0")
        self.grades = False

    def answer(self, answered: Any) -> Any:
        observation, _, _, _, info = answered
        return told(observation["text"]) if info["ok"] else info["error"]
