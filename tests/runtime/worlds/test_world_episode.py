"""Episodes in worlds: whole or nothing, budgets, forks, plans, time, and what an agent is told of its mistakes."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tiny_worlds
import worldkit

from envsynth.errors import SandboxError
from envsynth.runtime.worlds.episode import WorldEpisode


def state(episode: WorldEpisode, sql: str) -> list[Any]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(episode.image())
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_call_does_what_it_says() -> None:
    episode = worldkit.episode_of()
    answer = episode.call("order", {"item": "lamp", "amount": 4})
    assert answer == (True, {"id": 1, "item": "lamp", "amount": 4}, "", False)
    assert state(episode, "SELECT money FROM state") == [(96,)]


def test_a_read_tool_shows_declared_decimals_and_no_hidden_column() -> None:
    rows = worldkit.episode_of().call("look", {}).result
    assert rows[0] == {"item": "clock", "price": 20, "weight": 2}
    assert [row["weight"] for row in rows] == [2, 0.8, 1.2]


MISTAKES = (
    ("order", {"item": "lamp"}, "missing argument 'amount'"),
    ("order", {"item": "lamp", "amount": 1, "colour": "red"}, "unknown argument 'colour'"),
    ("order", {"item": "lamp", "amount": "1"}, "must be an integer"),
    ("order", {"item": "lamp", "amount": True}, "must be an integer"),
    ("order", {"item": "lamp", "amount": 10}, "must be at most 9"),
    ("order", {"item": "lamp", "amount": 0}, "must be at least 1"),
    ("order", {"item": "lamp", "amount": 1.5}, "must be an integer"),
    ("order", {"item": "lamp", "amount": float("nan")}, "must be an integer"),
    ("order", {"item": "lamp", "amount": 10**30}, "must be at most 9"),
    ("order", {"item": "sofa", "amount": 1}, "must be one of lamp, kettle, clock"),
    ("order", None, "must be a JSON object"),
    ("order", [], "must be a JSON object"),
    ("note", {"body": "x", "cents": 10**400}, "too large a number"),
    ("note", {"body": "x", "cents": float("inf")}, "must be a number"),
    ("note", {"body": "x" * 201}, "at most 200 characters"),
    ("note", {"body": "a\0b"}, "NUL"),
    ("note", {"body": "\ud800"}, "not valid Unicode"),
    ("find", {"part": "x" * 20_001}, "at most 20000 characters"),
    ("sell", {}, "there is no tool 'sell'; use look, find"),
    ("", {}, "there is no tool ''"),
    ("\ud800", {}, "there is no tool"),
    (None, {}, "there is no tool"),
    (["order"], {}, "there is no tool"),
    (10**5000, {}, "there is no tool"),
)


@pytest.mark.parametrize(("tool", "arguments", "told"), MISTAKES, ids=map(str, range(len(MISTAKES))))
def test_a_mistake_is_told_changes_nothing_and_can_be_graded(tool: Any, arguments: Any, told: str) -> None:
    episode = worldkit.episode_of()
    before = episode.image()
    answer = episode.call(tool, arguments)
    assert not answer.ok
    assert not answer.done
    assert told in answer.error
    assert episode.image() == before
    assert episode.grade().reward == 1
    assert episode.trace[-1].called.error == answer.error


def test_a_guard_tells_why_and_nothing_is_done() -> None:
    episode = worldkit.episode_of()
    episode.call("order", {"item": "lamp", "amount": 1})
    before = episode.image()
    assert episode.call("order", {"item": "lamp", "amount": 1}).error == "it has been ordered already"
    assert episode.image() == before


ROLLED_BACK = {
    "constraint": "INSERT INTO orders(item, amount) VALUES ('sofa', 1)",
    "of another kind": "INSERT INTO orders(item, amount) VALUES ('lamp', 'many')",
    "too many steps": "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a)"
    " INSERT INTO notes(body, cents) SELECT n, n FROM a",
    "rolls back itself": "INSERT OR ROLLBACK INTO orders(id, item, amount) VALUES (1, 'lamp', 1), (1, 'lamp', 1)",
    "fails half way": "INSERT OR FAIL INTO orders(id, item, amount) VALUES (7, 'lamp', 1), (7, 'lamp', 1)",
    "overflow": "UPDATE state SET money = money + 9223372036854775807",
    "invalid json": "UPDATE state SET money = json_extract('{', '$.a')",
}


@pytest.mark.parametrize("effect", ROLLED_BACK.values(), ids=ROLLED_BACK.keys())
def test_a_call_that_fails_half_way_leaves_nothing(effect: str) -> None:
    effects = ["UPDATE state SET day = day + 1", "INSERT INTO notes(body, cents) VALUES ('a', 1)", effect]
    episode = worldkit.episode_of(worldkit.with_tool("try", kind="write", effects=effects))
    episode.call("wait", {})
    before, digest = episode.image(), episode.state_hash()
    answer = episode.call("try", {})
    assert not answer.ok
    assert "nothing was changed" in answer.error
    assert (episode.image(), episode.state_hash()) == (before, digest)
    assert episode.call("wait", {}).result == {"day": 2, "money": 105}


@pytest.mark.parametrize("effect", [ROLLED_BACK["too many steps"], ROLLED_BACK["rolls back itself"]])
def test_what_was_done_before_outlives_a_lost_transaction(effect: str) -> None:
    """SQLite rolls back everything that is open, not just the call; nobody can tell."""
    document = worldkit.with_tool("try", kind="write", effects=[effect])
    plan = {"plan": [{"item": "clock", "amount": 2}, {"item": "kettle", "amount": 3}]}
    calls = [("wait", {}), ("look", {}), ("order_all", plan), ("note", {"body": "x"}), ("sell", {}), ("wait", {})]
    plain, lost = worldkit.episode_of(document), worldkit.episode_of(document)
    start = plain.state_hash()
    fork = None
    for number, (tool, arguments) in enumerate(calls):
        assert plain.call(tool, arguments) == lost.call(tool, arguments)
        if number % 2:
            assert not lost.call("try", {}).ok
        if number == 3:
            fork = lost.fork()
            assert not fork.call("try", {}).ok
        assert lost.state_hash() == plain.state_hash()
    assert fork is not None
    fork.call("wait", {})
    assert fork.state_hash() == plain.state_hash()
    lost.reset()
    assert lost.state_hash() == start
    assert lost.call("wait", {}).result == {"day": 1, "money": 101}


def test_a_result_that_fails_takes_the_effects_back() -> None:
    document = worldkit.changed_tool("wait", result="SELECT json('{') FROM state")
    episode = worldkit.episode_of(document)
    before = episode.image()
    assert not episode.call("wait", {}).ok
    assert episode.image() == before


def test_errors_of_the_database_name_nothing() -> None:
    effect = "INSERT INTO suppliers SELECT item, name FROM suppliers"
    answer = worldkit.episode_of(worldkit.with_tool("try", kind="write", effects=[effect])).call("try", {})
    assert answer.error == "the call is not possible; nothing was changed"


def test_a_result_of_too_many_rows_is_refused() -> None:
    many = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a LIMIT 1001) SELECT n FROM a ORDER BY n"
    answer = worldkit.episode_of(worldkit.with_tool("many", result=many)).call("many", {})
    assert "more than 1000 rows" in answer.error


def test_a_number_that_is_none_is_shown_as_nothing() -> None:
    document = worldkit.with_tool("odd", result="SELECT 9e999 AS large, -9e999 AS small, x'00ff' AS raw", shape="row")
    episode = worldkit.episode_of(document)
    assert episode.call("odd", {}).result == {"large": None, "small": None, "raw": "00ff"}
    document = worldkit.with_tool("odd", result="""SELECT '{"a": 1e999, "b": [0.5, -1e999]}'""", shape="json")
    episode = worldkit.episode_of(document)
    assert episode.call("odd", {}).result == {"a": None, "b": [0.5, None]}
    assert episode.grade().reward == 1


def test_text_that_is_no_unicode_stops_nobody() -> None:
    """SQLite makes it of JSON that an agent may send; an episode must be graded all the same."""
    effect = "INSERT INTO notes(body, cents) VALUES (json_extract(:text, '$'), 1)"
    document = worldkit.with_tool(
        "jot", kind="write", parameters={"text": {"type": "string"}}, effects=[effect],
        result="SELECT body FROM notes ORDER BY id",
    )  # fmt: skip
    checks = [{"id": "one", "kind": "sql", "sql": "SELECT count(*) = 2 FROM notes WHERE body <> ''"}]
    episode = worldkit.episode_of(document, checks=checks)
    for text in ("\\ud800", "\\udfff"):
        assert episode.call("jot", {"text": f'"{text}"'}).ok
    shown = [row["body"] for row in episode.call("jot", {"text": '"é"'}).result]
    assert shown == ["\\xed\\xa0\\x80", "\\xed\\xbf\\xbf", "é"]
    assert len(episode.state_hash()) == 64
    assert episode.grade().detail["changed"] == {"notes": [3, 0, 0]}


def test_json_tables_can_be_used_and_the_episode_reset_again_and_again() -> None:
    """SQLite's tables of JSON point at the schema of their first use; another image would leave them dangling."""
    document = worldkit.with_tool(
        "parts", parameters={"listed": {"type": "string"}},
        result="SELECT value FROM json_each(:listed) ORDER BY value",
    )  # fmt: skip
    episode = worldkit.episode_of(document)
    for _ in range(5):
        assert episode.call("parts", {"listed": "[2, 1]"}).result == [{"value": 1}, {"value": 2}]
        fork = episode.fork()
        assert fork.call("parts", {"listed": "[3]"}).result == [{"value": 3}]
        fork.close()
        episode.restore(episode.snapshot())
        assert episode.call("parts", {"listed": "["}).error
        episode.reset()


