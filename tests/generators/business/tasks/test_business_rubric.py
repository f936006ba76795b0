"""The page that decides is read before what it decides, where two matters of one task share a tool."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from envsynth.generators.business.rubric import _table
from envsynth.runtime.episode_db import EpisodeDatabase

PAGES = "('bookings', 'queue', '$.student', 7), ('evenings', 'queue', '$.student', 9)"
ONE, TWO = ("queue", {"student": 7}), ("queue", {"student": 9})
BOOKINGS, EVENINGS = ("read", {"page": "bookings"}), ("read", {"page": "evenings"})
OTHER = ("queue", {"student": 8})


@pytest.mark.parametrize(
    ("calls", "met"),
    [
        ([BOOKINGS, ONE, EVENINGS, TWO], True),
        ([BOOKINGS, EVENINGS, ONE, TWO], True),
        ([BOOKINGS, ONE, TWO, EVENINGS], False),
        ([ONE, BOOKINGS, EVENINGS, TWO], False),
        ([OTHER, BOOKINGS, ONE], True),
        ([BOOKINGS, OTHER], None),
    ],
)
def test_each_matter_has_its_own_page(calls: Sequence[tuple[str, dict[str, object]]], met: bool | None) -> None:
    sql = _table()["read_the_rules_first"]["sql"].format(pages=PAGES, read_page="'read'", page="'$.page'")
    database = EpisodeDatabase()
    try:
        rows = [(turn, tool, json.dumps(given), True, "null", None, 0.0) for turn, (tool, given) in enumerate(calls, 1)]
        database.insert("trace", rows)
        database.seal()
        assert database.truth(sql, where="here") is met
    finally:
        database.close()
