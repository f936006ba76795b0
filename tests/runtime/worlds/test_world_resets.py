"""Resets by rolling back, and what happens where SQLite rolls back more than a call."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import worldkit
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime.arguments import check_arguments
from envsynth.runtime.worlds.authority import Authority
from envsynth.runtime.worlds.episode import WorldEpisode
from envsynth.runtime.worlds.quick import Acceptor

LOSING = {
    "too many steps": "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a)"
    " INSERT INTO notes(body, cents) SELECT n, n FROM a",
    "rolls back itself": "INSERT OR ROLLBACK INTO orders(id, item, amount) VALUES (1, 'lamp', 1), (1, 'lamp', 1)",
}


def everything(episode: WorldEpisode) -> tuple[Any, ...]:
    return episode.image(), episode.state_hash(), episode.grade()._replace(detail={}), episode.over


def losing(effect: str) -> WorldEpisode:
    return worldkit.episode_of(worldkit.with_tool("lose", kind="write", effects=[effect]))


@pytest.mark.parametrize("effect", LOSING.values(), ids=LOSING.keys())
def test_calls_made_before_a_rollback_of_everything_are_not_lost(effect: str) -> None:
    episode, untouched = losing(effect), losing(effect)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("order", {"item": "lamp", "amount": 2}), ("look", {}), ("order", {"item": "lamp", "amount": 1}),
        ("note", {"body": "n"}), ("wait", {}), ("order_all", {"plan": '[{"item": "clock", "amount": 1}]'}),
    ]  # fmt: skip
    for name, arguments in calls:
        assert episode.call(name, arguments) == untouched.call(name, arguments)
        before = everything(episode)
        assert not episode.call("lose", {}).ok
        assert everything(episode) == before
    assert episode.state_hash() == untouched.state_hash()


@pytest.mark.parametrize("effect", LOSING.values(), ids=LOSING.keys())
def test_a_reset_after_a_rollback_of_everything_begins_anew(effect: str) -> None:
    episode = losing(effect)
    start = episode.state_hash()
    for _ in range(3):
        episode.call("wait", {})
        episode.call("lose", {})
        episode.call("wait", {})
        assert episode.state_hash() != start
        episode.reset()
        assert episode.state_hash() == start
        assert not episode.trace


@pytest.mark.parametrize("effect", LOSING.values(), ids=LOSING.keys())
def test_snapshots_and_forks_outlive_a_rollback_of_everything(effect: str) -> None:
    episode = losing(effect)
    episode.call("wait", {})
    snapshot = episode.snapshot()
    episode.restore(snapshot)
    fork = episode.fork()
    for one in (episode, fork):
        one.call("note", {"body": "n"})
        before = one.state_hash()
        one.call("lose", {})
        assert one.state_hash() == before
        assert one.call("wait", {}).result == {"day": 2, "money": 105}
    episode.restore(snapshot)
    assert episode.call("wait", {}).result == {"day": 2, "money": 105}


def test_time_goes_on_after_a_rollback_of_everything() -> None:
    parts = worldkit.shop()
    tools = parts["tools"] | {
        "later": {"kind": "clock", "effects": ["UPDATE clock SET now = datetime(now, '+1 day')"]},
        "stamp": {"kind": "write", "effects": ["INSERT INTO notes(body, cents) VALUES (:now, 0)"]},
        "lose": {"kind": "write", "effects": [LOSING["rolls back itself"]]},
    }
    tables = parts["tables"] | {"clock": {"columns": {"now": {"type": "text"}}}}
    document = worldkit.shop(
        tables=tables, rows=parts["rows"] | {"clock": [["2026-03-10 09:00:00"]]}, tools=tools, over=""
    )
    episode, untouched = worldkit.episode_of(document), worldkit.episode_of(document)
    for name in ("later", "stamp", "later", "stamp"):
        episode.call(name, {})
        untouched.call(name, {})
    assert not episode.call("lose", {}).ok
    for one in (episode, untouched):
        one.call("stamp", {})
    assert episode.state_hash() == untouched.state_hash()


def test_statements_are_not_prepared_again_after_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = Authority.__call__

    def counting(self: Authority, *action: Any) -> int:
        asked.append(action[0])
        return plain(self, *action)

    monkeypatch.setattr(Authority, "__call__", counting)
    episode = worldkit.episode_of()

    def play() -> list[Any]:
        return [
            episode.call("wait", {}),
            episode.call("order", {"item": "lamp", "amount": 2}),
            episode.call("look", {}),
        ]

    first = play()
    episode.reset()
    prepared = len(asked)
    assert play() == first
    episode.reset()
    assert len(asked) == prepared


@pytest.mark.parametrize("count", [1, 3, 20, 21, 60])
def test_an_enumeration_of_any_length_is_kept(count: int) -> None:
    words = [f"word '{number}'" for number in range(count)]
    tables = worldkit.shop()["tables"] | {"said": {"columns": {"word": {"type": "text", "enum": words}}}}
    say = {
        "kind": "write", "parameters": {"word": {"type": "string"}},
        "effects": ["INSERT INTO said(word) VALUES (:word)"],
    }  # fmt: skip
    tools = worldkit.shop()["tools"] | {"say": say}
    episode = worldkit.episode_of(worldkit.shop(tables=tables, tools=tools))
    assert episode.call("say", {"word": words[-1]}).ok
    assert not episode.call("say", {"word": "another"}).ok


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-3, 12), st.floats(), st.text(max_size=6), st.just("lamp\0"),
    st.sampled_from(["lamp", "\ud800", 5.0, 1e308, 2**63, -(2**63)]),
)  # fmt: skip
BOUNDS = st.fixed_dictionaries({}, optional={"minimum": st.integers(-3, 5), "maximum": st.integers(5, 12)})
SCHEMAS = st.one_of(
    st.sampled_from(["integer", "number"]).flatmap(lambda kind: BOUNDS.map(lambda bounds: {"type": kind, **bounds})),
    st.just({"type": "boolean"}),
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 3), "maxLength": st.integers(3, 5)}
    ),
    st.just({"type": "string", "enum": ["lamp", "clock"]}),
    st.just({"type": "integer", "enum": [1, 5]}),
)


@given(st.data())
def test_what_is_accepted_at_once_would_be_accepted_after_a_closer_look(data: st.DataObject) -> None:
    properties = data.draw(st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=3))
    arguments = data.draw(st.dictionaries(st.sampled_from([*"abcd"]), VALUES, max_size=4))
    required = data.draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    schema = {"type": "object", "properties": properties, "required": required}
    if Acceptor(schema, longest=4)(arguments):
        checked = check_arguments(schema, arguments)
        assert checked == (arguments, "")
        assert [type(value) for value in checked.values.values()] == [type(value) for value in arguments.values()]
        assert all(len(value) <= 4 and "\0" not in value for value in arguments.values() if isinstance(value, str))
        assert all(-(2**63) <= value < 2**63 for value in arguments.values() if type(value) is int)


def test_an_episode_has_nothing_of_one_that_was_closed_before() -> None:
    first = worldkit.episode_of()
    start = first.state_hash()
    first.call("wait", {})
    snapshot, later = first.snapshot(), first.state_hash()
    first.close()
    second, third = WorldEpisode(first.task), WorldEpisode(first.task)
    second.reset()
    third.restore(snapshot)
    assert (second.state_hash(), third.state_hash()) == (start, later)
    assert second.call("order", {"item": "lamp", "amount": 1}).ok
    assert third.state_hash() == later
    for closed in (second, third, third):
        closed.close()
    first.reset()
    assert first.state_hash() == start
    assert not first.trace


def test_more_episodes_than_a_world_keeps_connections_of() -> None:
    episode = worldkit.episode_of()
    episode.call("wait", {})
    for _ in range(2):
        forks = [episode.fork() for _ in range(20)]
        assert {fork.state_hash() for fork in forks} == {episode.state_hash()}
        for fork in forks:
            fork.call("wait", {})
            fork.close()


def test_a_task_goes_to_another_process_without_its_connections() -> None:
    episode = worldkit.episode_of()
    episode.close()
    twin = WorldEpisode(pickle.loads(pickle.dumps(episode.task)))
    twin.reset()
    episode.reset()
    assert twin.call("wait", {}) == episode.call("wait", {})
    assert twin.state_hash() == episode.state_hash()


@pytest.mark.parametrize("sql", ["SELECT 'no'", "SELECT '1'", "SELECT NULL", "SELECT 0 FROM state", "SELECT 0.0"])
def test_only_a_number_can_end_an_episode(sql: str) -> None:
    assert not worldkit.episode_of(worldkit.shop(over=sql)).call("wait", {}).done
