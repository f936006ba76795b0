from __future__ import annotations

import copy
import json
import pickle
from functools import partial
from itertools import pairwise

import pytest
import tiny_task as tiny
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from envsynth.errors import SandboxError
from envsynth.runtime.contract import Grade, ToolResult
from envsynth.runtime.gym import MAX_OBSERVATION, ToolEnv
from envsynth.runtime.gym_actions import MAX_ACTION, parse_action
from envsynth.runtime.observe import confine, render
from envsynth.runtime.workspace import open_task


class FakeEpisode:
    """Ends at `submit`, at a malformed action, or after two calls; `broken` names the call at which it fails."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.calls = 0
        self.closed = False

    def reset(self, seed: int = 0) -> str:
        self._fail_at("reset")
        self.calls = 0
        return "do 漢字\x00"

    def tools(self) -> list:
        return [{"name": "submit"}]

    def call(self, tool: str, arguments: dict) -> ToolResult:
        self._fail_at("call")
        self.calls += 1
        return ToolResult(True, {"tool": tool, **arguments}, "", tool == "submit" or self.calls > 2)

    def malformed(self, text: str) -> ToolResult:
        return ToolResult(False, None, "the action is not a tool call", True)

    def stop(self) -> ToolResult:
        return ToolResult(True, {"stopped": True}, "", True)

    def grade(self) -> Grade:
        self._fail_at("grade")
        return Grade(1.0, 1.0, None, 1.0, {"a": True}, {}, {}, {})

    def close(self) -> None:
        self.closed = True

    def _fail_at(self, call: str) -> None:
        if call == self.broken:
            raise SandboxError("the environment failed")


def fake_env(broken: str = "") -> ToolEnv:
    return ToolEnv(lambda: FakeEpisode(broken), task_id="t", max_turns=2)


def action(tool: str, **arguments: object) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def test_an_episode_is_played_to_its_reward() -> None:
    env = fake_env()
    observation, info = env.reset(seed=1)
    assert observation == {"text": "do \\u6f22\\u5b57\\x00", "turn": 0}
    assert info == {"task_id": "t", "tools": [{"name": "submit"}]}
    observation, reward, terminated, truncated, info = env.step(action("look", at="x"))
    assert observation == {"text": "tool: look\nat: x", "turn": 1}
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {"task_id": "t", "ok": True, "error": ""}
    *_, reward, terminated, truncated, info = env.step(action("submit"))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["grade"]["checks"] == {"a": True}
    with pytest.raises(ResetNeeded):
        env.step(action("submit"))
    env.reset()
    assert env.step(action("look"))[1:4] == (0.0, False, False)


def test_overdrawing_the_budget_truncates() -> None:
    env = fake_env()
    env.reset()
    steps = [env.step(action("look")) for _ in range(3)]
    assert [(terminated, truncated) for _, _, terminated, truncated, _ in steps] == [(False, False)] * 2 + [
        (False, True)
    ]
    assert steps[-1][0] in env.observation_space


@pytest.mark.parametrize("broken", ["reset", "call", "grade"])
def test_an_environments_failure_is_raised_and_never_a_reward(broken: str) -> None:
    env = fake_env(broken)
    if broken != "reset":
        env.reset()
    with pytest.raises(SandboxError):
        env.reset() if broken == "reset" else env.step(action("submit"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" ", "not JSON"), ("{", "not JSON"), ("[" * 100_000, "not JSON"), ('{"tool": NaN}', "not JSON"),
        ("9" * 5000, "not JSON"), ("[]", "not an object"), ('{"tool": 1}', "not an object"),
        ('{"tool": "a", "arguments": []}', "no object"), ('{"tool": "a", "extra": 1}', "other fields"),
        (" " * (MAX_ACTION + 1), "longer than"), (None, "not a text"),
    ],
)  # fmt: skip
def test_what_is_no_tool_call_ends_the_episode(text: str, why: str) -> None:
    assert why in parse_action(text)
    env = fake_env()
    env.reset()
    observation, _, terminated, _, info = env.step(text)
    assert terminated
    assert why in info["error"]
    assert why in observation["text"]


def test_the_empty_text_stops_and_is_no_turn() -> None:
    env = fake_env()
    env.reset()
    observation, reward, terminated, truncated, _ = env.step("")
    assert (observation["turn"], reward, terminated, truncated) == (0, 1.0, True, False)


def test_arguments_may_be_left_out() -> None:
    assert parse_action('{"tool": "submit"}') == {"tool": "submit", "arguments": {}}


def test_close_frees_the_episode_and_reset_opens_another() -> None:
    opened = []
    env = ToolEnv(lambda: opened.append(FakeEpisode()) or opened[-1], task_id="t", max_turns=2)
    env.close()
    env.reset()
    env.reset()
    env.close()
    env.close()
    assert [episode.closed for episode in opened] == [True]
    env.reset()
    assert len(opened) == 2


def test_a_pickled_or_copied_environment_starts_without_an_episode() -> None:
    env = ToolEnv(FakeEpisode, task_id="t", max_turns=2)
    env.reset(seed=1)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert (twin.task_id, twin.observation_space) == ("t", env.observation_space)
        with pytest.raises(ResetNeeded):
            twin.step(action("submit"))
        assert twin.reset()[0] == env._observe("do 漢字\x00") | {"turn": 0}
        twin.close()
    assert env.step(action("submit"))[1] == 1.0


def test_there_is_nothing_to_render() -> None:
    env = fake_env()
    env.reset()
    assert env.render() is None


def test_gymnasiums_own_checker_is_content_with_a_fake() -> None:
    check_env(fake_env(), skip_render_check=True)


TEXTS = ("a\n\u2713 done", "", "\u2ff0" * MAX_OBSERVATION, "b")


def told(tool: str, text: str) -> str:
    return confine(render(ToolResult(True, {"tool": tool, "text": text}, "", False)), limit=MAX_OBSERVATION)


@pytest.mark.parametrize(
    "vectorise",
    [
        SyncVectorEnv,
        AsyncVectorEnv,
        partial(AsyncVectorEnv, copy=False),
    ],
    ids=["sync", "async", "async-live"],
)
def test_vectors_of_environments_give_the_texts_of_their_own_episodes(vectorise) -> None:
    envs = vectorise([fake_env] * 2)
    try:
        observation, _ = envs.reset(seed=1)
        assert tuple(observation["text"]) == ("do \\u6f22\\u5b57\\x00",) * 2
        for first, second in pairwise(TEXTS):
            envs.reset()
            observation, reward, *_ = envs.step((action("look", text=first), action("submit", text=second)))
            assert tuple(observation["text"]) == (told("look", first), told("submit", second))
            assert list(reward) == [0.0, 1.0]
            assert list(observation["turn"]) == [1, 1]
    finally:
        envs.close()


def test_an_earlier_observation_of_a_vector_stays_what_it_was() -> None:
    envs = AsyncVectorEnv([fake_env] * 2)
    try:
        first, _ = envs.reset(seed=1)
        assert first in envs.observation_space
        envs.step((action("look"), action("look")))
        assert first["text"] == ("do \\u6f22\\u5b57\\x00",) * 2
    finally:
        envs.close()


@pytest.mark.filterwarnings("ignore:.*ERROR")
def test_a_vectors_environment_failure_is_raised_with_its_cause() -> None:
    envs = AsyncVectorEnv([partial(fake_env, "call"), fake_env])
    try:
        envs.reset(seed=1)
        with pytest.raises(SandboxError, match="the environment failed"):
            envs.step((action("look"), action("look")))
    finally:
        envs.close()


@pytest.mark.slow
@pytest.mark.sandbox
def test_gymnasiums_own_checker_is_content_with_a_workspace(cache, backend) -> None:
    task = tiny.make_task(cache)
    env = ToolEnv(
        lambda: open_task(task.document(), cache.get, cache.root, backend, task_id=task.id),
        task_id=task.id, max_turns=20,
    )  # fmt: skip
    check_env(env, skip_render_check=True)
    env.close()
