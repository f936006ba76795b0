"""Mutants of a reference: what a weak verifier lets through is found, what comes to the same is no fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from world_bench import LAMPS, NOTE, SHOP_PANEL, SUBMIT, line

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Check, Source, Verdict, VerdictStatus, Verifier, World
from envsynth.validators.world_mutation import WorldMutation
from envsynth.validators.world_mutation.mutants import mutants
from envsynth.validators.worlds.target import Target

Judge = Callable[[Candidate], Verdict]


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)
    return lambda candidate: WorldMutation().validate(candidate, source, context)


def survivors(verdict: Verdict) -> list[str]:
    assert {finding.rule for finding in verdict.findings} <= {"mutant_survived"}
    return [finding.where.removeprefix("reference, ") for finding in verdict.findings]


def test_an_exact_verifier_kills_every_mutant(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.candidate(cache, worldkit.shop()))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.strength is not None
    assert verdict.strength.mutants == verdict.strength.killed > 8
    assert set(verdict.evidence["kinds"]) == {"left_out", "other_value", "twice"}


def test_what_a_weak_check_does_not_see_survives(cache: Cache, judge: Judge) -> None:
    """It asks for lamps, however many, and for nothing else."""
    weak = Verifier(checks=(Check(id="lamps", sql="SELECT EXISTS(SELECT 1 FROM orders WHERE item = 'lamp')"),))
    verdict = judge(world_bench.candidate(cache, worldkit.shop(), verifier=weak))
    assert verdict.status is VerdictStatus.FAIL
    found = survivors(verdict)
    assert "call 2, order: amount 5 instead of 4" in found
    assert "call 3, note" in found
    assert not any(text.startswith("call 2, order: item") for text in found)
    assert verdict.strength is not None
    assert verdict.strength.mutants == verdict.strength.killed + len(found)


INEXACT = {
    "more": ("SELECT amount = 4 FROM orders WHERE item = 'lamp'", "extra", "as well"),
    "refused": ("SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'order')", "refused", "call 1, order"),
    "undone": (
        "SELECT EXISTS(SELECT 1 FROM trace WHERE ok AND tool = 'order')", "undone", "call 1, order: strike later",
    ),
    "by another tool": (
        "SELECT count(*) = 0 FROM stock WHERE item = 'lamp' AND price < 99 AND item NOT IN (SELECT item FROM orders)",
        "other_tool", "call 1, order: raise_price instead",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "kind", "what"), INEXACT.values(), ids=INEXACT.keys())
def test_checks_that_are_no_exact_difference_are_tried_harder(
    cache: Cache, judge: Judge, sql: str, kind: str, what: str
) -> None:
    item = {"type": "string", "enum": ["lamp", "kettle", "clock"]}
    document = worldkit.shop()
    document["tools"]["strike"] = {
        "kind": "write", "parameters": {"item": item}, "effects": ["DELETE FROM orders WHERE item = :item"],
    }  # fmt: skip
    document["tools"]["raise_price"] = {
        "kind": "write", "parameters": {"item": item}, "effects": ["UPDATE stock SET price = 99 WHERE item = :item"],
    }  # fmt: skip
    panel = (line("reference", 1, LAMPS), line("idle", 0))
    verifier = Verifier(checks=(Check(id="lax", sql=sql),))
    verdict = judge(world_bench.candidate(cache, document, verifier=verifier, panel=panel))
    found = [finding for finding in verdict.findings if finding.message.startswith(f"{kind}:")]
    assert [finding for finding in found if what in finding.where]


def test_a_row_gone_that_nobody_named_is_seen(cache: Cache, judge: Judge) -> None:
    """Counting the rows of a table without a key passes whoever removes another one."""
    document = worldkit.with_tool(
        "tear", kind="write", parameters={"cents": {"type": "number"}},
        effects=["DELETE FROM notes WHERE cents = :cents"],
        guards=[{"sql": "SELECT EXISTS(SELECT 1 FROM notes WHERE cents = :cents)", "error": "there is none"}],
    )  # fmt: skip
    document["rows"]["notes"] = [[1, "first", 5.0], [2, "second", 9.0]]
    counted = Verifier(checks=(Check(id="one_left", sql="SELECT count(*) = 1 FROM notes"),))
    panel = (line("reference", 1, ("tear", {"cents": 5.0})), line("idle", 0))
    verdict = judge(world_bench.candidate(cache, document, verifier=counted, panel=panel))
    assert "call 1, tear: cents 9.0 instead of 5.0" in survivors(verdict)
    assert any("another row than expected was removed" in finding.message for finding in verdict.findings)


def test_a_mutant_that_comes_to_the_same_is_equivalent(cache: Cache, judge: Judge) -> None:
    """Torn once or twice, a note is gone; half a cent more is within the tolerance."""
    document = worldkit.with_tool(
        "settle", kind="write", parameters={"cents": {"type": "number", "minimum": 196, "maximum": 196.4}},
        effects=["DELETE FROM notes", "INSERT INTO notes(body, cents) VALUES ('x', :cents)"],
    )  # fmt: skip
    end = Check.model_validate({"id": "end", "kind": "diff", "expect": {"notes": {"added": [{"cents": 196}]}}})
    panel = (line("reference", 1, ("settle", {"cents": 196})), line("idle", 0))
    verdict = judge(world_bench.candidate(cache, document, verifier=Verifier(checks=(end,)), panel=panel))
    assert verdict.status is VerdictStatus.PASS
    assert verdict.evidence["kinds"] == {"left_out": {"killed": 1}, "twice": {"equivalent": 1}}
    assert verdict.strength is not None
    assert (verdict.strength.mutants, verdict.strength.killed, verdict.strength.equivalents) == (1, 1, 1)


def test_another_end_is_right_where_the_panel_says_so(cache: Cache, judge: Judge) -> None:
    some = Verifier(checks=(Check(id="some", sql="SELECT EXISTS(SELECT 1 FROM orders WHERE amount > 3)"),))
    five = ("order", {"item": "lamp", "amount": 5})
    panel = [line("reference", 1, LAMPS), line("idle", 0)]
    found = survivors(judge(world_bench.candidate(cache, worldkit.shop(), verifier=some, panel=tuple(panel))))
    assert "call 1, order: amount 5 instead of 4" in found
    panel.append(line("alternative:five", 1, five))
    later = survivors(judge(world_bench.candidate(cache, worldkit.shop(), verifier=some, panel=tuple(panel))))
    assert sorted(later) == sorted(set(found) - {"call 1, order: amount 5 instead of 4"})


def test_a_graded_outcome_is_not_mutated(cache: Cache, judge: Judge) -> None:
    verdict = judge(world_bench.wheel_task(cache))
    assert (verdict.status, verdict.reason) == (VerdictStatus.SKIP, "graded_by_utility")


def refused(verdict: Verdict) -> set[str]:
    assert verdict.status is VerdictStatus.FAIL
    return {finding.rule for finding in verdict.findings}


LOOKED = Verifier(checks=(Check(id="looked", sql="SELECT EXISTS(SELECT 1 FROM trace WHERE tool = 'find')"),))


def test_who_only_looks_has_done_nothing_that_could_be_right(cache: Cache, judge: Judge) -> None:
    looks = (line("reference", 1, ("look", {})), SHOP_PANEL[2])
    assert refused(judge(world_bench.candidate(cache, worldkit.shop(), panel=looks, verifier=LOOKED))) == {
        "nothing_compared"
    }


def test_a_change_that_nothing_compares_is_none(cache: Cache, judge: Judge) -> None:
    """With every table tolerated, each mutant would be taken for the reference."""
    document = worldkit.shop()
    for table in document["tables"].values():
        table["tolerated"] = True
    weak = Verifier(checks=(Check(id="some", sql="SELECT EXISTS(SELECT 1 FROM orders)"),))
    panel = (line("reference", 1, LAMPS), line("idle", 0))
    found = refused(judge(world_bench.candidate(cache, document, verifier=weak, panel=panel)))
    assert found == {"nothing_compared"}


@pytest.mark.parametrize("loose", [{"role": "exempt"}, "tolerated"])
def test_what_an_agent_decides_is_not_given_by_the_system(cache: Cache, judge: Judge, loose: Any) -> None:
    """The lamp is compared, and how many is not: neither in an exempt column, nor in a table of its own."""
    document = worldkit.shop()
    document["tables"]["amounts"] = {"columns": {"amount": {"type": "integer"}}}
    document["tools"]["order"]["effects"] = [
        "INSERT INTO orders(item, amount) VALUES (:item, 1)", "INSERT INTO amounts VALUES (:amount)",
    ]  # fmt: skip
    weak = Verifier(checks=(Check(id="some", sql="SELECT EXISTS(SELECT 1 FROM amounts)"), Check.model_validate({
        "id": "end", "kind": "diff",
        "expect": {"orders": {"added": [{"item": "lamp", "amount": 1}]}, "amounts": {"added": [{}]}},
    })))  # fmt: skip
    if loose == "tolerated":
        document["tables"]["amounts"]["tolerated"] = True
    else:
        document["tables"]["amounts"]["columns"]["amount"] |= loose
    panel = (line("reference", 1, LAMPS), line("idle", 0))
    verdict = judge(world_bench.candidate(cache, document, verifier=weak, panel=panel))
    assert refused(verdict) == {"value_not_compared"}
    assert "amounts.amount holds something else" in verdict.findings[0].message
    assert {finding.where for finding in verdict.findings} == {
        "reference, call 1, order: amount 5 instead of 4", "reference, call 1, order: amount 3 instead of 4",
    }  # fmt: skip


def test_a_call_that_need_not_be_made_may_be_made_in_any_way(cache: Cache, judge: Judge) -> None:
    """Asked about one thing or another, people answer; that is written down, and decides nothing."""
    tables = worldkit.shop()["tables"] | {
        "talk": {"tolerated": True, "columns": {"id": {"type": "integer", "role": "exempt"}, "about": {"type": "text"}}}
    }
    asking = {"topic": {"type": "string", "enum": ["price", "weight", "colour"]}}
    document = worldkit.with_tool(
        "ask", kind="write", parameters=asking, effects=["INSERT INTO talk(about) VALUES (:topic)"]
    ) | {"tables": tables}
    panel = (line("reference", 1, ("ask", {"topic": "price"}), LAMPS, NOTE, SUBMIT), line("idle", 0))
    verdict = judge(world_bench.candidate(cache, document, panel=panel))
    kinds: Any = verdict.evidence["kinds"]
    assert (verdict.status, kinds["other_value"]["equivalent"]) == (VerdictStatus.PASS, 2)


@pytest.mark.parametrize("parameters", [{}, {"sure": {"type": "boolean"}}])
def test_a_tool_that_does_the_whole_task_leaves_nothing_to_decide(
    cache: Cache, judge: Judge, parameters: dict[str, Any]
) -> None:
    document = worldkit.with_tool(
        "settle", kind="write", parameters=parameters,
        effects=["INSERT INTO orders(item, amount) VALUES ('lamp', 4)", "UPDATE state SET money = money - 4"],
    )  # fmt: skip
    given = dict.fromkeys(parameters, True)
    panel = (line("reference", 1, ("settle", given)), line("idle", 0))
    end = Check.model_validate({
        "id": "end", "kind": "diff", "expect": {
            "orders": {"added": [{"item": "lamp", "amount": 4}]},
            "state": {"added": [{"day": 0, "money": 96}], "removed": [{"day": 0, "money": 100}]},
        },
    })  # fmt: skip
    verdict = judge(world_bench.candidate(cache, document, verifier=Verifier(checks=(end,)), panel=panel))
    assert refused(verdict) == {"nothing_to_decide"}


def test_other_values_stand_in_the_world_or_close_by(cache: Cache) -> None:
    world = World.model_validate(worldkit.shop(rows=worldkit.shop()["rows"] | {"orders": [[7, "clock", 2]]}))
    made = {one.what: one for one in mutants(Target(world, 30), [LAMPS, NOTE, SUBMIT], 100, inexact=False)}
    assert "call 1, order: item 'kettle' instead of 'lamp'" in made
    assert "call 1, order: amount 10 instead of 9" not in {
        one.what for one in mutants(Target(world, 30), [("order", {"item": "lamp", "amount": 9})], 100, inexact=False)
    }
    whole = {
        (one.kind, one.what): one.calls for one in mutants(Target(world, 30), [LAMPS, NOTE, SUBMIT], 100, inexact=False)
    }
    assert whole["left_out", "call 2, note"] == (LAMPS, SUBMIT)
    assert whole["twice", "call 2, note"] == (LAMPS, NOTE, NOTE, SUBMIT)
    assert not any("body" in what for what in made)


def test_a_list_is_shortened(cache: Cache) -> None:
    world = World.model_validate(worldkit.shop())
    plan: list[dict[str, Any]] = [{"item": "lamp", "amount": 1}, {"item": "clock", "amount": 2}]
    made = mutants(Target(world, 30), [("order_all", {"plan": json.dumps(plan)})], 100, inexact=False)
    shorter = {one.calls[0][1]["plan"] for one in made if one.kind == "other_value"}
    assert shorter == {json.dumps(plan[:1]), json.dumps(plan[1:])}


def test_no_write_goes_untried_under_a_limit() -> None:
    world = World.model_validate(worldkit.shop())
    made = mutants(Target(world, 30), [LAMPS, NOTE, SUBMIT], 3, inexact=False)
    assert [one.what for one in made] == ["call 1, order", "call 2, note", "call 3, submit"]
