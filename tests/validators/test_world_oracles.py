"""Worlds that tell what they hide before its time, and worlds that tell it as it comes."""

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
from envsynth.models import Candidate, Finding, Source, World
from envsynth.validators.world_adversary import WorldAdversary
from envsynth.validators.world_adversary.hidden_rows import altered, hidden_rows

Judge = Callable[[Candidate], list[Finding]]
RULES = {"foresight_for_nothing", "foresight_in_bulk", "refusal_tells_hidden"}
NUMBER = {"type": "integer"}
AT = {"at": {"type": "integer", "doc": "A day.", "minimum": 0, "maximum": 5}}
SEEN = {"columns": {"day": NUMBER, "pays": NUMBER}}
COPY_ALL = "INSERT INTO seen SELECT day, pays FROM tape"
COPY_ONE = "INSERT INTO seen SELECT day, pays FROM tape WHERE day = :at"
TODAY = "INSERT INTO seen SELECT tape.day, pays FROM tape JOIN state ON tape.day = state.day"
PASS_DAY = "UPDATE state SET day = day + 1"
PAY = "UPDATE state SET money = money - 1"


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)

    def found(candidate: Candidate) -> list[Finding]:
        return [one for one in WorldAdversary().validate(candidate, source, context).findings if one.rule in RULES]

    return found


def wheel_with(
    tables: dict[str, Any] | None = None, rows: dict[str, Any] | None = None, **tools: Any
) -> dict[str, Any]:
    """The wheel with a table of what was seen, and more tools or others."""
    world = copy.deepcopy(world_bench.wheel())
    world["tables"] |= {"seen": SEEN, **(tables or {})}
    world["rows"] |= rows or {}
    world["tools"] |= {name: {"kind": "write", "doc": "A tool."} | tool for name, tool in tools.items()}
    return world


TELLING: dict[str, tuple[dict[str, Any], set[str]]] = {
    "all at once for nothing": (
        wheel_with(note={"effects": [COPY_ALL]}), {"foresight_for_nothing", "foresight_in_bulk"},
    ),
    "one at a time for nothing": (wheel_with(ask={"parameters": AT, "effects": [COPY_ONE]}), {"foresight_for_nothing"}),
    "counted where nobody looks": (
        wheel_with(
            {"count": {"columns": {"asked": NUMBER}}}, {"count": [[0]]},
            ask={"parameters": AT, "effects": [COPY_ONE, "UPDATE count SET asked = asked + 1"]},
        ), {"foresight_for_nothing"},
    ),
    "all as a day passes": (wheel_with(rest={"kind": "clock", "effects": [PASS_DAY, COPY_ALL]}), {"foresight_in_bulk"}),
    "all of it in one cell": (
        wheel_with(
            {"seen": {"columns": {"all": {"type": "text"}}}},
            rest={"kind": "clock", "effects": [
                PASS_DAY, "INSERT INTO seen SELECT group_concat(pays) FROM (SELECT pays FROM tape ORDER BY day)",
            ]},
        ), {"foresight_in_bulk"},
    ),
    "only whether it is much": (
        wheel_with(ask={
            "parameters": AT, "effects": ["INSERT INTO seen SELECT day, pays > 3 FROM tape WHERE day = :at"],
        }), {"foresight_for_nothing"},
    ),
    "tomorrow's": (
        wheel_with(ask={"effects": [
            "INSERT INTO seen SELECT tape.day, pays FROM tape JOIN state ON tape.day = state.day + 1",
        ]}), {"foresight_for_nothing"},
    ),
    "refused where it pays so much": (
        wheel_with(guess={
            "parameters": {**AT, "pays": {"type": "integer", "doc": "A guess.", "minimum": 0, "maximum": 9}},
            "effects": [
                "UPDATE state SET money = CASE WHEN (SELECT pays FROM tape WHERE day = :at) = :pays THEN NULL"
                " ELSE money END"
            ],
        }), {"refusal_tells_hidden"},
    ),
    "refused where it is there": (
        wheel_with(guess={
            "parameters": {"at": {"type": "integer", "doc": "A guess.", "minimum": 0, "maximum": 99}},
            "effects": ["INSERT INTO tape VALUES (:at, 0)", "DELETE FROM tape WHERE day = :at AND pays = 0"],
        }), {"refusal_tells_hidden"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("world", "found"), TELLING.values(), ids=TELLING.keys())
def test_foresight_is_found(cache: Cache, judge: Judge, world: dict[str, Any], found: set[str]) -> None:
    findings = judge(world_bench.wheel_task(cache, world))
    assert {one.rule for one in findings} == found
    assert all("tape" in one.message and one.where.startswith("tool ") for one in findings)


FAIR: dict[str, dict[str, Any]] = {
    "nothing is shown": wheel_with(),
    "today's as the day passes": wheel_with(rest={"kind": "clock", "effects": [TODAY, PASS_DAY]}),
    "what has been": wheel_with(
        ask={"effects": ["INSERT INTO seen SELECT tape.day, pays FROM tape JOIN state ON tape.day < state.day"]}
    ),
    "one at a time for a coin": wheel_with(ask={"parameters": AT, "effects": [COPY_ONE, PAY]}),
    "a guard refuses": wheel_with(ask={
        "parameters": AT, "effects": [COPY_ONE, PAY],
        "guards": [{"sql": "SELECT NOT EXISTS (SELECT 1 FROM seen WHERE day = :at)", "error": "known"}],
    }),
}  # fmt: skip


@pytest.mark.parametrize("world", FAIR.values(), ids=FAIR.keys())
def test_what_is_told_in_its_time_or_paid_for_is_the_game(cache: Cache, judge: Judge, world: dict[str, Any]) -> None:
    assert judge(world_bench.wheel_task(cache, world)) == []


def test_asking_is_the_task_where_nothing_is_earned(cache: Cache, judge: Judge) -> None:
    effects = ["INSERT INTO audit(seen) SELECT name FROM suppliers WHERE item = :item"]
    item = {"type": "string", "enum": ["lamp", "kettle", "clock"], "doc": "Which one."}
    world = worldkit.with_tool("ask", kind="write", parameters={"item": item}, effects=effects)
    assert judge(world_bench.candidate(cache, world)) == []


def test_rows_are_altered_and_their_names_are_not() -> None:
    model = worldkit.model_of(worldkit.shop())
    world = World.model_validate(worldkit.shop())
    rows = hidden_rows(model.image, world)
    assert {(row.table, row.label) for row in rows} == {
        *(("stock", f"item {item}") for item in ("lamp", "kettle", "clock")),
        *(("suppliers", f"item {item}") for item in ("lamp", "kettle", "clock")),
        *(("tape", f"day {day}") for day in range(5)),
    }
    first = next(row for row in rows if row.table == "tape")
    assert first.others == ({"demand": 13}, {"demand": 4})
    again = hidden_rows(altered(model.image, [first], 0), world)
    assert [row.label for row in again] == [row.label for row in rows]
