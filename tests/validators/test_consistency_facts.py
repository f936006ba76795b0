"""What texts and answers tell, in whatever way they are written, and what follows from them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import world_bench
import worldkit
from hypothesis import given
from hypothesis import strategies as st

from envsynth.cache import Cache
from envsynth.models import World
from envsynth.validators.consistency.facts import later, read, seen
from envsynth.validators.consistency.grounding import Grounding
from envsynth.validators.consistency.runs import Made, Run


@pytest.mark.parametrize(("text", "number"), [
    ("pay €1,378.40 for it", 137840), ("pay 1.378,40 € for it", 137840), ("pay 1 378,40 kr", 137840), ("€161", 16100),
    ("€108.70", 108.7), ("¥12,000", 12000), ("CHF 1’250.50", 125050), ("eleven of them", 11), ("both", 2),
    ("a dozen", 12), ("invoice 70096 is", 70096), ("numbered 1 to 5", 3), ("rooms 201–212", 205),
    ("between 3 and 9", 5),
    ("2.5 kg", 2.5),
])  # fmt: skip
def test_numbers_in_any_writing(text: str, number: float) -> None:
    assert read(text).tells(number)


@pytest.mark.parametrize(("text", "number"), [
    ("invoice 70096", 7009), ("invoice 70096", 96), ("ref A70096", 70096), ("1 to 5", 6), ("10 to 100000", 777),
    ("someone", 1), ("2 and 9", 5), ("2024-08-22", 15), ("08/22/2024", 15),
])  # fmt: skip
def test_parts_of_numbers_are_none(text: str, number: float) -> None:
    assert not read(text).tells(number)


@pytest.mark.parametrize("text", [
    "on Thursday 22 August 2024", "on the 22nd of August 2024", "August 22, 2024", "2024-08-22", "2024-08-22T09:00:00",
    "22/08/2024", "08/22/2024", "22.08.2024", "22 Aug 2024",
])  # fmt: skip
def test_days_in_any_writing(text: str) -> None:
    assert date(2024, 8, 22) in read(text).days


def test_no_day_is_made_of_nonsense() -> None:
    assert read("2024-13-45, 99 August 2024, 31/31/2024").days == frozenset()


@pytest.mark.parametrize(("day", "count", "unit", "result"), [
    (date(2024, 2, 29), 1, "year", date(2025, 2, 28)), (date(2024, 1, 31), 1, "month", date(2024, 2, 29)),
    (date(2024, 8, 27), 60, "day", date(2024, 10, 26)), (date(2024, 8, 27), -2, "week", date(2024, 8, 13)),
    (date(2024, 12, 15), 2, "month", date(2025, 2, 15)), (date(9999, 12, 1), 2, "month", None),
])  # fmt: skip
def test_so_long_after(day: date, count: int, unit: str, result: date | None) -> None:
    assert later(day, count, unit) == result


def test_texts_are_told_whole_or_word_by_word() -> None:
    told = read("The rug of Friedhelm  Reinhardt is at new.anna@example.net.")
    for text in ("friedhelm reinhardt", "Reinhardt, Friedhelm", "new.anna@example.net", "rug"):
        assert told.tells(text), text
    for text in ("Reinhard", "ru", "Friedhelm Weber", "QX-7718", "?"):
        assert not told.tells(text), text


def test_an_answer_tells_its_values_and_what_its_rows_come_to() -> None:
    told = seen([{"pieces": 2, "cents": 8460, "name": "jute rug", "left": True}, {"pieces": 3, "cents": 100}])
    assert told.tells(8460)
    assert told.tells("jute rug")
    assert {16920.0, 8462.0, 8458.0, 300.0} <= told.combined
    assert {5.0, 8560.0, 8360.0, 2.0} <= told.combined  # sums and spans of columns, and how many rows
    assert not told.tells(1)  # true is no number


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4), max_leaves=12,
)  # fmt: skip


@given(values)
def test_whatever_a_tool_answers_can_be_read(value: Any) -> None:
    told = seen(value)
    assert isinstance(told.combined, frozenset)
    assert told.ordered == tuple(sorted(told.ordered))


@given(st.text(max_size=200))
def test_whatever_is_said_can_be_read(text: str) -> None:
    read(text).tells(text)


def run_of(*made: tuple[str, dict[str, Any], Any]) -> Run:
    """A run by hand; an answer that is an exception is a refusal."""
    calls = tuple(
        Made(turn, tool, arguments, False, None, str(answer), repr(answer)) if isinstance(answer, Exception)
        else Made(turn, tool, arguments, True, answer, "", repr(answer))
        for turn, (tool, arguments, answer) in enumerate(made, 1)
    )  # fmt: skip
    return Run(world_bench.line("reference", 1), calls, {}, {}, 1.0, 1.0)


def grounding(folder: Path, story: str, **document: Any) -> Grounding:
    shop = worldkit.shop(**document)
    return Grounding(world_bench.candidate(Cache(folder), shop, instruction=story), World.model_validate(shop))


NOTE = {"body": "x"}


@pytest.mark.parametrize(("cents", "row", "page", "holds"), [
    (16074, {"pieces": 2, "cents": 8460}, "less a deduction of 5 per cent", True),
    (16074, {"pieces": 2, "cents": 8460}, "less a deduction", False),
    (4144, {"cents": 3700}, "raised by at most 12 percent", True),
    (4145, {"cents": 3700}, "by at most 12 percent", False),
    (137840, {"cap": 142000, "own_share": 4160}, "", True), (25380, {"cents": 8460}, "three of them", True),
    (7, {"cents": 60}, "at 12 %", False),
])  # fmt: skip
def test_amounts_follow_in_one_reckoning(tmp_path: Path, cents: int, row: Any, page: str, holds: bool) -> None:
    made = run_of(("look", {}, [row]), ("note", {**NOTE, "cents": cents}, None))
    found = grounding(tmp_path, f"Make a note of it, {page}.").ungrounded(made, {("note", "body")}, {("note", "cents")})
    assert (found == []) is holds


def test_a_refusal_and_a_tool_s_own_words_tell_too(tmp_path: Path) -> None:
    tools = worldkit.shop()["tools"]
    tools["note"]["doc"] = "Leave a note. The body is one of plain or formal."
    facts = grounding(tmp_path, "Leave a note.", tools=tools)
    known = {("note", "body"), ("note", "cents")}
    told = run_of(("note", {"body": "formal"}, None))
    assert facts.ungrounded(told, (), known) == []
    blind = run_of(("note", {"body": "formal", "cents": 40}, None))
    assert [one.argument for one in facts.ungrounded(blind, (), known) or ()] == ["cents"]
    refused = run_of(
        ("note", {"body": "plain"}, ValueError("at least 40 are wanted")), *[("note", {"cents": 40}, None)]
    )
    assert facts.ungrounded(refused, (), known) == []
    # What a run says itself before anybody told it stays made up, though the answer repeats it.
    echoed = run_of(("note", {"body": "Zanzibar"}, {"body": "Zanzibar"}), ("note", {"body": "Zanzibar"}, None))
    assert [one.turn for one in facts.ungrounded(echoed, (), known) or ()] == [1]