def test_reset_forgets_everything() -> None:
    episode = worldkit.episode_of()
    start = (episode.image(), episode.state_hash())
    for _ in range(5):
        episode.call("wait", {})
    assert episode.over
    assert episode.reset() == worldkit.INSTRUCTION
    assert (episode.image(), episode.state_hash()) == start
    assert not episode.trace
    assert not episode.over


def test_a_fork_and_its_original_go_their_own_ways() -> None:
    episode = worldkit.episode_of()
    episode.call("order", {"item": "lamp", "amount": 1})
    fork = episode.fork()
    assert fork.state_hash() == episode.state_hash()
    assert fork.trace == episode.trace
    fork.call("order", {"item": "clock", "amount": 2})
    episode.call("wait", {})
    assert state(episode, "SELECT count(*) FROM orders") == [(1,)]
    assert state(fork, "SELECT (SELECT count(*) FROM orders), day FROM state") == [(2, 0)]
    assert [turn.tool for turn in fork.trace] == ["order", "order"]
    twin = fork.fork()
    fork.close()
    assert twin.call("order", {"item": "kettle", "amount": 1}).result["id"] == 3


def test_a_snapshot_can_be_gone_back_to_more_than_once() -> None:
    episode = worldkit.episode_of()
    episode.call("wait", {})
    snapshot, digest = episode.snapshot(), episode.state_hash()
    for item in ("lamp", "clock"):
        episode.call("order", {"item": item, "amount": 3})
        assert episode.state_hash() != digest
        episode.restore(snapshot)
        assert episode.state_hash() == digest
        assert len(episode.trace) == 1
    assert episode.call("wait", {}).result == {"day": 2, "money": 105}


