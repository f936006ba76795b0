"""Packs for every target: what they hold, what they refuse, and equal rewards through the target's own runtime."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_task as tiny
import tiny_worlds as worlds
from pack_files import files_of

from envsynth import plugins
from envsynth.cache import Cache
from envsynth.errors import ConfigError, ExportError
from envsynth.exporters._package import holders
from envsynth.exporters.replay import replay

TARGETS = (
    "agentlightning", "gymnasium", "inspect", "mcp", "nemo-gym", "openenv", "reasoning-gym", "skyrl-gym", "trl",
    "verifiers", "verl",
)  # fmt: skip
WORLDS_ONLY = ("reasoning-gym", "verifiers")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("worlds"))


def exported(target: str, store: Cache, out: Path) -> Path:
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return plugins.load("exporters", target)().export(tasks, store, out, {})


@pytest.mark.parametrize("target", TARGETS)
def test_a_pack_is_the_same_bytes_each_time_and_a_project_to_install(target: str, store: Cache, tmp_path: Path) -> None:
    pack = exported(target, store, tmp_path / "one" / "desk-tasks")
    assert files_of(pack) == files_of(exported(target, store, tmp_path / "two" / "desk-tasks"))
    manifest = json.loads((pack / "manifest.json").read_text())
    assert (manifest["format"], manifest["package"]) == (target, "desk_tasks")
    assert len(manifest["tasks"]) == len(worlds.TASKS)
    assert compileall.compile_dir(pack, quiet=2, force=True)
    readme = (pack / "README.md").read_text()
    assert "$" not in readme.replace("$ENVSYNTH", "")
    assert "desk_tasks" in readme
    assert {"pyproject.toml", "panel.jsonl", "desk_tasks/through.py", "desk_tasks/replay.py"} <= files_of(pack).keys()


@pytest.mark.parametrize("target", TARGETS)
def test_what_agents_are_told_holds_nothing_hidden(target: str, store: Cache, tmp_path: Path) -> None:
    pack = exported(target, store, tmp_path / "desk-tasks")
    open_files = {name: content for name, content in files_of(pack).items() if "hidden/" not in name}
    told = b"".join(content for name, content in open_files.items() if name not in ("panel.jsonl", "oracle.json"))
    assert b'"rewards_hidden"' not in told
    assert b"two_armed_tape" not in told
    for name in worlds.TASKS:
        for check in worlds.entry(name)["verifier"]["checks"]:
            if check.get("sql"):
                assert check["sql"].encode() not in told


@pytest.mark.parametrize("target", WORLDS_ONLY)
def test_what_a_target_cannot_hold_is_said_with_those_that_can(
    target: str, store: Cache, cache: Cache, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match="cannot hold workspace tasks") as raised:
        plugins.load("exporters", target)().export([tiny.make_task(cache)], cache, tmp_path / "shop", {})
    assert "gymnasium or " in str(raised.value)
    assert target not in holders("workspace")
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("target", sorted(set(TARGETS) - set(WORLDS_ONLY)))
def test_workspaces_go_where_they_can(target: str, cache: Cache, tmp_path: Path) -> None:
    pack = plugins.load("exporters", target)().export([tiny.make_task(cache)], cache, tmp_path / "shop-tasks", {})
    assert json.loads((pack / "manifest.json").read_text())["kinds"] == {"workspace": 1}
    assert "bubblewrap" in (pack / "pyproject.toml").read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_a_pack_does_not_take_the_name_of_what_it_needs(target: str, store: Cache, tmp_path: Path) -> None:
    name = {"inspect": "inspect-ai"}.get(target, target)
    task = worlds.make_world_task(store, worlds.TASKS[0])
    with pytest.raises(ExportError, match="cannot be a pack's name"):
        plugins.load("exporters", target)().export([task], store, tmp_path / "out", {"name": name})


def test_a_pack_of_another_format_is_not_overwritten(store: Cache, tmp_path: Path) -> None:
    exported("trl", store, tmp_path / "desk-tasks")
    with pytest.raises(ExportError, match="something else"):
        exported("skyrl-gym", store, tmp_path / "desk-tasks")


def test_replaying_through_another_target_is_refused(store: Cache, tmp_path: Path) -> None:
    pack = exported("trl", store, tmp_path / "desk-tasks")
    with pytest.raises(ExportError, match="the pack is for trl"):
        replay(pack, target="openenv")


def test_a_target_without_a_runtime_is_a_line(store: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsynth.exporters._target_env._targets", lambda: {"openenv": {}})
    with pytest.raises(ConfigError, match="not played through its own runtime"):
        replay(exported("trl", store, tmp_path / "desk-tasks"), target="trl")


def run(code: str, pack: Path) -> str:
    """Run Python in a process that sees the pack and not this project."""
    blocker = "import sys; sys.modules['envsynth'] = None\n"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", blocker + code]
    done = subprocess.run(command, cwd=pack, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pooled_objects_of_trl_start_afresh(store: Cache, tmp_path: Path) -> None:
    pack = exported("trl", store, tmp_path / "desk-tasks")
    code = (
        "import desk_tasks as d\nfrom desk_tasks._envsynth.runtime.rewards import reward_vector\n"
        "rows = {row['task']: row for row in d.rows()}; classes = d.environments()\n"
        "first, *_ = [row for row in rows.values() if row['task'].startswith('two-armed')]\n"
        "env, fresh = (classes[first['environment']]() for _ in range(2))\n"
        "env.reset(**first); fresh.reset(**first)\n"
        "a = [env.pull(arm=1), env.pull(0), env.pull(arm=7), env.view()]\n"
        "env.reset(**first)\n"
        "b = [env.pull(arm=1), env.pull(0), env.pull(arm=7), env.view()]\n"
        "c = [fresh.pull(arm=1), fresh.pull(0), fresh.pull(arm=7), fresh.view()]\n"
        "print(a == b == c, 'error' in a[2], env._rewards() == fresh._rewards(), env.get_reward())\n"
        "try:\n    env.view(1, 2)\n    print('taken')\nexcept TypeError as exc:\n    print(exc)\n"
        "print(env.pull.__doc__.splitlines()[0]); import inspect; print(inspect.signature(env.pull))"
    )
    first, *rest = run(code, pack).splitlines()
    assert first.startswith("True True True ")
    assert rest[0] == "view takes 0 arguments, not 2"
    assert rest[2].startswith("(arm: ")


def test_where_an_environment_fails_an_mcp_server_leaves_no_reward(store: Cache, tmp_path: Path) -> None:
    pack = exported("mcp", store, tmp_path / "desk-tasks")
    (tmp_path / "reward.json").write_text('{"reward": 1.0}')
    code = (
        "from types import ModuleType\nfrom pathlib import Path\n"
        "for name in ('mcp', 'mcp.server', 'mcp.server.lowlevel', 'mcp.server.stdio', 'mcp_types'):\n"
        "    sys.modules[name] = ModuleType(name)\n"
        "sys.modules['mcp.server.lowlevel'].Server = sys.modules['mcp.server.stdio'].stdio_server = None\n"
        "from desk_tasks.server import Episode, PACK\n"
        "from desk_tasks._envsynth.errors import SandboxError\n"
        "def failing(*_):\n    raise SandboxError('gone')\n"
        "task, file = sorted(PACK.budgets)[0], Path('../reward.json')\n"
        "def tried(made, *given):\n"
        "    try:\n        made(*given)\n    except (SandboxError, RuntimeError) as error:\n"
        "        return type(error).__name__, file.exists()\n    return '', file.exists()\n"
        "begun, Episode.__init__.__globals__['Player'].begin = Episode.__init__.__globals__['Player'].begin, failing\n"
        "print(*tried(Episode, task, file))\n"
        "Episode.__init__.__globals__['Player'].begin = begun\n"
        "episode = Episode(task, file)\nprint(*tried(episode._call, 'no_such_tool', {}))\n"
        "whole, episode._player.call = episode._player.call, failing\n"
        "print(*tried(episode._call, 'no_such_tool', {}))\n"
        "episode._player.call = whole\nprint(*tried(episode._call, 'no_such_tool', {}))\nepisode.close()\n"
    )
    assert run(code, pack).splitlines() == [
        "SandboxError False", " True", "SandboxError False", "RuntimeError False",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("targets_kept")
def test_every_component_of_every_reward_is_the_same_through_the_target(
    target: str, store: Cache, tmp_path: Path
) -> None:
    report = replay(exported(target, store, tmp_path / "desk-tasks"), target=target)
    assert report.trouble == ""
    assert [line for line in report.lines if line.verdict != "same"] == []
    assert len(report.lines) == sum(len(worlds.trajectories(name)) for name in worlds.TASKS)
    assert {line.got for line in report.lines} > {0.0}
    assert report.exit_code == 0
