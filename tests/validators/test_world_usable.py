"""Tools that nobody can use, and tools that take some finding out."""

from __future__ import annotations

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

Judge = Callable[[Candidate], list[Finding]]
ITEM = {"type": "string", "doc": "An item."}
AMOUNT = {"type": "integer", "doc": "How many."}


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)

    def found(candidate: Candidate) -> list[Finding]:
        findings = WorldAdversary().validate(candidate, source, context).findings
        return [one for one in findings if one.rule == "tool_never_succeeds"]

    return found


def guarded(*conditions: str, **parameters: Any) -> dict[str, Any]:
    guards = [{"sql": sql, "error": f"condition {number} does not hold"} for number, sql in enumerate(conditions, 1)]
    return worldkit.with_tool(
        "extra", kind="write", parameters=parameters, guards=guards, effects=["UPDATE state SET money = money + 0"]
    )


USELESS = {
    "never true": (guarded("SELECT 0"), "condition 1 does not hold"),
    "no such row": (
        guarded(
            "SELECT EXISTS (SELECT 1 FROM stock WHERE item = :item)",
            "SELECT price > 100 FROM stock WHERE item = :item", item=ITEM,
        ), "condition 2 does not hold",
    ),
    "contrary": (guarded("SELECT :amount > 5", "SELECT :amount < 5", amount=AMOUNT), "condition 2 does not hold"),
    "an effect that is never possible": (
        worldkit.with_tool("extra", kind="write", effects=["UPDATE state SET money = NULL"]),
        "the call is not possible",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("world", "error"), USELESS.values(), ids=USELESS.keys())
def test_a_tool_that_never_succeeds_is_named(cache: Cache, judge: Judge, world: dict[str, Any], error: str) -> None:
    findings = judge(world_bench.candidate(cache, world))
    assert [one.where for one in findings] == ["tool extra"]
    assert error in findings[0].message


USEFUL = {
    "one row of three": guarded(
        "SELECT EXISTS (SELECT 1 FROM stock WHERE item = :article)",
        "SELECT price < 30 FROM stock s WHERE s.item = :article", article=ITEM,
    ),
    "the price of the row": guarded(
        "SELECT EXISTS (SELECT 1 FROM stock WHERE item = :article AND price = :cents)", article=ITEM, cents=AMOUNT
    ),
    "a day next week": guarded("SELECT :day > date(:now, '+6 days') AND :day = date(:day)", day=ITEM),
    "after another tool": guarded("SELECT count(*) > 2 FROM notes"),
    "a number in a narrow range": guarded(
        "SELECT :amount = 37", amount={"type": "integer", "doc": "x", "minimum": 0, "maximum": 50}
    ),
}  # fmt: skip


@pytest.mark.parametrize("world", USEFUL.values(), ids=USEFUL.keys())
def test_a_call_that_succeeds_is_found(cache: Cache, judge: Judge, world: dict[str, Any]) -> None:
    assert judge(world_bench.candidate(cache, world)) == []


def test_what_the_panel_does_need_not_be_found(cache: Cache, judge: Judge) -> None:
    """A number that no search would hit upon."""
    world = guarded("SELECT :amount = 918273645", amount=AMOUNT)
    assert [one.where for one in judge(world_bench.candidate(cache, world))] == ["tool extra"]
    reference = world_bench.line("reference", 1, ("extra", {"amount": 918273645}), *_calls())
    panel = (reference, *world_bench.SHOP_PANEL[1:])
    assert judge(world_bench.candidate(cache, world, panel=panel)) == []


def _calls() -> list[tuple[str, Any]]:
    return [(call.tool, call.arguments) for call in world_bench.SHOP_PANEL[0].calls]


def test_a_tool_that_is_about_what_another_one_makes_succeeds(cache: Cache, judge: Judge) -> None:
    """Orders are numbered from 8001 on, and there are none at the start."""
    world = worldkit.with_tool(
        "collect", kind="write", parameters={"order_id": {"type": "integer", "doc": "The order's number."}},
        guards=[{"sql": "SELECT EXISTS (SELECT 1 FROM orders WHERE id = :order_id)", "error": "there is no order"}],
        effects=["DELETE FROM orders WHERE id = :order_id"],
    )  # fmt: skip
    world["tools"]["order"]["effects"][0] = (
        "INSERT INTO orders(id, item, amount) VALUES (coalesce((SELECT max(id) FROM orders), 8000) + 1, :item, :amount)"
    )
    assert judge(world_bench.candidate(cache, world)) == []