MANY = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a LIMIT 5000) SELECT n, item FROM a, stock"
UNREAD = {
    "guard of many rows": {"guards": [{"sql": "SELECT price > 100 FROM stock ORDER BY item", "error": "no"}]},
    "guard of many rows that holds": {"guards": [{"sql": "SELECT price FROM stock ORDER BY item", "error": "no"}]},
    "result of too many rows": {"result": MANY},
    "the same after an effect": {"result": MANY, "kind": "write", "effects": ["UPDATE state SET day = day + 1"]},
    "row of many": {"result": MANY, "shape": "row"},
}


@pytest.mark.parametrize("tool", UNREAD.values(), ids=UNREAD.keys())
def test_rows_that_nobody_reads_hold_nothing_up(tool: dict[str, Any]) -> None:
    episode = worldkit.episode_of(worldkit.with_tool("try", **tool))
    episode.call("wait", {})
    snapshot = episode.snapshot()
    for again in (
        lambda: episode.restore(snapshot),
        lambda: [episode.reset(), episode.call("wait", {})],
        lambda: episode.restore(episode.snapshot()),
        lambda: episode.fork().close(),
        episode.grade,
        episode.state_hash,
    ):
        episode.restore(snapshot)
        episode.call("try", {})
        again()
        assert episode.call("wait", {}).result == {"day": 2, "money": 105}


