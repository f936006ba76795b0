"""What counts as a literal of a text, and when a text states a phrase."""

from __future__ import annotations

import time

import pytest

from envsynth.generators.business.blueprint import VAGUENESS
from envsynth.rewriting import LEVELS, literals, states
from envsynth.rewriting.literals import Told


def told(text: str) -> set[tuple[str, str]]:
    return {(one.kind, one.value) for one in literals(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Order 1,200 of them.", {("number", "1200")}),
        ("Order five, at 3.50 each; never -7.", {("number", "5"), ("number", "3.50"), ("number", "-7")}),
        ("It ran 3-5 days, a 30-day limit, on the 21st.", {("number", n) for n in ("3", "5", "30", "21")}),
        ("It costs €37,020.50, or 5 %.", {("number", "37020.50"), ("number", "5")}),
        ("Write to New.jim@example.org.", {("code", "new.jim@example.org")}),
        ("Call `max_size`, then close_day by 2026-02-03.",
         {("quote", "max_size"), ("code", "max_size"), ("code", "close_day"), ("code", "2026-02-03")}),
        ("Please ask Kathy Young. Then tell Bob's mother.", {("name", "kathy"), ("name", "young"), ("name", "bob")}),
        ("Say “Not today” to them, i.e. at 5 p.m.", {("quote", "not today"), ("number", "5")}),
        ("One of them is one too many. I think so.", set()),
        ("Order INV-2041 at 10:30.", {("code", "inv-2041"), ("code", "10:30")}),
    ],
)  # fmt: skip
def test_literals_of_a_text(text: str, found: set[tuple[str, str]]) -> None:
    assert told(text) == found


@pytest.mark.parametrize(
    ("text", "phrase", "stated"),
    [
        ("It takes five days.", "5", True),
        ("It takes 15 days.", "5", False),
        ("It takes 3.5 days.", "35", False),
        ("Do it for kathy young.", "Kathy Young", True),
        ("Do it for Kathy.", "Kathy Young", False),
        ("Pay 1200 now.", "1,200", True),
        ("It comes  at once,\nbefore the day's demand.", "at once, before the day's demand", True),
        ("It comes before the day's demand.", "at once, before the day's demand", False),
        ("Use `close` for it.", "`close`", True),
        ("Use close for it.", "`open`", False),
    ],
)
def test_a_text_states_a_phrase(text: str, phrase: str, stated: bool) -> None:
    assert states(text, phrase) is stated


def test_levels_are_those_of_business_tasks() -> None:
    assert LEVELS == VAGUENESS


def test_a_long_text_is_read_in_one_go() -> None:
    """Each word is looked at with what stands right before it, not with all of the text."""
    begun = time.process_time()
    found = literals("Order 5 of it, by the day. " * 4000)
    assert found == {Told("number", "5"): 4000}
    assert time.process_time() - begun < 5
