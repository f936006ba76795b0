"""Checks, rubrics and invariants that a world task must not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit

from envsynth.cache import Cache
from envsynth.context import BuildContext
from envsynth.models import Candidate, Check, Criterion, Source, Utility, Verdict, VerdictStatus, Verifier
from envsynth.validators.world_static import WorldStatic

Judge = Callable[[Candidate], Verdict]


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)
    return lambda candidate: WorldStatic().validate(candidate, source, context)


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def with_check(cache: Cache, *checks: Check, **fields: Any) -> Candidate:
    return world_bench.candidate(cache, worldkit.shop(), verifier=Verifier(checks=checks, **fields))


BOUGHT = Check(id="bought", sql="SELECT count(*) FROM orders")


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT colour FROM orders", "check_sql_invalid"),
        ("DELETE FROM orders", "check_sql_invalid"),
        ("SELECT 1, 2", "check_sql_invalid"),
        ("SELECT :item", "check_sql_invalid"),
        ("SELECT CURRENT_TIMESTAMP", "check_sql_invalid"),
        ("SELECT 1", "checks_ask_for_nothing"),
        ("SELECT count(*) = 0 FROM trace", "checks_ask_for_nothing"),
    ],
)
def test_a_check_that_is_of_no_use(cache: Cache, judge: Judge, sql: str, rule: str) -> None:
    assert rules(judge(with_check(cache, Check(id="c", sql=sql)))) == {rule}


def test_invariants_alone_ask_for_nothing(cache: Cache, judge: Judge) -> None:
    assert rules(judge(with_check(cache, Check(id="c", kind="invariants")))) == {"checks_ask_for_nothing"}
    assert judge(with_check(cache, Check(id="c", kind="invariants"), BOUGHT)).status is VerdictStatus.PASS


def test_checks_that_hold_at_once_are_enough_where_a_utility_counts(cache: Cache, judge: Judge) -> None:
    utility = Utility(sql="SELECT money FROM state", default=1, reference=2)
    check = Check(id="c", sql="SELECT 1")
    assert judge(with_check(cache, check, utility=utility)).status is VerdictStatus.PASS
    for sql in ("SELECT item FROM stock", "SELECT max(amount) FROM orders", "SELECT 1, 2", "SELECT x"):
        broken = utility.model_copy(update={"sql": sql})
        assert rules(judge(with_check(cache, check, utility=broken))) == {"utility_sql_invalid"}


def test_a_rubric_that_cannot_be_evaluated_fails(cache: Cache, judge: Judge) -> None:
    good = {"id": "r", "class": "important", "sql": "SELECT count(*) FROM trace", "evidence": "SELECT turn FROM trace",
            "text": "Did something."}  # fmt: skip
    assert judge(with_check(cache, BOUGHT, rubric=(Criterion(**good),))).status is VerdictStatus.PASS  # type: ignore[arg-type]
    for part in ("sql", "evidence"):
        broken = Criterion(**good | {part: "SELECT colour FROM trace"})  # type: ignore[arg-type]
        assert rules(judge(with_check(cache, BOUGHT, rubric=(broken,)))) == {"criterion_sql_invalid"}


@pytest.mark.parametrize(
    ("sql", "rule"),
    [("SELECT colour FROM orders", "invariant_sql_invalid"), ("SELECT 1 FROM stock", "invariant_violated_at_start")],
)
def test_an_invariant_that_is_none(cache: Cache, judge: Judge, sql: str, rule: str) -> None:
    document = worldkit.shop(invariants=[{"id": "i", "sql": sql}])
    assert rules(judge(world_bench.candidate(cache, document))) == {rule}


DIFFS: dict[str, tuple[dict[str, Any], str]] = {
    "no table": ({"expect": {"sales": {}}}, "no table sales"),
    "no column": ({"expect": {"orders": {"added": [{"item": "lamp", "amount": 1, "hue": 1}]}}}, "no column hue"),
    "a hard column left out": ({"expect": {"orders": {"added": [{"item": "lamp"}]}}}, "what amount must be"),
    "another type": ({"expect": {"orders": {"added": [{"item": "lamp", "amount": "1"}]}}}, "of type integer"),
    "never empty": ({"expect": {"orders": {"added": [{"item": "lamp", "amount": None}]}}}, "never empty"),
    "no such row changed": ({"expect": {"stock": {"changed": {"sofa": {"price": 1}}}}}, "key sofa"),
    "no such row gone": ({"expect": {"stock": {"removed": [["sofa"]]}}}, "key sofa"),
    "nothing changes": ({"expect": {"stock": {"changed": {"lamp": {}}}}}, "in no column"),
    "no key to name": ({"expect": {"tape": {"changed": [{"key": [1], "values": {"demand": 1}}]}}}, "has no key"),
    "gone, and nobody knows which": ({"expect": {"tape": {"removed": [[]]}}}, "named by its values"),
    "gone, and half known": ({"expect": {"tape": {"removed": [{"day": 1}]}}}, "what demand was"),
    "gone, and never there": ({"expect": {"tape": {"removed": [{"day": 99, "demand": 1}]}}}, "there is no row"),
    "gone by other values than its key": ({"expect": {"stock": {"removed": [{"item": "lamp"}]}}}, "by its key, item"),
    "an unknown answer": ({"answer": {"sum": 1}}, "just sum"),
    "an incomplete answer": ({"answer": {}}, "just nothing"),
}


@pytest.mark.parametrize(("weight", "found"), [(1.29, {"diff_impossible"}), (2.0, set())])
def test_a_change_that_a_tolerance_forgives_cannot_be_asked_for(
    cache: Cache, judge: Judge, weight: float, found: set[str]
) -> None:
    document = worldkit.shop()
    document["tables"]["stock"]["columns"]["weight"]["tolerance"] = 0.05
    expect = {"stock": {"changed": {"lamp": {"weight": weight}}}}
    check = Check.model_validate({"id": "c", "kind": "diff", "expect": expect})
    verdict = judge(world_bench.candidate(cache, document, verifier=Verifier(checks=(check,))))
    assert rules(verdict) == found
    assert all("leave it out" in one.message for one in verdict.findings)


@pytest.mark.parametrize(("fields", "told"), DIFFS.values(), ids=DIFFS.keys())
def test_a_change_that_nobody_can_make(cache: Cache, judge: Judge, fields: dict[str, Any], told: str) -> None:
    check = Check.model_validate({"id": "c", "kind": "diff", **fields})
    verdict = judge(with_check(cache, check))
    assert rules(verdict) == {"diff_impossible"}
    assert told in verdict.findings[0].message


def test_an_answer_needs_a_tool(cache: Cache, judge: Judge) -> None:
    check = Check.model_validate({"id": "c", "kind": "diff", "answer": {"total": 1}})
    verdict = judge(world_bench.wheel_task(cache, verifier=Verifier(checks=(check,))))
    assert verdict.findings[0].message == "an answer is expected, and no tool hands one in"
