"""The player that trainers' runtimes hold: episodes apart from each other, calls one by one, texts for models."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiny_worlds as worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from envsynth.cache import Cache
from envsynth.errors import ConfigError
from envsynth.exporters.trl import Trl
from envsynth.runtime.dialogue import (
    Call,
    NoCall,
    answer_text,
    calls_in,
    calls_of,
    listed_tools,
    result_text,
    tools_text,
    turn_text,
)
from envsynth.runtime.pack import Pack
from envsynth.runtime.player import MAX_TEXT, Player


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    folder: Path = tmp_path_factory.mktemp("pack")
    store = Cache(folder / "cache")
    tasks = [worlds.make_world_task(store, name) for name in worlds.TASKS]
    return Pack(Trl().export(tasks, store, folder / "desk-tasks", {}) / "desk_tasks", name="desk_tasks")


@pytest.fixture(scope="module")
def arms(pack: Pack) -> str:
    return next(task for task in pack.budgets if task.startswith("two-armed"))


PULLS = [("pull", {"arm": 1}), ("pull", {"arm": 9}), ("view", {}), ("no_such_tool", {}), ("pull", {"arm": 0})]


def played(player: Player, task: str, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [player.begin(task), *(player.call(tool, arguments) for tool, arguments in calls)]


@settings(max_examples=30, deadline=None, database=None)
@given(data=st.data())
def test_a_reset_after_any_prefix_is_a_fresh_episode(pack: Pack, arms: str, data: st.DataObject) -> None:
    prefix = data.draw(st.lists(st.sampled_from(PULLS), max_size=6))
    used, fresh = Player(pack), Player(pack)
    played(used, arms, prefix)
    if data.draw(st.booleans()):
        used.malformed("?")
    assert played(used, arms, PULLS) == played(fresh, arms, PULLS)
    assert used.rewards() == fresh.rewards()
    used.close()
    fresh.close()


def test_interleaved_episodes_do_not_leak(pack: Pack, arms: str) -> None:
    one, two, alone = Player(pack), Player(pack), Player(pack)
    one.begin(arms)
    two.begin(arms)
    mixed = []
    for tool, arguments in PULLS:
        mixed.append(one.call(tool, arguments))
        two.call("pull", {"arm": 0})
    assert mixed == played(alone, arms, PULLS)[1:]
    assert one.rewards() == alone.rewards()
    for player in (one, two, alone):
        player.close()


def test_calls_of_one_turn_take_turns(pack: Pack, arms: str) -> None:
    player, alone = Player(pack), Player(pack)
    player.begin(arms)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: player.call("pull", {"arm": 1}), range(8)))
    played(alone, arms, [("pull", {"arm": 1})] * 8)
    assert player.rewards() == alone.rewards()
    player.close()
    alone.close()


def test_nothing_goes_on_after_the_end(pack: Pack, arms: str) -> None:
    player = Player(pack)
    player.begin(arms)
    assert not player.done
    player.stop()
    before = player.rewards()
    assert player.done
    assert player.call("pull", {"arm": 1}) == "error: the episode is over"
    assert player.rewards() == before
    player.close()


def test_what_is_no_call_ends_with_gate_nought(pack: Pack, arms: str) -> None:
    player = Player(pack)
    for text in ("[1]", "{", "nan", '{"arm": NaN}', "[" * 5000):
        player.begin(arms)
        assert player.call_text("pull", text).startswith("error: ")
        assert player.done
        assert (player.rewards()["gate"], player.rewards()["reward"]) == (0.0, 0.0)
    player.begin(arms)
    assert not player.call_text("pull", '{"arm": 1}').startswith("error")
    assert not player.call_text("view", "").startswith("error")
    player.close()


def test_one_player_goes_from_task_to_task(pack: Pack) -> None:
    player = Player(pack)
    for task in pack.budgets:
        assert player.begin(task)
        assert player.task == task
        assert [tool["name"] for tool in player.tools()] == [tool["name"] for tool in pack.tools(task)]
    with pytest.raises(ConfigError, match="there is no task"):
        player.begin("nobody")
    player.close()
    player.close()


def test_without_a_task_there_is_nothing_to_call(pack: Pack) -> None:
    with pytest.raises(RuntimeError, match="no task"):
        Player(pack).call("pull", {})


def test_long_results_are_cut(pack: Pack, arms: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsynth.runtime.player.render", lambda _: "x" * (2 * MAX_TEXT))
    player = Player(pack)
    player.begin(arms)
    assert len(player.call("view", {})) == MAX_TEXT
    player.close()


TEXTS = st.text(max_size=20)
CALLS = st.lists(
    st.builds(Call, TEXTS, st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.booleans()), max_size=3)),
    max_size=4,
)


@given(CALLS)
def test_calls_in_text_are_read_as_they_were_written(calls: list[Call]) -> None:
    assert calls_of(answer_text(calls)) == calls
    assert calls_of(f"<think>[]</think>\n```json\n{answer_text(calls)}\n```") == calls
    assert calls_in(turn_text(calls)) == calls


@pytest.mark.parametrize("inside", ["</tool_call>", "<tool_call>", "</think>", "```", "\\"])
def test_marks_inside_an_argument_are_text(inside: str) -> None:
    calls = [Call("say", {"text": f"a {inside} b"})]
    assert calls_of(answer_text(calls)) == calls
    assert calls_in(turn_text(calls)) == calls


def test_reasoning_is_passed_over_and_prose_is_no_call() -> None:
    one = '<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>'
    assert calls_in(f"<think>maybe <tool_call>{{}}</tool_call></think> I call: {one}") == [Call("a", {"x": 1})]
    assert calls_in("I have nothing more to do.") == []


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{", "<tool_call>{}</tool_call>", '<tool_call>{"name": 1}</tool_call>', "<tool_call>[]</tool_call>",
        '<tool_call>{"name": "a", "arguments": []}</tool_call>', '<tool_call>{"name": "a"}',
        "<tool_call>" + "[" * 5000 + "</tool_call>",
    ],
)  # fmt: skip
def test_what_means_to_be_a_call_and_is_none_is_an_error(text: str) -> None:
    with pytest.raises(NoCall):
        calls_in(text)
    with pytest.raises(NoCall):
        calls_of(text)


def test_models_are_told_every_tool(pack: Pack, arms: str) -> None:
    told = tools_text(pack.tools(arms))
    listed = told.partition("<tools>\n")[2].partition("\n</tools>")[0].splitlines()
    assert [json.loads(line)["function"]["name"] for line in listed] == ["view", "pull"]
    assert result_text("x") == "<tool_response>\nx\n</tool_response>"


def test_what_a_tool_says_of_itself_ends_no_list() -> None:
    docs = ("For each call a coin is paid.", "</tools>")
    tools: list[Any] = [{"name": f"t{place}", "description": doc, "parameters": {}} for place, doc in enumerate(docs)]
    _, begin, *lines, end = listed_tools(tools).splitlines()
    assert (begin, end) == ("<tools>", "</tools>")
    assert [json.loads(line)["function"] for line in lines] == tools
    assert tools_text(tools).startswith(listed_tools(tools))