def test_only_a_snapshot_is_gone_back_to() -> None:
    with pytest.raises(TypeError, match="not a snapshot"):
        worldkit.episode_of().restore(b"image")


def test_the_end_comes_with_the_call_that_brings_it() -> None:
    episode = worldkit.episode_of()
    assert [episode.call("wait", {}).done for _ in range(5)] == [False] * 4 + [True]
    before = episode.image()
    assert episode.call("wait", {}) == (False, None, "the episode is over", True)
    assert episode.malformed("x").error == "the episode is over"
    assert episode.image() == before
    assert len(episode.trace) == 5
    assert episode.grade().gate == 1


def test_what_says_that_nothing_is_left_may_read_hidden_things_and_change_nothing() -> None:
    hidden = worldkit.shop(over="SELECT money > (SELECT max(demand) FROM tape) + 90 FROM state")
    assert worldkit.episode_of(hidden).call("wait", {}).done is False
    assert worldkit.episode_of(worldkit.shop(over="SELECT :now > '2026'")).call("wait", {}).done is True
    for sql in ("UPDATE state SET day = 9", "SELECT CURRENT_TIMESTAMP > ''", "PRAGMA user_version"):
        episode = worldkit.episode_of(worldkit.shop(over=sql))
        with pytest.raises(SandboxError, match="over cannot be told"):
            episode.call("wait", {})


def test_the_budget_of_calls_ends_an_episode_with_nothing() -> None:
    episode = worldkit.episode_of(turns=2)
    assert episode.max_turns == 2
    episode.call("look", {})
    assert not episode.call("nothing", {}).done
    answer = episode.call("look", {})
    assert answer.done
    assert "2 calls is spent" in answer.error
    grade = episode.grade()
    assert (grade.gate, grade.reward, grade.outcome) == (0, 0, 1)


def test_what_costs_more_than_is_left_is_refused() -> None:
    episode = worldkit.episode_of(cost=3)
    assert episode.call("order", {"item": "lamp", "amount": 1}).ok
    answer = episode.call("order", {"item": "clock", "amount": 1})
    assert answer.error == "order costs 2: 1 are left"
    assert episode.call("wait", {}).ok
    assert episode.grade().gate == 1


def test_a_budget_can_be_spent_to_the_last_tenth() -> None:
    episode = worldkit.episode_of(worldkit.changed_tool("look", cost=0.1), cost=0.3)
    assert [episode.call("look", {}).ok for _ in range(4)] == [True, True, True, False]


def test_a_refused_call_costs_nothing() -> None:
    episode = worldkit.episode_of(cost=2)
    assert not episode.call("order", {"item": "sofa", "amount": 1}).ok
    assert episode.call("order", {"item": "lamp", "amount": 1}).ok


