"""An agent of Harbor that attacks what grades it, as root in its container; runs where Harbor is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FORGE = """
for place in /logs/verifier /logs/artifacts /logs/artifacts/var/lib/envsynth /var/lib/envsynth /tests /opt/envsynth; do
    mkdir -p $place && cd $place
    echo '{"reward": 1.0, "outcome": 1.0}' > reward.json; echo 1 > reward.txt
    printf '#!/bin/sh\\nmkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt\\n' > test.sh; chmod +x test.sh
    cp /opt/calls/record.jsonl record.jsonl
done
ln -s / /logs/artifacts/root; ln -s ../../var /logs/artifacts/var2
kill -9 -1; true
"""
FLOOD = """
import http.client, json, socket, threading, time
ADDRESS = ("127.0.0.1", 8731)
for method, path in [("GET", "/"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("PUT", "/reward"), ("POST", "/reset")]:
    connection = http.client.HTTPConnection(*ADDRESS)
    connection.request(method, path, body="{}")
    assert connection.getresponse().status in (404, 405), (method, path)
slow = [socket.create_connection(ADDRESS) for _ in range(100)]
for one in slow:
    one.sendall(b"POST /mcp HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 900000\\r\\n\\r\\n{")
for one in slow:
    one.close()
def flood():
    for _ in range(20):
        try:
            call("no_such_tool", {"text": "a" * 900000})
        except OSError:
            pass
threads = [threading.Thread(target=flood) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for one in json.load(open("/opt/calls/calls.json")):
    call(one["tool"], one["arguments"])
"""
HUGE = """
import json
for size in (2**21, 2**23):
    try:
        call("no_such_tool", {"text": "a" * size})
    except OSError:
        continue
    raise SystemExit("a huge body was taken")
for one in json.load(open("/opt/calls/calls.json")):
    call(one["tool"], one["arguments"])
"""
PRELUDE = """
import sys; sys.path.insert(0, "/opt/calls")
import client
def call(tool, arguments):
    return client.post({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
"""


class Attack(NamedTuple):
    """What is run in the agent's container, and what it must earn."""

    reward: float
    script: str = ""
    python: str = ""
    kills_server: bool = False
    first: bool = False
    """Whether the reference's calls are made before."""


ATTACKS = {
    "forged": Attack(0.0, script=FORGE),
    "flooded": Attack(0.0, python=FLOOD),
    # A body that is too large is no call: what is done then is done.
    "huge": Attack(1.0, python=HUGE),
    # Neither gains anything: what was reached counts.
    "server_killed_at_once": Attack(0.0, kills_server=True),
    "server_killed_after": Attack(1.0, kills_server=True, first=True),
}

try:
    from harbor.agents.base import BaseAgent  # type: ignore[import-not-found]
    from harbor.agents.capabilities import AgentCapabilities  # type: ignore[import-not-found]
except ImportError:
    pass
else:

    class Attacker(BaseAgent):  # type: ignore[misc]
        """Runs one of the attacks."""

        capabilities = AgentCapabilities(mcp_servers=True)

        def __init__(self, logs_dir: Path, attack: str, task: str, **kwargs: Any) -> None:
            super().__init__(logs_dir=logs_dir, **kwargs)
            self._attack, self._task = ATTACKS[attack], Path(task)

        @staticmethod
        def name() -> str:
            return "attacker"

        def version(self) -> str:
            return "1"

        async def setup(self, environment: Any) -> None:
            record = self._task.parent / "record.jsonl"
            calls = json.loads((self._task / "solution/calls.json").read_text())
            lines = [{"schema": 1, "task": self._task.name}, *calls]
            record.write_text("".join(json.dumps(line) + "\n" for line in lines))
            await environment.exec("mkdir -p /opt/calls", user="root")
            for path in (self._task / "solution/client.py", self._task / "solution/calls.json", record):
                await environment.upload_file(path, f"/opt/calls/{path.name}")
            record.unlink()

        async def run(self, instruction: str, environment: Any, context: Any) -> None:
            attack = self._attack
            if attack.first:
                await self._done(environment, "python3 client.py calls.json")
            if attack.kills_server:
                await environment.stop_service("world")
            if attack.script:
                await self._done(environment, attack.script)
            if attack.python:
                await self._done(environment, f"python3 - <<'END'\n{PRELUDE}{attack.python}\nEND")

        @staticmethod
        async def _done(environment: Any, command: str) -> None:
            done = await environment.exec(command, cwd="/opt/calls", user="root")
            if done.return_code:
                raise RuntimeError(f"the attack could not be made: {(done.stderr or done.stdout)[-1500:]}")
