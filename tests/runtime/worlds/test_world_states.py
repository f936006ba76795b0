"""State hashes, exact differences, and the `diff` check in AppWorld's order."""

from __future__ import annotations

from typing import Any

import pytest
import worldkit

from envsynth.errors import SandboxError
from envsynth.runtime.worlds.checks import diff_fault, equal
from envsynth.runtime.worlds.episode import WorldEpisode


def hash_of(*calls: tuple[str, dict[str, Any]], document: dict[str, Any] | None = None) -> str:
    episode = worldkit.episode_of(document)
    for tool, arguments in calls:
        assert episode.call(tool, arguments).ok
    return episode.state_hash()


LAMP, CLOCK = ("order", {"item": "lamp", "amount": 4}), ("order", {"item": "clock", "amount": 1})
UNDO = {"kind": "write", "effects": ["DELETE FROM orders", "UPDATE state SET money = 100"]}


def test_equal_rows_have_equal_hashes_however_they_came_about() -> None:
    document = worldkit.with_tool("undo", **UNDO)
    plain = hash_of(document=document)
    assert hash_of(LAMP, ("undo", {}), document=document) == plain
    assert hash_of(LAMP, document=document) != plain


def test_the_order_of_rows_is_no_part_of_the_hash() -> None:
    notes = [("note", {"body": "a", "cents": 1}), ("note", {"body": "b", "cents": 2})]
    assert hash_of(*notes) == hash_of(*reversed(notes))


def test_rows_of_the_document_in_another_order_are_the_same_state() -> None:
    rows = worldkit.shop()["rows"]
    rows["stock"] = rows["stock"][::-1]
    rows["tape"] = rows["tape"][::-1]
    assert hash_of(document=worldkit.shop(rows=rows)) == hash_of()


def test_whole_numbers_are_equal_however_they_are_stored() -> None:
    assert hash_of(("note", {"body": "a", "cents": 25})) == hash_of(("note", {"body": "a", "cents": 25.0}))
    assert hash_of(("note", {"body": "a", "cents": 25})) != hash_of(("note", {"body": "a", "cents": 25.5}))


def test_what_is_tolerated_or_given_by_the_system_is_no_part_of_the_hash() -> None:
    assert hash_of(("look", {}), ("look", {})) == hash_of()
    twice = worldkit.with_tool("undo", kind="write", effects=["DELETE FROM notes WHERE body = 'x'"])
    first, second = ("note", {"body": "x"}), ("note", {"body": "y"})
    assert hash_of(first, second, ("undo", {}), document=twice) == hash_of(second, document=twice)


def test_every_other_value_is() -> None:
    hashes = {hash_of(), hash_of(LAMP), hash_of(CLOCK), hash_of(("wait", {})), hash_of(("note", {"body": "x"}))}
    assert len(hashes) == 5


NOTE = ("note", {"body": "four lamps", "cents": 196})


def keyed() -> dict[str, Any]:
    """The shop with a key for its one row of state, so that a change of it is a change."""
    tables = worldkit.shop()["tables"]
    number = {"type": "integer"}
    tables["state"] = {"columns": {"id": {**number, "role": "key"}, "day": number, "money": number}}
    rows = worldkit.shop()["rows"] | {"state": [[1, 0, 100]]}
    return worldkit.with_tool("undo", **UNDO) | {"tables": tables, "rows": rows}


def check(**changes: Any) -> dict[str, Any]:
    expect: dict[str, Any] = {
        "orders": {"added": [{"item": "lamp", "amount": 4}]},
        "state": {"changed": [{"key": [1], "values": {"money": 96}}]},
        "notes": {"added": [{"cents": 196}]},
    }
    return {"id": "end", "kind": "diff", "expect": expect | changes.pop("expect", {}), **changes}


def fault(*calls: tuple[str, dict[str, Any]], **changes: Any) -> str:
    episode = worldkit.episode_of(keyed(), checks=[check(**changes)])
    for tool, arguments in calls:
        assert episode.call(tool, arguments).ok
    return str(episode.grade().detail["faults"].get("end", ""))


def test_the_expected_change_is_found() -> None:
    assert fault(LAMP, NOTE) == ""
    assert fault(NOTE, ("look", {}), LAMP) == ""


