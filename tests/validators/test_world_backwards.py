"""Results and states that hang on the order in which SQLite happens to come to rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Finding, Source
from envsynth.validators.world_adversary import WorldAdversary
from envsynth.validators.world_adversary.backwards import Turned
from envsynth.validators.world_adversary.ties import with_ties_broken

Judge = Callable[[Candidate], list[Finding]]


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)

    def found(candidate: Candidate) -> list[Finding]:
        findings = WorldAdversary().validate(candidate, source, context).findings
        return [one for one in findings if one.rule == "order_by_chance"]

    return found


def with_pairs(**tool: Any) -> dict[str, Any]:
    """The wheel with pairs of which two have the same first, and a tool."""
    world = copy.deepcopy(world_bench.wheel())
    number = {"type": "integer"}
    world["tables"]["pairs"] = {"columns": {"a": number, "b": number}}
    world["tables"]["kept"] = {"columns": {"id": {**number, "role": "key"}, "b": number}}
    world["rows"]["pairs"] = [[1, 7], [1, 8], [2, 9]]
    world["tools"]["peek"] = {"kind": "read", "doc": "A tool."} | tool
    return world


LEFT_OPEN = {
    "ties": "SELECT a, b FROM pairs ORDER BY a",
    "one of several": "SELECT b FROM pairs ORDER BY a LIMIT 1",
    "joined": "SELECT group_concat(b) AS all_b FROM pairs",
    "listed": "SELECT json_group_array(b) AS all_b FROM pairs",
    "joined in an order with ties": "SELECT group_concat(b) AS all_b FROM (SELECT b FROM pairs ORDER BY a)",
    "first of a subquery": "SELECT (SELECT b FROM pairs WHERE a = 1) AS b",
    "one of several, in a subquery": "SELECT (SELECT b FROM pairs WHERE a = 1 ORDER BY a LIMIT 1) AS b",
    "ties of two": "SELECT a, b FROM pairs UNION ALL SELECT 1, 6 ORDER BY a",
    "constant": "SELECT b FROM pairs ORDER BY 1=1",
}


@pytest.mark.parametrize("sql", LEFT_OPEN.values(), ids=LEFT_OPEN.keys())
def test_an_order_that_is_left_open_is_found(cache: Cache, judge: Judge, sql: str) -> None:
    findings = judge(world_bench.wheel_task(cache, with_pairs(result=sql)))
    assert [one.where for one in findings] == ["tool peek"]
    assert findings[0].message.startswith("peek {} can show ")


STATED = {
    "all of it": "SELECT a, b FROM pairs ORDER BY a, b",
    "equal rows": "SELECT a FROM pairs ORDER BY a",
    "sums": "SELECT a, sum(b) AS s FROM pairs GROUP BY a ORDER BY a",
    "joined": "SELECT group_concat(b) AS all_b FROM (SELECT b FROM pairs ORDER BY b)",
}


@pytest.mark.parametrize("sql", STATED.values(), ids=STATED.keys())
def test_an_order_that_is_stated_is_none_by_chance(cache: Cache, judge: Judge, sql: str) -> None:
    assert judge(world_bench.wheel_task(cache, with_pairs(result=sql))) == []


@pytest.mark.parametrize(("order", "found"), [("", ["reference"]), (" ORDER BY a, b", [])])
def test_numbers_are_given_in_a_stated_order(cache: Cache, judge: Judge, order: str, found: list[str]) -> None:
    world = with_pairs(kind="write", effects=[f"INSERT INTO kept(b) SELECT b FROM pairs WHERE 1{order}"])
    panel = (world_bench.line("reference", 1, ("peek", {}), *world_bench.BEST), *world_bench.WHEEL_PANEL[1:])
    assert [one.where for one in judge(world_bench.wheel_task(cache, world, panel=panel))] == found


def test_the_shop_is_the_same_from_either_end(cache: Cache, judge: Judge) -> None:
    assert judge(world_bench.candidate(cache, worldkit.shop())) == []


@pytest.mark.parametrize(
    ("sql", "broken"),
    [
        ("SELECT a, b FROM t ORDER BY a", "SELECT a, b FROM t ORDER BY a, 1 ASC, 2 ASC"),
        ("SELECT max(a, b) m FROM t ORDER BY -a LIMIT 3", "SELECT max(a, b) m FROM t ORDER BY -a, 1 ASC LIMIT 3"),
        ("SELECT (SELECT b FROM u ORDER BY c) x FROM t", "SELECT (SELECT b FROM u ORDER BY c, 1 ASC) x FROM t"),
        ("INSERT INTO k(b) SELECT b FROM t ORDER BY a", "INSERT INTO k(b) SELECT b FROM t ORDER BY a, 1 ASC"),
        ("SELECT a * b FROM t ORDER BY (a) , b", "SELECT a * b FROM t ORDER BY (a) , b, 1 ASC"),
        *((same, same) for same in (
            "SELECT a FROM t", "SELECT * FROM t ORDER BY a", "SELECT row_number() OVER (ORDER BY a) FROM t",
            "SELECT t.* FROM t ORDER BY a", "SELECT a FROM t ORDER BY a -- last",
            "SELECT group_concat(a ORDER BY b) FROM t",
        )),
    ],
)  # fmt: skip
def test_ties_are_broken_by_what_is_given(sql: str, broken: str) -> None:
    assert with_ties_broken(sql, "ASC") == broken
    assert with_ties_broken(sql, "DESC") == broken.replace(" ASC", " DESC")


def test_a_world_that_is_turned_leaves_the_other_as_it_is() -> None:
    model = worldkit.model_of(worldkit.shop())
    turned = Turned(model, backwards=True)
    assert turned.image is model.image
    for one, found in ((turned, (1,)), (model, (0,)), (Turned(model, backwards=False), (0,))):
        connection = one.connection()
        assert connection.sql.execute("PRAGMA reverse_unordered_selects").fetchone() == found
        connection.sql.close()
