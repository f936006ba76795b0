"""Emitted MCP servers of workspaces: graded once, at the end, by a process that clients do not kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import tiny_task as tiny

from envsynth import plugins
from envsynth.cache import Cache

STAND_INS = (
    "import sys\nfrom types import ModuleType\n"
    "for name in ('mcp', 'mcp.server', 'mcp.server.lowlevel', 'mcp.server.stdio', 'mcp_types'):\n"
    "    sys.modules[name] = ModuleType(name)\n"
    "sys.modules['mcp.server.lowlevel'].Server = sys.modules['mcp.server.stdio'].stdio_server = None\n"
    "import json\nfrom pathlib import Path\nfrom shop_tasks import server\n"
    "from shop_tasks._envsynth.errors import SandboxError\n"
    "task, file = sorted(server.PACK.budgets)[0], Path('..') / 'reward.json'\n"
)

PLAYED = (
    "graded = []\n"
    "class Player:\n"
    "    done = False\n"
    "    def __init__(self, pack): pass\n"
    "    def begin(self, task): return 'do it'\n"
    "    def call(self, tool, arguments):\n"
    "        if tool == 'broken': raise SandboxError('gone')\n"
    "        return 'shown'\n"
    "    def rewards(self): graded.append(1); return {'reward': 1.0}\n"
    "    def close(self): pass\n"
    "server.Player = Player\n"
)
"""A player that counts gradings."""

SERVED = (
    "import os\n"
    "def run(serve, task, reward_file, let_go):\n"
    "    sys.stdin.read()\n"
    "    let_go()\n"
    "    os.read(os.open('../go', os.O_RDONLY), 1)\n"
    "    reward_file.write_text(json.dumps({'reward': 0.5}))\n"
    "server.anyio.run = run\n"
    "print('up', flush=True)\n"
    "server._served(task, file)\n"
)
"""A server that has graded when somebody has written to a pipe."""


@pytest.fixture
def pack(cache: Cache, tmp_path: Path) -> Path:
    return plugins.load("exporters", "mcp")().export([tiny.make_task(cache)], cache, tmp_path / "shop-tasks", {})


def code_of(pack: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=pack, capture_output=True, text=True, check=True)


def test_a_workspace_is_graded_once_and_at_its_end(pack: Path) -> None:
    code = (
        "episode = server.Episode(task, file)\n"
        "episode._call('bash', {}); episode._call('bash', {})\n"
        "print(len(graded), file.exists()); episode.finish(); print(len(graded), json.loads(file.read_text()))\n"
    )
    assert code_of(pack, STAND_INS + PLAYED + code).stdout.splitlines() == ["0 False", "1 {'reward': 1.0}"]


def test_a_workspace_that_failed_is_not_graded(pack: Path) -> None:
    (pack.parent / "reward.json").write_text('{"reward": 1.0}')
    code = (
        "episode = server.Episode(task, file)\n"
        "try: episode._call('broken', {})\nexcept SandboxError: pass\n"
        "episode.finish(); print(len(graded), file.exists())\n"
    )
    assert code_of(pack, STAND_INS + PLAYED + code).stdout.split() == ["0", "False"]


class Serving(NamedTuple):
    """A server as a client started it, and what lets it grade."""

    process: subprocess.Popen[str]
    go: int

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


@pytest.fixture
def serving(pack: Path) -> Iterator[Serving]:
    os.mkfifo(pack.parent / "go")
    go = os.open(pack.parent / "go", os.O_RDWR)
    command = [sys.executable, "-c", STAND_INS + SERVED]
    with subprocess.Popen(
        command, cwd=pack, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield Serving(process, go)
        os.write(go, b".")  # whatever became of the test, nothing waits for ever
    os.close(go)


def graded(pack: Path, serving: Serving) -> object:
    """What the client gets once the server is let to grade."""
    os.write(serving.go, b".")
    found = code_of(pack, "import json, shop_tasks; print(json.dumps(shop_tasks.reward_of('../reward.json')))").stdout
    return json.loads(found)


def lock_is_there(pack: Path) -> None:
    """Wait for the process that plays: it locks before it serves, and says so by no message."""
    while not (pack.parent / ".reward.json.lock").exists():
        os.sched_yield()


def test_a_server_ends_at_once_and_grades_all_the_same(pack: Path, serving: Serving) -> None:
    lock_is_there(pack)
    serving.close_input()
    assert serving.process.wait(20) == 0
    assert not (pack.parent / "reward.json").exists()
    assert graded(pack, serving) == {"reward": 0.5}


def test_killing_what_a_client_started_does_not_stop_the_grading(pack: Path, serving: Serving) -> None:
    lock_is_there(pack)
    os.killpg(serving.process.pid, signal.SIGKILL)
    assert serving.process.wait(20) == -signal.SIGKILL
    serving.close_input()
    assert graded(pack, serving) == {"reward": 0.5}


def test_where_nothing_was_graded_there_is_no_reward(pack: Path) -> None:
    assert code_of(pack, "import shop_tasks; print(shop_tasks.reward_of('../reward.json'))").stdout == "None\n"