def test_free_text_is_not_compared_and_tolerance_is_kept() -> None:
    assert fault(LAMP, ("note", {"body": "something else", "cents": 196.5})) == ""
    assert (
        fault(LAMP, ("note", {"body": "four lamps", "cents": 196.6}))
        == "notes: a new row has other values than expected"
    )


def test_faults_are_told_in_the_order_of_how_much_they_say() -> None:
    """Changed tables, then counts, then columns, then values."""
    assert fault(LAMP, NOTE, expect={"orders": {}}).startswith("orders: 1 rows added, 0 expected")
    document = keyed()
    document["tools"]["spoil"] = {"kind": "write", "effects": ["UPDATE stock SET price = 1 WHERE item = 'lamp'"]}
    episode = worldkit.episode_of(document, checks=[check()])
    assert episode.grade().detail["faults"]["end"] == "notes: 0 rows added, 1 expected"
    episode.call("spoil", {})
    assert episode.grade().detail["faults"]["end"] == "the table stock was changed"
    assert fault(("order", {"item": "lamp", "amount": 3}), NOTE) == "orders: a new row has other values than expected"


def test_columns_come_before_values() -> None:
    wanted = {"state": {"changed": [{"key": [1], "values": {"day": 1}}]}}
    assert fault(LAMP, NOTE, expect=wanted) == "state: row 1: other columns changed than expected (day, money)"
    wanted = {"state": {"changed": [{"key": [1], "values": {"money": 1}}]}}
    assert fault(LAMP, NOTE, expect=wanted) == "state: row 1 has other values than expected"


def test_rows_that_should_be_there_twice_are_counted() -> None:
    """Without a key, equal rows are as many as they are."""
    twice = [{"cents": 1}, {"cents": 1}]
    note = ("note", {"body": "x", "cents": 1})
    expect = {"orders": {}, "state": {}, "notes": {"added": twice}}
    assert fault(note, note, expect=expect) == ""
    assert fault(note, expect=expect) == "notes: 1 rows added, 2 expected"
    other = ("note", {"body": "x", "cents": 3})
    assert fault(note, other, expect=expect) == "notes: a new row has other values than expected"


def test_each_expected_row_needs_a_row_of_its_own() -> None:
    """The first row fits both expected ones; only one assignment works, in whatever order they are listed."""
    lamp, clock = ("note", {"body": "x", "cents": 1.4}), ("note", {"body": "x", "cents": 1})
    for rows in ([{"cents": 1}, {"cents": 1.8}], [{"cents": 1.8}, {"cents": 1}]):
        assert fault(lamp, clock, expect={"orders": {}, "state": {}, "notes": {"added": rows}}) == ""


def test_what_must_be_gone_is_named_by_its_key() -> None:
    document = keyed()
    document["rows"]["orders"] = [[7, "lamp", 1], [8, "clock", 1]]
    document["tools"]["drop"] = {
        "kind": "write", "parameters": {"id": {"type": "integer"}}, "effects": ["DELETE FROM orders WHERE id = :id"],
    }  # fmt: skip
    expected = {"id": "end", "kind": "diff", "expect": {"orders": {"removed": [[7]]}}}
    for dropped, outcome in ((7, 1), (8, 0)):
        episode = worldkit.episode_of(document, checks=[expected])
        episode.call("drop", {"id": dropped})
        assert episode.grade().outcome == outcome


@pytest.mark.parametrize("named", [{"body": "first", "cents": 5.0}, {"body": "first"}, {}, []])
def test_what_must_be_gone_of_a_table_without_a_key_is_named_by_its_values(named: Any) -> None:
    document = keyed()
    document["rows"]["notes"] = [[1, "first", 5.0], [2, "second", 5.0], [3, "third", 6.0]]
    document["tools"]["tear"] = {
        "kind": "write", "parameters": {"body": {"type": "string"}},
        "effects": ["DELETE FROM notes WHERE body = :body"],
    }  # fmt: skip
    expected = {"id": "end", "kind": "diff", "expect": {"notes": {"removed": [named]}}}
    found = {}
    for torn in ("first", "second", "third"):
        episode = worldkit.episode_of(document, checks=[expected])
        assert episode.call("tear", {"body": torn}).ok
        grade = episode.grade()
        found[torn] = grade.outcome
        assert grade.outcome == 1 or grade.detail["faults"]["end"] == "notes: another row than expected was removed"
    assert found == {"first": float(bool(named)), "second": 0, "third": 0}


