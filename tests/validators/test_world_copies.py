"""What a world hides, written down somewhere else; and what only looks like it."""

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
from envsynth.validators.world_static import WorldStatic

Judge = Callable[..., list[Finding]]
NUMBER = {"type": "integer"}
LISTED = "The wheel pays 1, 6, 2, 5, 3 and 4 coins from day to day."


@pytest.fixture
def judge(cache: Cache, source: Source, tmp_path: Path) -> Judge:
    context = BuildContext(tmp_path)

    def found(world: dict[str, Any], **changes: Any) -> list[Finding]:
        candidate: Candidate = world_bench.wheel_task(cache, world, **changes)
        return list(WorldStatic().validate(candidate, source, context).findings)

    return found


def with_tool(**tool: Any) -> dict[str, Any]:
    world = copy.deepcopy(world_bench.wheel())
    world["tools"]["peek"] = {"kind": "read", "doc": "A tool."} | tool
    return world


def with_table(rows: list[list[Any]], **columns: Any) -> dict[str, Any]:
    world = copy.deepcopy(world_bench.wheel())
    world["tables"]["hints"] = {"columns": {"day": {**NUMBER, "role": "key"}, **(columns or {"pays": NUMBER})}}
    world["rows"]["hints"] = rows
    return world


COPIES: dict[str, tuple[dict[str, Any], str]] = {
    "visible rows": (with_table([[n, pays] for n, pays in enumerate(world_bench.PAYS)]), "table hints, column pays"),
    "as other numbers": (
        with_table([[n, float(pays)] for n, pays in enumerate(world_bench.PAYS)], pays={"type": "real"}),
        "table hints, column pays",
    ),
    "what a tool does": (with_tool(doc=LISTED, result="SELECT day FROM state"), "tool peek"),
    "a literal list": (with_tool(result="SELECT '1,6,2,5,3,4' AS pays"), "tool peek, result"),
    "literals by day": (
        with_tool(
            result="SELECT CASE day WHEN 0 THEN 1 WHEN 1 THEN 6 WHEN 2 THEN 2 WHEN 3 THEN 5 WHEN 4 THEN 3 WHEN 5"
            " THEN 4 END AS pays FROM state",
        ), "tool peek, result",
    ),
    "pairs": (
        with_tool(result="VALUES (0, 1), (1, 6), (2, 2), (3, 5), (4, 3), (5, 4) ORDER BY 1"), "tool peek, result",
    ),
    "written down by an effect": (
        with_tool(kind="write", effects=["UPDATE state SET money = substr('162534', day, 1) + 0 * (1+6+2+5+3+4)"]),
        "tool peek, effect 1",
    ),
    "what an error says": (
        with_tool(kind="write", guards=[{"sql": "SELECT 0", "error": LISTED}], effects=["UPDATE state SET day = day"]),
        "tool peek, guard 1",
    ),
    "what may be asked for": (
        with_tool(
            parameters={"pays": {"type": "integer", "doc": "One.", "enum": list(world_bench.PAYS)}},
            result="SELECT :pays AS pays",
        ), "tool peek, parameter pays",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("world", "where"), COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_what_is_hidden_is_found(judge: Judge, world: dict[str, Any], where: str) -> None:
    findings = [one for one in judge(world) if one.rule == "hidden_copied"]
    assert [one.where for one in findings] == [where]
    assert all("6 values in a row are those of hidden tape.pays (1, 6, 2, ...)" in one.message for one in findings)


def test_the_instruction_does_not_say_it_unless_all_is_written(judge: Judge) -> None:
    told = "The wheel turns for six days. Have as much money as you can when they are over. " + LISTED
    assert [one.where for one in judge(world_bench.wheel(), instruction=told)] == ["instruction"]
    assert judge(world_bench.wheel(), instruction=told, tells="instruction") == []
    assert judge(COPIES["a literal list"][0], instruction=told, tells="instruction") != []
    # What a generator notes down for people switches nothing off.
    assert judge(world_bench.wheel(), instruction=told, metadata={"presentation": "written"}) != []


def test_what_can_be_read_may_be_what_comes(judge: Judge) -> None:
    """Where parameters are revealed and no chance changes them, the tape says the same."""
    assert judge(COPIES["visible rows"][0], tells="rows") == []


CHANCE: dict[str, dict[str, Any]] = {
    "part of it": with_table([[n, pays] for n, pays in enumerate((1, 6, 2, 5, 3, 9))]),
    "in another order": with_table([[n, pays] for n, pays in enumerate((6, 1, 5, 2, 4, 3))]),
    "counted": with_table([[n, n + 1] for n in range(8)]),
}


@pytest.mark.parametrize("world", CHANCE.values(), ids=CHANCE.keys())
def test_what_is_equal_by_chance_is_no_copy(judge: Judge, world: dict[str, Any]) -> None:
    assert judge(world) == []


@pytest.mark.parametrize("tape", [[3] * 12, [0, 0, 0, 0, 0, 1, 0, 0], list(range(1, 9))])
def test_a_dull_column_is_no_secret(judge: Judge, tape: list[int]) -> None:
    world = with_table([[n, pays] for n, pays in enumerate(tape)])
    world["rows"]["tape"] = [[n, pays] for n, pays in enumerate(tape)]
    assert [one for one in judge(world) if one.rule == "hidden_copied"] == []


SAID: dict[str, dict[str, Any]] = {
    "a text to choose": {"parameters": {"who": {"type": "string", "doc": "One.", "enum": [worldkit.SECRET, "Else"]}}},
    "a text in SQL": {"result": f"SELECT '{worldkit.SECRET}' AS name"},
    "numbers in SQL": {"result": "SELECT 81234 + 91237 + 71239 AS x"},
    "numbers in words": {"doc": "It is 81,234 or 91,237, and 71239 at last.", "result": "SELECT day FROM state"},
}


@pytest.mark.parametrize("tool", SAID.values(), ids=SAID.keys())
def test_tools_do_not_say_what_only_hidden_rows_hold(
    cache: Cache, source: Source, tmp_path: Path, tool: dict[str, Any]
) -> None:
    world = worldkit.with_tool("peek", **({"result": "SELECT :who AS who"} if "parameters" in tool else {}) | tool)
    world["rows"]["tape"] = [[0, 81234], [1, 91237], [2, 71239]]
    verdict = WorldStatic().validate(world_bench.candidate(cache, world), source, BuildContext(tmp_path))
    assert {one.rule for one in verdict.findings} == {"text_names_hidden_value"}


def test_two_numbers_may_be_chance(cache: Cache, source: Source, tmp_path: Path) -> None:
    world = worldkit.with_tool("peek", result="SELECT 81234 + 91237 AS x")
    world["rows"]["tape"] = [[0, 81234], [1, 91237], [2, 71239]]
    verdict = WorldStatic().validate(world_bench.candidate(cache, world), source, BuildContext(tmp_path))
    assert verdict.findings == ()


def test_hidden_rows_may_be_asked_for_by_name(cache: Cache, source: Source, tmp_path: Path) -> None:
    topics = {"type": "string", "doc": "One.", "enum": ["roof_and_cellar", "garden_and_yard"]}
    world = worldkit.with_tool("peek", parameters={"topic": topics}, result="SELECT :topic AS topic")
    facts = {"topic": {"type": "text", "role": "key"}, "said": {"type": "text"}}
    world["tables"]["facts"] = {"hidden": True, "columns": facts}
    world["rows"]["facts"] = [["roof_and_cellar", "It leaks in two places."], ["garden_and_yard", "All well there."]]
    verdict = WorldStatic().validate(world_bench.candidate(cache, world), source, BuildContext(tmp_path))
    assert verdict.findings == ()