def test_what_is_no_tool_call_ends_an_episode_with_nothing() -> None:
    episode = worldkit.episode_of()
    episode.call("order", {"item": "lamp", "amount": 4})
    answer = episode.malformed("I order \ud800 four lamps.")
    assert answer.done
    grade = episode.grade()
    assert (grade.gate, grade.reward) == (0, 0)
    assert grade.detail["transcript"]["valid_transcript"] is False


def test_the_answer_is_what_was_submitted() -> None:
    checks = [{"id": "total", "kind": "diff", "answer": {"total": 4}}]
    episode = worldkit.episode_of(checks=checks)
    assert episode.call("submit", {"total": 4}).done
    assert episode.grade().outcome == 1
    query = [{"id": "total", "kind": "sql", "sql": "SELECT value = 4 FROM answer WHERE key = 'total'"}]
    episode = worldkit.episode_of(checks=query)
    assert episode.grade().outcome == 0
    episode.call("submit", {"total": 4.0})
    assert episode.grade().outcome == 1


def test_grading_changes_nothing_and_can_be_done_at_any_time() -> None:
    episode = worldkit.episode_of()
    episode.call("wait", {})
    before = episode.image()
    assert episode.grade() == episode.grade()
    assert episode.image() == before
    assert episode.call("wait", {}).ok


def test_a_verifier_that_cannot_be_evaluated_gives_no_grade() -> None:
    for sql in ("SELECT nothing FROM orders", "DELETE FROM orders", "SELECT random() IS NOT NULL"):
        with pytest.raises(SandboxError):
            worldkit.episode_of(checks=[{"id": "bad", "kind": "sql", "sql": sql}]).grade()


PLANS = {
    "no json": ("[", "is no JSON"),
    "no list": ("{}", "must be a JSON array"),
    "no objects": ("[1]", "element 0"),
    "too long": (json.dumps([{"item": "lamp", "amount": 1}] * 4), "at most 3"),
    "missing field": ('[{"item": "lamp"}]', "element 0"),
    "unknown field": ('[{"item": "lamp", "amount": 1, "x": 1}]', "element 0"),
    "second out of bounds": ('[{"item": "lamp", "amount": 1}, {"item": "clock", "amount": 10}]', "element 1"),
    "guard of the second": ('[{"item": "lamp", "amount": 1}, {"item": "lamp", "amount": 1}]', "element 1: it has been"),
    "deep": ("[" * 5000 + "]" * 5000, "is no JSON"),
    "NUL": ('[{"item": "lamp", "amount": 1}]\0', "NUL"),
    "endless": ('[{"item": "lamp", "amount": 1e999}]', "element 0"),
}


@pytest.mark.parametrize(("plan", "told"), PLANS.values(), ids=PLANS.keys())
def test_a_plan_is_carried_out_whole_or_not_at_all(plan: str, told: str) -> None:
    episode = worldkit.episode_of()
    before = episode.image()
    answer = episode.call("order_all", {"plan": plan})
    assert not answer.ok
    assert told in answer.error
    assert episode.image() == before


def test_a_plan_does_what_its_elements_would() -> None:
    elements = [{"item": "lamp", "amount": 2}, {"item": "clock", "amount": 1}]
    planned, listed, single = worldkit.episode_of(), worldkit.episode_of(), worldkit.episode_of()
    assert planned.call("order_all", {"plan": json.dumps(elements)}).ok
    assert listed.call("order_all", {"plan": elements}).ok
    for element in elements:
        single.call("order", element)
    assert planned.state_hash() == listed.state_hash() == single.state_hash()
    assert planned.call("order_all", {"plan": "[]"}).ok


def test_a_plan_that_cannot_be_written_down_is_refused() -> None:
    deep: Any = []
    for _ in range(3000):
        deep = [deep]
    for plan in ([float("nan")], [deep], [{"item": "\ud800", "amount": 1}], [object()]):
        episode = worldkit.episode_of()
        assert not episode.call("order_all", {"plan": plan}).ok
        assert episode.grade().reward == 1


