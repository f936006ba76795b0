"""The ledger as an envsynth world: played directly, and through the gymnasium adapter."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import gymnasium
import yaml
from players.base import SUBMIT, Player
from script import Call

import envsynth
from envsynth.models import Budget, Verifier, World
from envsynth.runtime.gym import ToolEnv
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

DOCUMENT = Path(__file__).parents[1] / "ledger.yaml"


def ledger() -> WorldTask:
    """The task of `ledger.yaml`."""
    document = yaml.safe_load(DOCUMENT.read_text("utf-8"))
    return task_of(document["world"], document["task"])


def task_of(world: Any, task: Any) -> WorldTask:
    """A task out of documents as people write them."""
    candidate = {
        "instruction": task["instruction"],
        "verifier": Verifier.model_validate(task["verifier"]).document(),
        "budget": Budget.model_validate(task["budget"]).document(),
    }
    return WorldTask({"candidate": candidate}, WorldModel(World.model_validate(world).document()), task_id=world["id"])


def _versions() -> dict[str, str]:
    return {"envsynth": envsynth.__version__, "SQLite": sqlite3.sqlite_version}


class EnvsynthPlayer(Player):
    """`WorldEpisode`: arguments are checked against the tool's schema, every call is in the trace."""

    def __init__(self, episode: WorldEpisode | None = None) -> None:
        self._episode = episode or WorldEpisode(ledger())

    def versions(self) -> dict[str, str]:
        return _versions()

    def action(self, call: Call) -> Any:
        return call

    def reset(self) -> None:
        self._episode.reset()

    def act(self, action: Any) -> Any:
        return self._episode.call(action[0], action[1])

    def answer(self, answered: Any) -> Any:
        return answered.result if answered.ok else answered.error

    def fork(self) -> Player:
        return EnvsynthPlayer(self._episode.fork())

    def close(self) -> None:
        self._episode.close()

    def grade(self) -> float:
        return self._episode.grade().reward

    def finish(self) -> float:
        self.act(SUBMIT)
        return self.grade()


class AdapterPlayer(Player):
    """`ToolEnv`: actions and observations are texts."""

    forks = grades = False

    def __init__(self) -> None:
        task = ledger()
        self._env = ToolEnv(lambda: WorldEpisode(task), task_id=task.id, max_turns=task.turns)

    def versions(self) -> dict[str, str]:
        return {**_versions(), "gymnasium": gymnasium.__version__}

    def action(self, call: Call) -> Any:
        return json.dumps({"tool": call.tool, "arguments": call.arguments})

    def reset(self) -> None:
        self._env.reset()

    def act(self, action: Any) -> Any:
        return self._env.step(action)

    def answer(self, answered: Any) -> Any:
        observation, _, _, _, info = answered
        return _read(observation["text"]) if info["ok"] else info["error"]

    def finish(self) -> float:
        return float(self._env.step(self.action(SUBMIT))[1])


def _read(text: str) -> Any:
    """The result that an observation tells: rows a line each, or fields."""
    lines = text.split("\n")
    if lines[0].startswith("{"):
        return [json.loads(line) for line in lines]
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in lines)}