SCALE = {
    "id": "scale", "clock": "2026-03-10T09:00:00",
    "tables": {
        "jars": {
            "columns": {
                "id": {"type": "integer", "role": "key"}, "grams": {"type": "real", "tolerance": 0.5},
                "sealed": {"type": "integer"},
            }
        }
    },
    "rows": {"jars": [[1, 100.0, 0], [2, 80.0, 0]]},
    "tools": {
        "lose": {
            "kind": "write", "parameters": {"id": {"type": "integer"}, "grams": {"type": "number"}},
            "effects": ["UPDATE jars SET grams = grams - :grams WHERE id = :id"],
        },
        "seal": {
            "kind": "write", "parameters": {"id": {"type": "integer"}},
            "effects": ["UPDATE jars SET sealed = 1 WHERE id = :id"],
        },
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "grams", "right"),
    [
        ((), {}, True),
        (((2, 0.4),), {}, True),
        (((1, 0.5),), {}, True),
        (((1, 0.6),), {}, False),
        (((2, 0.6),), {}, False),
        (((2, 1.0),), {"grams": 79.2}, True),
        (((2, 0.7),), {"grams": 79.2}, True),
        (((2, 0.4),), {"grams": 79.2}, False),
        (((2, 1.4),), {"grams": 79.2}, False),
    ],
)
def test_what_a_tolerance_forgives_is_no_change(lost: Any, grams: dict[str, float], right: bool) -> None:
    changed = [{"key": [2], "values": {"sealed": 1, **grams}}]
    checks = [{"id": "end", "kind": "diff", "expect": {"jars": {"changed": changed}}}]
    episode = worldkit.episode_of(SCALE, checks=checks)
    for jar, amount in lost:
        assert episode.call("lose", {"id": jar, "grams": amount}).ok
    assert episode.call("seal", {"id": 2}).ok
    assert (episode.grade().outcome == 1) is right


def test_many_equal_rows_are_matched_at_once() -> None:
    """Matching them one by one would take minutes, and more frames than Python has."""
    rows = [{"item": "lamp", "amount": 1}] * 3000
    document = keyed()
    document["tables"]["orders"]["columns"]["id"] = {"type": "integer", "role": "exempt"}
    document["tools"]["flood"] = {
        "kind": "write",
        "effects": [
            "INSERT INTO orders(item, amount) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
            " WHERE i < 3000) SELECT 'lamp', 1 FROM n"
        ],
    }  # fmt: skip
    for wanted, outcome in ((rows, 1), ([*rows[1:], {"item": "lamp", "amount": 2}], 0)):
        checks = [{"id": "end", "kind": "diff", "expect": {"orders": {"added": wanted}}}]
        episode = worldkit.episode_of(document, checks=checks)
        assert episode.call("flood", {}).ok
        assert episode.grade().outcome == outcome


def test_keys_written_as_text_name_rows_with_numbers() -> None:
    wanted = {"state": {"changed": [{"key": ["1"], "values": {"money": 96}}]}}
    assert fault(LAMP, NOTE, expect=wanted) == ""


def test_undoing_everything_is_no_change() -> None:
    episode = worldkit.episode_of(keyed(), checks=[{"id": "end", "kind": "diff", "answer": {}}])
    for call in (LAMP, ("undo", {})):
        episode.call(*call)
    assert episode.grade().detail["changed"] == {}
    assert episode.grade().outcome == 1


@pytest.mark.parametrize(
    ("wanted", "answer", "told"),
    [
        ({"total": 4}, {"total": 4}, ""),
        ({"total": 4}, {"total": 4.0}, ""),
        ({"total": 4}, {"total": 5}, "the answer is wrong in total"),
        ({"total": 4}, {"total": "4"}, "the answer is wrong in total"),
        ({"total": 4}, {}, "the answer has nothing where total is expected"),
        ({"total": 4}, {"total": 4, "more": 1}, "the answer has more, total where total is expected"),
        ({"sure": True}, {"sure": 1}, ""),
        (None, {"anything": 1}, ""),
    ],
)
def test_answers_are_compared_whole(wanted: Any, answer: dict[str, Any], told: str) -> None:
    document = {"id": "end", "kind": "diff", "expect": {}, "answer": wanted}
    assert diff_fault(document, {}, [], answer) == told


