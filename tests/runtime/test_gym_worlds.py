"""Worlds through gymnasium: text and structured actions, alone and in vectors."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import tiny_worlds as worlds
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from envsynth.runtime.gym import ToolEnv
from envsynth.runtime.gym_actions import STOP, Actions, StructuredActions, TextActions, WideText
from envsynth.runtime.worlds.episode import WorldEpisode

TOOL = {
    "name": "order", "description": "",
    "parameters": {
        "type": "object",
        "properties": {
            "size": {"type": "string", "enum": ["small", "large"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "price": {"type": "number", "minimum": 0},
            "gift": {"type": "boolean"},
            "account": {"type": "integer"},
            "note": {"type": "string", "minLength": 2, "maxLength": 8},
        },
        "required": ["size", "count", "price", "gift", "account"],
        "additionalProperties": False,
    },
}  # fmt: skip
FIT = {"size": 1, "count": 3, "price": np.array(2.5), "gift": 1, "account": np.array(-7), "note": (1, "hello")}


def actions_of(task: str, how: str) -> Actions:
    return TextActions() if how == "text" else StructuredActions(worlds.episode_of(task).tools())


def world_env(task: str, how: str = "text") -> ToolEnv:
    return ToolEnv(
        partial(worlds.episode_of, task), task_id=task, max_turns=worlds.entry(task)["budget"]["turns"],
        actions=actions_of(task, how),
    )  # fmt: skip


def spelt(task: str, how: str, call: dict[str, Any]) -> Any:
    """A call as an action."""
    if how == "text":
        return json.dumps(call)
    tools = worlds.episode_of(task).tools()
    number = next(index for index, tool in enumerate(tools) if tool["name"] == call["tool"])
    schemas = tools[number]["parameters"]["properties"]
    enums = {name: schema["enum"] for name, schema in schemas.items() if "enum" in schema}
    return number, {
        name: enums[name].index(value) if name in enums else value for name, value in call["arguments"].items()
    }


@pytest.mark.parametrize("how", ["text", "structured"])
@pytest.mark.parametrize("task", worlds.TASKS)
def test_the_panel_gets_the_same_rewards_however_calls_are_spelt(task: str, how: str) -> None:
    env = world_env(task, how)
    for line in worlds.trajectories(task):
        if line.label in ("idle", "attack:type_games", "attack:only_looks", "alternative:clumsy"):
            continue  # no call to end with, or calls that no space holds
        env.reset(seed=1)
        steps = [env.step(spelt(task, how, call.document())) for call in line.calls]
        assert all(observation in env.observation_space for observation, *_ in steps)
        assert env._episode is not None
        assert env._episode.grade().outcome == line.outcome
        if task == "two-armed" and len(line.calls) >= 12:
            assert [step[1] for step in steps] == [0.0] * (len(steps) - 1) + [line.outcome]
            assert steps[-1][2:4] == (True, False)
    env.close()


@pytest.mark.parametrize("how", ["text", "structured"])
@pytest.mark.parametrize("task", ["two-armed", "returns-desk-refund"])
def test_gymnasiums_own_checker_is_content_with_a_world(task: str, how: str) -> None:
    env = world_env(task, how)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("how", ["text", "structured"])
@pytest.mark.parametrize("vectorise", [SyncVectorEnv, AsyncVectorEnv], ids=["sync", "async"])
def test_vectors_of_worlds_play_each_its_own_episode(vectorise: Any, how: str) -> None:
    envs = vectorise([partial(world_env, "two-armed", how)] * 2)
    pulls = [spelt("two-armed", how, {"tool": "pull", "arguments": {"arm": arm}}) for arm in (0, 1)]
    try:
        observation, _ = envs.reset(seed=1)
        assert tuple(observation["text"]) == (worlds.entry("two-armed")["instruction"],) * 2
        observation, *_ = envs.step(tuple(pulls))
        assert tuple(observation["text"]) == ("arm: 0\npaid: 0", "arm: 1\npaid: 1")
        for _ in range(11):
            _, reward, terminated, truncated, _ = envs.step(tuple(pulls))
        assert (list(reward), list(terminated), list(truncated)) == ([0.0, 1.0], [True, True], [False, False])
    finally:
        envs.close()


def test_random_structured_actions_are_calls() -> None:
    env = world_env("returns-desk-refund", "structured")
    env.action_space.seed(3)
    env.reset(seed=3)
    for _ in range(40):
        *_, terminated, truncated, info = env.step(env.action_space.sample())
        assert "not a tool call" not in info["error"]
        if terminated or truncated:
            env.reset()


def test_a_structured_action_says_all_that_a_call_may_say() -> None:
    actions = StructuredActions([{"name": "look", "parameters": {"properties": {}, "required": []}}, TOOL])
    assert isinstance(actions.space, spaces.OneOf)
    call = actions.parse((1, FIT))
    assert call == {
        "tool": "order",
        "arguments": {"size": "large", "count": 3, "price": 2.5, "gift": True, "account": -7, "note": "hello"},
    }
    assert json.loads(json.dumps(call)) == call
    assert (1, {**FIT, "count": np.int64(3)}) in actions.space
    for left_out in ({**FIT, "note": (0, np.int64(0))}, {name: FIT[name] for name in FIT if name != "note"}):
        assert "note" not in actions.parse((np.int64(1), left_out))["arguments"]
    assert actions.parse((0, {})) == {"tool": "look", "arguments": {}}
    # What the tool itself refuses is a call.
    assert actions.parse((1, {**FIT, "count": 99}))["arguments"]["count"] == 99


def test_every_drawn_action_is_read_and_inside_the_bounds() -> None:
    actions = StructuredActions([TOOL])
    actions.space.seed(5)
    for _ in range(100):
        call = actions.parse(actions.space.sample())
        if call == STOP:
            continue
        arguments = call["arguments"]
        assert arguments["size"] in ("small", "large")
        assert 1 <= arguments["count"] <= 9
        assert arguments["price"] >= 0
        assert type(arguments["gift"]) is bool
        assert abs(arguments["account"]) <= 2**53
        assert 2 <= len(arguments.get("note", "ab")) <= 8


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (None, "not a pair"), ("look", "not a pair"), ((1,), "not a pair"), ((3, {}), "no tool number 3"),
        ((-1, {}), "no tool number -1"), ((True, {}), "no tool number True"), ((1, None), "are a mapping of size"),
        ((1, {"colour": 1}), "are a mapping of size"), ((1, {"size": 2}), "argument size"),
        ((1, {"size": "large"}), "argument size"), ((1, {"count": 1.5}), "argument count"),
        ((1, {"price": np.nan}), "argument price"), ((1, {"gift": 2}), "argument gift"),
        ((1, {"note": "x"}), "argument note"), ((1, {"note": (1, 5)}), "argument note"),
        ((1, {"account": [1, 2]}), "argument account"),
    ],
)  # fmt: skip
def test_what_is_no_structured_call_ends_the_episode(action: Any, why: str) -> None:
    actions = StructuredActions([{"name": "look", "parameters": {"properties": {}, "required": []}}, TOOL])
    assert why in actions.parse(action)
    env = ToolEnv(partial(worlds.episode_of, "two-armed"), task_id="t", max_turns=40, actions=actions)
    env.reset()
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["grade"]["gate"]) == (0.0, True, 0.0)
    assert why in info["error"]


def test_texts_share_their_tables_and_not_their_chance() -> None:
    space = WideText.of(0, 10)
    space.seed(1)
    twin = copy.deepcopy(space)
    assert twin.character_set is space.character_set
    assert [twin.sample() for _ in range(3)] == [space.sample() for _ in range(3)]
    twin.seed(2)
    assert [twin.sample() for _ in range(3)] != [space.sample() for _ in range(3)]
    sent = pickle.loads(pickle.dumps(space))
    assert (sent, sent.sample()) == (space, space.sample())
    assert WideText.of(1, 2) != space


def test_a_world_environment_can_be_sent_to_another_process() -> None:
    env = pickle.loads(pickle.dumps(world_env("two-armed")))
    assert env.reset()[0]["text"] == worlds.entry("two-armed")["instruction"]


MOVES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(
            [
                {"tool": "find_customers", "arguments": {"text": "ito"}},
                {"tool": "list_orders", "arguments": {"customer": 1}},
                {"tool": "refund", "arguments": {"order_id": 101, "cents": 4655, "note": "lamp"}},
                {"tool": "refund", "arguments": {"order_id": 102, "cents": 1, "note": "kettle"}},
                {"tool": "escalate", "arguments": {"order_id": 104, "reason": "too late"}},
                {"tool": "escalate", "arguments": {"order_id": 104, "reason": "no"}},
            ]
        ),
    ),
    max_size=11,
)


@settings(max_examples=30, deadline=None)
@given(MOVES)
def test_interleaved_environments_and_earlier_episodes_leave_no_trace(moves: list[tuple[int, Any]]) -> None:
    model = worlds.episode_of("returns-desk-refund").task
    pair = [ToolEnv(lambda: WorldEpisode(model), task_id="t", max_turns=12) for _ in range(2)]
    alone = ToolEnv(lambda: WorldEpisode(model), task_id="t", max_turns=12)
    first = [env.reset(seed=1) for env in pair]
    told = [(number, pair[number].step(json.dumps(call))) for number, call in moves]
    for number in (0, 1):
        # The one environment has an episode behind it the second time.
        assert alone.reset(seed=1) == first[number]
        assert [alone.step(json.dumps(call)) for own, call in moves if own == number] == [
            step for own, step in told if own == number
        ]
        assert alone._episode is not None
        assert pair[number]._episode is not None
        assert alone._episode.grade() == pair[number]._episode.grade()
    for env in (*pair, alone):
        env.close()