def test_positions_count_from_zero() -> None:
    document = worldkit.changed_tool(
        "order_all", guards=[], effects=["INSERT INTO notes(body, cents) VALUES (:item || ' ' || :now, :position)"]
    )
    episode = worldkit.episode_of(document)
    episode.call("order_all", {"plan": [{"item": "lamp", "amount": 1}] * 2})
    assert state(episode, "SELECT body, cents FROM notes ORDER BY id") == [
        ("lamp 2026-03-10T09:00:00", 0.0), ("lamp 2026-03-10T09:00:00", 1.0),
    ]  # fmt: skip


def test_time_stands_still_or_is_a_value_of_the_state() -> None:
    asking = {"kind": "read", "result": "SELECT :now AS now", "shape": "row"}
    tables = worldkit.shop()["tables"] | {"clock": {"columns": {"now": {"type": "text"}}}}
    rows = worldkit.shop()["rows"] | {"clock": [["2026-03-10T09:00:00"]]}
    later = {"kind": "clock", "effects": ["UPDATE clock SET now = strftime('%Y-%m-%dT%H:%M:%S', now, '+2 hours')"]}
    tools = worldkit.shop()["tools"] | {"ask": asking, "later": later}
    still = worldkit.episode_of(worldkit.shop(tools=worldkit.shop()["tools"] | {"ask": asking}))
    assert still.call("ask", {}).result == {"now": "2026-03-10T09:00:00"}
    episode = worldkit.episode_of(worldkit.shop(tables=tables, rows=rows, tools=tools))
    snapshot = episode.snapshot()
    episode.call("later", {})
    assert episode.call("ask", {}).result == {"now": "2026-03-10T11:00:00"}
    episode.restore(snapshot)
    assert episode.call("ask", {}).result == {"now": "2026-03-10T09:00:00"}


def test_tools_are_told_as_flat_schemas_and_in_copies() -> None:
    episode = worldkit.episode_of()
    tools = episode.tools()
    order = next(tool for tool in tools if tool["name"] == "order")
    assert order["parameters"] == {
        "type": "object", "additionalProperties": False, "required": ["item", "amount"],
        "properties": {
            "item": {"type": "string", "enum": ["lamp", "kettle", "clock"], "description": "Which one."},
            "amount": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
        },
    }  # fmt: skip
    assert "sql" not in json.dumps(tools).lower()
    order["parameters"]["properties"].clear()
    assert episode.tools()[2]["parameters"]["properties"]


def test_an_episode_that_is_not_open_says_so_and_is_closed_twice() -> None:
    episode = worldkit.episode_of()
    episode.close()
    episode.close()
    with pytest.raises(RuntimeError, match="call reset first"):
        episode.call("wait", {})
    episode.reset()
    assert episode.call("wait", {}).ok


def test_threads_that_share_an_episode_take_turns() -> None:
    episode = worldkit.episode_of()
    episode.reset()

    def play(number: int) -> None:
        for turn in range(40):
            if turn % 20 == 19:
                episode.reset()
            episode.call("order", {"item": "lamp", "amount": 1 + number % 2})
            episode.call("look", {})
            if turn % 15 == 7:
                episode.state_hash()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(play, range(4)))
    episode.reset()
    assert state(episode, "SELECT money FROM state") == [(100,)]


def test_an_agent_may_stop_and_what_it_reached_is_graded() -> None:
    episode = tiny_worlds.episode_of("two-armed")
    episode.reset()
    episode.call("pull", {"arm": 1})
    assert episode.stop().done
    assert episode.grade().gate == 1
    assert not episode.call("view", {}).ok


def test_a_snapshot_of_another_task_is_refused() -> None:
    episode, other = tiny_worlds.episode_of("returns-desk-refuse"), tiny_worlds.episode_of("returns-desk-refund")
    episode.reset()
    other.reset()
    with pytest.raises(ValueError, match="a snapshot of"):
        other.restore(episode.snapshot())