@pytest.mark.parametrize(
    ("left", "right", "tolerance", "same"),
    [
        (25, 25.0, 0, True), (25, "25", 0, False), (True, 1, 0, True), (None, 0, 0, False), (None, None, 0, True),
        (1.0, 1.4, 0.5, True), (1.0, 1.6, 0.5, False), ("a", "a ", 0, False), (2**63 - 1, 2**63 - 2, 0, False),
    ],
)  # fmt: skip
def test_values_are_equal_by_what_they_mean(left: Any, right: Any, tolerance: float, same: bool) -> None:
    assert equal(left, right, tolerance) is same


def test_invariants_are_checked_at_the_end() -> None:
    tools = worldkit.shop()["tools"]
    tools["flood"] = {"kind": "write", "effects": ["INSERT INTO orders(item, amount) VALUES ('lamp', 10)"]}
    checks = [{"id": "rules", "kind": "invariants"}]
    episode = worldkit.episode_of(worldkit.shop(tools=tools), checks=checks)
    assert episode.grade().outcome == 1
    episode.call("flood", {})
    grade = episode.grade()
    assert grade.outcome == 0
    assert grade.detail["faults"] == {"rules": "the invariant few is violated"}


@pytest.mark.parametrize(("days", "outcome"), [(0, 0.0), (1, 0.0), (2, 0.25), (3, 1.0), (4, 1.0)])
def test_a_utility_counts_between_default_and_reference(days: int, outcome: float) -> None:
    """Money after n days: 100, 101, 105, 112, 122."""
    utility = {"sql": "SELECT money FROM state", "default": 103.5, "reference": 109.5}
    episode: WorldEpisode = worldkit.episode_of(utility=utility)
    for _ in range(days):
        episode.call("wait", {})
    assert episode.grade().outcome == outcome


def test_a_utility_counts_only_where_all_checks_hold() -> None:
    utility = {"sql": "SELECT 5", "default": 0, "reference": 1}
    checks = [{"id": "bought", "kind": "sql", "sql": "SELECT count(*) FROM orders"}]
    episode = worldkit.episode_of(utility=utility, checks=checks)
    assert episode.grade().outcome == 0
    episode.call("order", {"item": "lamp", "amount": 1})
    assert episode.grade().outcome == 1


@pytest.mark.parametrize("value", ["9e999", "-9e999", "NULL", "'5'"])
def test_a_utility_that_is_no_finite_number_is_no_grade(value: str) -> None:
    episode = worldkit.episode_of(utility={"sql": f"SELECT {value}", "default": 0, "reference": 1})
    with pytest.raises(SandboxError, match="no finite number"):
        episode.grade()


def test_a_row_that_is_taken_away_and_put_back_is_no_difference() -> None:
    effects = [
        "DELETE FROM stock WHERE item = 'lamp'",
        "INSERT INTO stock(item, price, cost, weight) VALUES ('lamp', 49, 31, 1.25)",
    ]
    document = worldkit.with_tool("replace", kind="write", effects=effects)
    episode = worldkit.episode_of(document, checks=[{"id": "still", "kind": "diff", "expect": {}, "answer": {}}])
    assert episode.call("replace", {}).ok
    assert episode.grade().detail["changed"] == {}
    assert episode.grade().outcome == 1


@pytest.mark.parametrize(
    "effect", ["UPDATE 'stock' SET price = 0", 'delete from "STOCK"', "UPDATE [Stock] SET price=0"]
)
def test_a_table_is_compared_however_an_effect_spells_it(effect: str) -> None:
    document = worldkit.with_tool("spoil", kind="write", effects=[effect])
    episode = worldkit.episode_of(document)
    assert episode.call("spoil", {}).ok
    assert "stock" in episode.grade().detail["changed"]


def test_a_state_from_elsewhere_is_compared_whole() -> None:
    episode = worldkit.episode_of()
    assert episode.call(*LAMP).ok
    moved, snapshot = worldkit.episode_of(), episode.snapshot()
    moved.restore(snapshot._replace(transcript=type(snapshot.transcript)()))
    assert moved.grade().detail["changed"] == episode.grade().detail["changed"] != {}
