"""The laws over tasks of every industry and every family: what is observed is of the task, and of nothing else."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schema_calls
import tiny_task as tiny
import tiny_worlds as worlds
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from made_tasks import made_tasks
from pack_files import UNLIKE
from runners import RUNNERS, imported
from schema_calls import calls

from envsynth.cache import Cache
from envsynth.exporters.trl import Trl
from envsynth.runtime.pack import Pack

pytestmark = pytest.mark.slow
LAW = settings(schema_calls.LAW, max_examples=30, phases=[Phase.generate])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def packages(store: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    tasks = [*made_tasks(store), *(worlds.make_world_task(store, name) for name in worlds.TASKS)]
    with imported(tasks, store, tmp_path_factory.mktemp("laws")) as found:
        yield found


@pytest.fixture(scope="module")
def pack(packages: dict[str, Any]) -> Pack:
    return Pack(Path(packages["trl"].__file__).parent, name="laws")


@pytest.mark.parametrize("kind", [runner for runner in RUNNERS if runner.pooled])
@LAW
@given(data=st.data())
def test_one_hand_plays_task_after_task_as_fresh_ones_do(
    kind: type[Any], packages: dict[str, Any], pack: Pack, data: st.DataObject
) -> None:
    runner, package = kind(packages[kind.format]), packages[kind.format]
    try:
        for _ in range(3):
            task = data.draw(st.sampled_from(sorted(pack.budgets)))
            made = data.draw(calls(pack.tools(task), 5))
            fresh = kind(package)
            try:
                heard = [
                    [one.begin(task), *(one.call(*call) for call in made), one.rewards()] for one in (runner, fresh)
                ]
            finally:
                fresh.close()
            assert heard[0] == heard[1]
    finally:
        runner.close()


@LAW
@given(data=st.data())
def test_a_fork_of_any_task_goes_its_own_way(pack: Pack, data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(sorted(pack.budgets)))
    before, after, other = (data.draw(calls(pack.tools(task), most)) for most in (4, 3, 3))
    episode, alone = pack.open(task), pack.open(task)
    episode.reset()
    alone.reset()
    for call in before:
        assert episode.call(*call) == alone.call(*call)
    twin = episode.fork()
    for call in other:
        twin.call(*call)
    assert [episode.call(*call) for call in after] == [alone.call(*call) for call in after]
    assert (episode.state_hash(), episode.grade()) == (alone.state_hash(), alone.grade())
    for one in (episode, twin, alone):
        one.close()


# --- nothing of the machine, the process or the moment ----------------------------------------------------------

OBSERVER = """
import json, sys
sys.modules["envsynth"] = None
import {package}.pack as found
from {package}._envsynth.runtime.observe import render
for line in found.PACK.panel():
    episode = found.open_episode(line["task"])
    heard = [episode.reset(), render(episode.malformed("?")), episode.reset()]
    heard += [render(episode.call("no_such_tool", {{"x": [1, None]}}))]
    for tool in found.PACK.tools(line["task"]):
        heard.append(render(episode.call(tool["name"], {{"no_such_parameter": 1}})))
    for call in [*{extra}, *line["calls"]]:
        heard.append(render(episode.call(call["tool"], call["arguments"])))
    grade = episode.grade()
    print(json.dumps([line["task"], line["label"], heard, grade._asdict(), episode.state_hash()], sort_keys=True))
    episode.close()
"""
MACHINE = re.compile(
    rf"0x[0-9a-f]{{8,}}|[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-|/tmp/|site-packages|Traceback|"
    rf"\b{re.escape(socket.gethostname())}\b|\.py\b"
)
"""Addresses, uuids, folders, traces, the machine's name."""


def observed(pack: Path, extra: list[Any], folder: Path) -> list[bytes]:
    """All that is observed of every trajectory, in two processes that have nothing in common but the pack."""
    code = OBSERVER.format(package=pack.name.replace("-", "_"), extra=repr(extra))
    started = []
    for number, variables in enumerate(UNLIKE):
        here = folder / f"here-{number}" / ("deeper" * number)
        here.mkdir(parents=True)
        environment = {**os.environ, **variables, "PYTHONPATH": str(pack), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", code]
        started.append(subprocess.Popen(command, cwd=here, env=environment, stdout=-1, stderr=-1))
    found = []
    for process in started:
        told, trouble = process.communicate()
        assert process.returncode == 0, trouble.decode()
        found.append(told)
    return found


def test_no_observation_of_a_world_tells_of_machine_process_or_moment(
    packages: dict[str, Any], pack: Pack, tmp_path: Path
) -> None:
    one, two = observed(pack.folder.parent, [], tmp_path)
    assert one == two
    lines = [json.loads(line) for line in one.splitlines()]
    assert {line[0] for line in lines} == set(pack.budgets)
    assert len(lines) == len(pack.panel())
    for task, label, heard, *_ in lines:
        assert MACHINE.search("\n".join(heard)) is None, (task, label, MACHINE.search("\n".join(heard)))


@pytest.mark.sandbox
def test_no_observation_of_a_workspace_tells_of_machine_or_process(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    monkeypatch.setenv("ENVSYNTH_SANDBOX", "bubblewrap")
    commands = (
        "pwd; whoami; id; hostname; echo ~ $TZ $LANG $USER $HOSTNAME $TERM $COLUMNS $PYTHONHASHSEED; umask; date +%Z",
        "env | sort | grep -v ^_=", "ls -la --time-style=+ ; ls / /tmp; head -c 20 /proc/1/cmdline",
        "python -c 'import os, sys; print(os.getcwd(), sys.path, os.getuid(), os.listdir(chr(47)))'",
        "python -c 'print(hash(str(1)))'", "python -m pytest -q tests/test_nowhere.py",
        "python -c 'import no_such_module'",
    )  # fmt: skip
    extra = [{"tool": "bash", "arguments": {"command": command}} for command in commands]
    pack = Trl().export([tiny.make_task(cache)], cache, tmp_path / "shop-tasks", {})
    one, two = observed(pack, extra, tmp_path)
    assert _untimed(one) == _untimed(two)
    heard = "\n".join(text for line in one.splitlines() for text in json.loads(line)[2])
    assert socket.gethostname() not in heard
    assert str(tmp_path) not in heard
    assert str(cache.root) not in heard


def _untimed(told: bytes) -> bytes:
    """What pytest says of seconds is the agent's own measurement."""
    return re.sub(rb"in \d+\.\d+s", b"in S", told)
