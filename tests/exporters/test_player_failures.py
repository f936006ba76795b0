"""An environment that fails has no grade, whatever a trainer makes of the exception."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_worlds as worlds
from runners import OfVerifiers, imported

from envsynth.cache import Cache
from envsynth.errors import SandboxError
from envsynth.exporters.trl import Trl
from envsynth.runtime.pack import Pack
from envsynth.runtime.player import Player

NAME = "desk_failures"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("failures")
    store = Cache(out / "cache")
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return Trl().export(tasks, store, out / "desk-tasks", {"name": NAME.replace("_", "-")})


class Broken:
    """An episode whose calls fail, and that would grade all the same."""

    def __init__(self, episode: Any, error: type[BaseException]) -> None:
        self._episode = episode
        self._error = error

    def call(self, *_: object) -> None:
        raise self._error("gone")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._episode, name)


@pytest.mark.parametrize("error", [SandboxError, OSError, KeyboardInterrupt])
def test_there_is_no_grade_until_another_episode_begins(folder: Path, error: type[BaseException]) -> None:
    pack = Pack(folder / NAME, name=NAME)
    player, task = Player(pack), min(pack.budgets)
    player.begin(task)
    player._episode = Broken(player._episode, error)  # type: ignore[assignment]
    with pytest.raises(error):
        player.call("list_orders", {"customer_id": 1})
    for later in (player.rewards, player.stop, lambda: player.malformed("?"), lambda: player.call("list_orders", {})):
        with pytest.raises(SandboxError, match="the environment has failed"):
            later()
    player.begin(task)
    assert not isinstance(player._episode, Broken)
    assert player.rewards()["reward"] == 0.0
    player.close()


def test_trl_is_given_no_reward_of_a_failed_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    import desk_failures  # type: ignore[import-not-found]

    row = next(row for row in desk_failures.rows() if row["task"].startswith("two-armed"))
    env = desk_failures.environments()[row["environment"]]()
    env.reset(**row)
    assert isinstance(env.get_reward(), float)
    failed = sys.modules[f"{NAME}._envsynth.errors"].SandboxError
    env._player._episode = Broken(env._player._episode, failed)
    with pytest.raises(failed):
        env.view()
    assert env.get_reward() is None
    assert "no reward" in capsys.readouterr().err
    env.reset(**row)
    assert isinstance(env.get_reward(), float)
    env._player.close()


@pytest.mark.slow
def test_verifiers_is_given_no_reward_of_a_failed_environment(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    with imported([worlds.make_world_task(store, worlds.TASKS[0])], store, tmp_path) as packages:
        taskset = packages["verifiers"].taskset
        task = min(taskset.PACK.budgets)
        calls = next(line["calls"] for line in taskset.PACK.panel() if line["label"] == "reference")
        runner = OfVerifiers(packages["verifiers"])
        runner.begin(task)
        for call in calls:
            runner.call(call["tool"], call["arguments"])
        row, trace = taskset.WorldTask(), SimpleNamespace(state=runner.toolset.sent)
        row.data = SimpleNamespace(task_id=task)
        assert asyncio.run(row.reward(trace)) == 1.0
        runner.begin(task)
        runner.call(calls[0]["tool"], calls[0]["arguments"])
        runner.player._episode = Broken(runner.player._episode, SandboxError)
        assert "the environment failed" in runner.call(calls[1]["tool"], calls[1]["arguments"])
        trace.state = runner.toolset.sent
        assert asyncio.run(row.over(trace))
        for grading in (row.reward, row.components):
            with pytest.raises(RuntimeError, match="the environment failed: SandboxError: gone"):
                asyncio.run(grading(trace))


@pytest.mark.slow
def test_verifiers_is_told_calls_that_an_earlier_answer_could_not_tell(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    with imported([worlds.make_world_task(store, worlds.TASKS[0])], store, tmp_path) as packages:
        taskset = packages["verifiers"].taskset
        task = min(taskset.PACK.budgets)
        calls = next(line["calls"] for line in taskset.PACK.panel() if line["label"] == "reference")
        runner = OfVerifiers(packages["verifiers"])
        runner.begin(task)
        before = runner.toolset.sent
        runner.call(calls[0]["tool"], calls[0]["arguments"])
        runner.toolset.sent = before  # as where the host was not reached
        for call in calls[1:]:
            runner.call(call["tool"], call["arguments"])
        assert taskset.rewards_of(task, runner.toolset.sent.calls)["reward"] == 1.0


@pytest.mark.slow
def test_openenv_plays_nothing_after_a_reset_that_failed(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    with imported([worlds.make_world_task(store, worlds.TASKS[0])], store, tmp_path) as packages:
        environment = packages["openenv"].environment.TaskEnvironment()
        action = SimpleNamespace(tool="", arguments={})
        for wrong in ({"task": "no-such-task"}, {"index": -1}, {"injected_state": {"calls": [{"tool": "view"}]}}):
            for before in ((), (action,)):
                environment.reset()
                for made in before:
                    environment.step(made)
                with pytest.raises(Exception, match=r"no-such-task|no number -1|arguments"):
                    environment.reset(**wrong)
                with pytest.raises(RuntimeError, match="no task was begun"):
                    environment.step(action)
        environment.reset()
        assert environment.step(action).done
        environment.close()
