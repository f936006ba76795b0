"""The ledger in OpenEnv as envsynth emits it, in process; and both ledgers over a WebSocket, from a server process."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import socket
import subprocess
import sys
import time
import urllib.request
from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State
from players.base import SUBMIT, Player
from players.openenv_env import LedgerAction, LedgerEnvironment, LedgerObservation
from script import Call
from texts import told


class EmittedPlayer(Player):
    """`TaskEnvironment.step` with a `ToolAction` made of the agent's arguments each time."""

    note = "arguments are checked against the tool's schema, every call is in the transcript, SQL does the work"

    def __init__(self) -> None:
        from ledger_pack.environment import TaskEnvironment
        from ledger_pack.models import ToolAction

        self._env, self._action = TaskEnvironment(), ToolAction

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("openenv", "pydantic")}

    def action(self, call: Call) -> Any:
        return {"tool": call.tool, "arguments": call.arguments}

    def reset(self) -> None:
        self._env.reset()

    def act(self, action: Any) -> Any:
        return self._env.step(self._action(**action))

    def answer(self, answered: Any) -> Any:
        return told(answered.text)

    def grade(self) -> float:
        return float(self._env._player.rewards()["reward"])

    def finish(self) -> float:
        return float(self.act(self.action(SUBMIT)).reward)

    def close(self) -> None:
        self._env.close()


class LedgerClient(EnvClient[LedgerAction, LedgerObservation, State]):
    """After the template of `openenv init`."""

    def _step_payload(self, action: LedgerAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[LedgerObservation]:
        told = {"done": payload.get("done", False), "reward": payload.get("reward")}
        return StepResult(observation=LedgerObservation(**{**payload.get("observation", {}), **told}), **told)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(episode_id=payload.get("episode_id"), step_count=payload.get("step_count", 0))


class ServedPlayer(Player):
    """A client's `reset` and `step`; the server is a process of its own."""

    note = "processor time is that of client and server"
    grades = False

    def __init__(self) -> None:
        self._serve([sys.executable, __file__])
        self._client = LedgerClient(base_url=self._address).sync()
        self._client.connect()

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in ("openenv", "pydantic", "uvicorn", "websockets")}

    def action(self, call: Call) -> Any:
        return {"tool": call.tool, **call.arguments}

    def reset(self) -> None:
        self._client.reset()

    def act(self, action: Any) -> Any:
        return self._client.step(LedgerAction(**action))

    def answer(self, answered: Any) -> Any:
        return answered.observation.error or answered.observation.result

    def finish(self) -> float:
        return float(self.act(self.action(SUBMIT)).reward)

    def close(self) -> None:
        self._client.close()
        self._process.kill()
        self._process.wait()

    def _serve(self, command: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL, env=os.environ)
        self.server, self._address = self._process.pid, f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{self._address}/health", timeout=1).close()
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
            else:
                return
        raise SystemExit("the server did not come up")


class EmittedServedPlayer(ServedPlayer):
    """The same with the pack's client and server."""

    def __init__(self) -> None:
        from ledger_pack import TaskEnv, ToolAction

        self._action = ToolAction
        self._serve([sys.executable, "-m", "ledger_pack.server.app"])
        self._client = TaskEnv(base_url=self._address).sync()
        self._client.connect()

    def action(self, call: Call) -> Any:
        return {"tool": call.tool, "arguments": call.arguments}

    def act(self, action: Any) -> Any:
        return self._client.step(self._action(**action))

    def answer(self, answered: Any) -> Any:
        return told(answered.observation.text)


def main() -> None:
    """Serve the ledger that is written for OpenEnv."""
    import uvicorn
    from openenv.core.env_server.http_server import create_app

    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    app = create_app(LedgerEnvironment, LedgerAction, LedgerObservation, env_name="ledger", max_concurrent_envs=16)
    uvicorn.run(app, port=parser.parse_args().port, log_level="warning")


if __name__ == "__main__":
    main()
