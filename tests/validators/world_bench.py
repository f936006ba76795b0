"""World tasks to be changed by each test: the shop, and a wheel that pays by a hidden tape."""

from __future__ import annotations

from typing import Any

import worldkit

from envsynth.cache import Cache
from envsynth.models import Candidate, Check, Lead, Provenance, ToolCall, Trajectory, Utility, Verifier, World, WorldRef
from envsynth.models.verifier import Budget

PAYS = (1, 6, 2, 5, 3, 4)
"""What the wheel pays from day to day for a stake of one, which costs one; three coins cost six and pay it twice."""


def line(label: str, outcome: float, *calls: tuple[str, Any]) -> Trajectory:
    made = tuple(ToolCall(tool=tool, arguments=arguments) for tool, arguments in calls)
    return Trajectory(label=label, calls=made, outcome=outcome)


def candidate(cache: Cache, document: dict[str, Any] | bytes, **changes: Any) -> Candidate:
    content = document if isinstance(document, bytes) else World.model_validate(document).to_json().encode()
    lead = Lead(generator="mechanism", generator_version="1", source="x", name="x", revision="r", strategy="hidden",
                ref="0123456789ab", index=0)  # fmt: skip
    fields: dict[str, Any] = {
        "instruction": worldkit.INSTRUCTION,
        "environment": WorldRef(world=cache.put(content), tells=changes.pop("tells", "nothing")),
        "provenance": Provenance(lead=lead), "verifier": SHOP_VERIFIER, "panel": SHOP_PANEL, "budget": Budget(turns=30),
    }  # fmt: skip
    return Candidate(**fields | changes)


LAMPS, SUBMIT = ("order", {"item": "lamp", "amount": 4}), ("submit", {"total": 4})
NOTE = ("note", {"body": "x", "cents": 196})
SHOP_VERIFIER = Verifier(
    checks=(
        Check.model_validate({
            "id": "end", "kind": "diff", "answer": {"total": 4},
            "expect": {
                "orders": {"added": [{"item": "lamp", "amount": 4}]}, "notes": {"added": [{"cents": 196}]},
                "state": {"added": [{"day": 0, "money": 96}], "removed": [{"day": 0, "money": 100}]},
            },
        }),
        Check(id="rules", kind="invariants"),
    )
)  # fmt: skip
SHOP_PANEL = (
    line("reference", 1, ("look", {}), LAMPS, NOTE, SUBMIT),
    line("alternative:note_first", 1, NOTE, LAMPS, SUBMIT),
    line("idle", 0),
    line("mutant:five", 0, ("order", {"item": "lamp", "amount": 5}), NOTE, SUBMIT),
)


def wheel(**changes: Any) -> dict[str, Any]:
    """A world of six days: stake one and get what the hidden tape says, or stake three for a price, or wait."""
    number = {"type": "integer"}
    return {
        "id": "wheel", "clock": "2026-03-10T09:00:00",
        "tables": {
            "state": {"columns": {"day": number, "money": number}},
            "tape": {"hidden": True, "columns": {"day": {**number, "role": "key"}, "pays": number}},
        },
        "rows": {"state": [[0, 10]], "tape": [[day, pays] for day, pays in enumerate(PAYS)]},
        "tools": {
            "view": {"kind": "read", "doc": "Day and money.", "result": "SELECT day, money FROM state", "shape": "row"},
            "stake": {
                "kind": "write", "doc": "Spin the wheel.",
                "parameters": {"coins": {"type": "integer", "enum": [1, 3], "doc": "Coins on the wheel."}},
                "guards": [{"sql": "SELECT day < 6 FROM state", "error": "the day is over"}],
                "effects": [
                    "UPDATE state SET money = money - CASE :coins WHEN 3 THEN 6 ELSE 1 END + CASE :coins WHEN 3 THEN 2"
                    " ELSE 1 END * (SELECT pays FROM tape WHERE tape.day = state.day), day = day + 1"
                ],
                "result": "SELECT day, money FROM state", "shape": "row",
            },
            "rest": {"kind": "clock", "doc": "Let a day pass.", "effects": ["UPDATE state SET day = day + 1"]},
        },
        "over": "SELECT day >= 6 FROM state",
    } | changes  # fmt: skip


WHEEL_SQL = "SELECT money FROM state"
ONE, THREE, REST = ("stake", {"coins": 1}), ("stake", {"coins": 3}), ("rest", {})
BEST = [ONE, THREE, ONE, ONE, ONE, ONE]
"""Knows the tape: three coins are better where the wheel pays six."""
WHEEL_PANEL = (
    line("reference", 1, *BEST),
    line("idle", 0),
    line("mutant:default", 0, REST, ONE, REST, REST, ONE, REST),
)


def wheel_task(cache: Cache, document: dict[str, Any] | None = None, **changes: Any) -> Candidate:
    """Realised: idle 10, default 17, one coin a day 25, reference 26."""
    utility = Utility(sql=WHEEL_SQL, default=17.0, reference=26.0, hindsight=26.0, band=(0.1, 0.85), solved=26.0)
    fields: dict[str, Any] = {
        "instruction": "The wheel turns for six days; have as much money as you can when they are over, coins count.",
        "verifier": Verifier(checks=(Check(id="any", sql="SELECT 1"),), utility=utility),
        "panel": WHEEL_PANEL,
    }
    return candidate(cache, document or wheel(), **fields | changes)
