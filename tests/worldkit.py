"""A small world with something hidden in every way, and tasks in it, to be changed by each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envsynth.models import Check, World
from envsynth.runtime.worlds.episode import WorldEpisode, WorldModel, WorldTask

SECRET = "Quillfeather Brothers"
"""A text that only a hidden table holds."""
INSTRUCTION = "Order four lamps for the shop today, leave a note on what they cost, and hand in how many there are."


def shop(**changes: Any) -> dict[str, Any]:
    """The world's document, as people write it; keyword arguments replace its parts."""
    return {
        "id": "shop", "clock": "2026-03-10T09:00:00",
        "tables": _tables(), "rows": _rows(), "tools": _tools(),
        "invariants": [{"id": "few", "sql": "SELECT id FROM orders WHERE amount > 9"}],
        "over": "SELECT day >= 5 FROM state",
    } | changes  # fmt: skip


def with_tool(name: str, **tool: Any) -> dict[str, Any]:
    """The world with one more tool, or another one of that name."""
    tools = _tools()
    tools[name] = {"kind": "read", "doc": "A tool."} | tool
    return shop(tools=tools)


def changed_tool(name: str, **changes: Any) -> dict[str, Any]:
    """The world with parts of one tool replaced."""
    tools = _tools()
    tools[name] |= changes
    return shop(tools=tools)


def model_of(document: Mapping[str, Any]) -> WorldModel:
    """The world, ready to be played."""
    return WorldModel(World.model_validate(document).document())


def episode_of(
    document: Mapping[str, Any] | None = None,
    *,
    checks: Sequence[Mapping[str, Any]] = ({"id": "any", "kind": "sql", "sql": "SELECT 1"},),
    utility: Mapping[str, Any] | None = None,
    turns: int = 1000,
    cost: float | None = None,
) -> WorldEpisode:
    """An episode, reset."""
    task = {
        "candidate": {
            "instruction": INSTRUCTION, "budget": {"turns": turns, "cost": cost},
            "verifier": {
                "checks": [Check.model_validate(check).document() for check in checks], "rubric": [],
                "reward": {"gate": ["valid_transcript", "within_budget"]}, "utility": utility,
            },
        }
    }  # fmt: skip
    episode = WorldEpisode(WorldTask(task, model_of(document or shop()), task_id="shop-task"))
    episode.reset()
    return episode


def _tables() -> dict[str, Any]:
    number, key = {"type": "integer"}, {"type": "integer", "role": "key"}
    given = {"type": "integer", "role": "exempt"}
    return {
        "state": {"columns": {"day": number, "money": number}},
        "stock": {
            "columns": {
                "item": {"type": "text", "role": "key"}, "price": number, "cost": {**number, "hidden": True},
                "weight": {"type": "real", "decimals": 1},
            }
        },
        "orders": {"columns": {"id": key, "item": {"type": "text", "references": "stock.item"}, "amount": number}},
        "notes": {
            "columns": {
                "id": given, "body": {"type": "text", "role": "semantic"}, "cents": {"type": "real", "tolerance": 0.5},
            }
        },
        "audit": {"tolerated": True, "columns": {"id": given, "seen": {"type": "text", "role": "exempt"}}},
        "suppliers": {"hidden": True, "columns": {"item": {"type": "text", "role": "key"}, "name": {"type": "text"}}},
        "tape": {"hidden": True, "columns": {"day": number, "demand": number}},
    }  # fmt: skip


def _rows() -> dict[str, Any]:
    return {
        "state": [[0, 100]],
        "stock": [["lamp", 49, 31, 1.25], ["kettle", 35, 22, 0.8], ["clock", 20, 7, 2.0]],
        "suppliers": [["lamp", SECRET], ["kettle", "Ostrander Works"], ["clock", "Vane & Daughters"]],
        "tape": [[day, 3 * day + 1] for day in range(5)],
    }


def _tools() -> dict[str, Any]:
    amount = {"type": "integer", "minimum": 1, "maximum": 9, "doc": "How many."}
    item = {"type": "string", "enum": ["lamp", "kettle", "clock"], "doc": "Which one."}
    ordering = {
        "guards": [
            {
                "sql": "SELECT NOT EXISTS (SELECT 1 FROM orders WHERE item = :item)",
                "error": "it has been ordered already",
            }
        ],
        "effects": [
            "INSERT INTO orders(item, amount) VALUES (:item, :amount)",
            "UPDATE state SET money = money - :amount",
        ],
    }
    return {
        "look": {
            "kind": "read", "doc": "What is in stock.", "effects": ["INSERT INTO audit(seen) VALUES ('stock')"],
            "result": "SELECT item, price, weight FROM stock ORDER BY item",
        },
        "find": {
            "kind": "read", "doc": "Things by a part of their names.",
            "parameters": {"part": {"type": "string", "doc": "The part."}},
            "result": "SELECT item FROM stock WHERE instr(item, :part) ORDER BY item",
        },
        "order": {
            "kind": "write", "doc": "Order one thing.", "parameters": {"item": item, "amount": amount}, **ordering,
            "result": "SELECT id, item, amount FROM orders ORDER BY id DESC LIMIT 1", "shape": "row", "cost": 2,
        },
        "order_all": {
            "kind": "write", "doc": "Order several things.",
            "parameters": {"plan": {"type": "string", "doc": "A JSON array of objects with item and amount."}},
            "each": {"parameter": "plan", "fields": {"item": item, "amount": amount}, "maximum": 3}, **ordering,
        },
        "note": {
            "kind": "write", "doc": "Leave a note.",
            "parameters": {
                "body": {"type": "string", "doc": "The text.", "max_length": 200},
                "cents": {"type": "number", "doc": "An amount.", "required": False},
            },
            "effects": ["INSERT INTO notes(body, cents) VALUES (:body, coalesce(:cents, 0))"],
        },
        "wait": {
            "kind": "clock", "doc": "Let a day pass.",
            "effects": [
                "UPDATE state SET money = money + (SELECT demand FROM tape WHERE tape.day = state.day), day = day + 1"
            ],
            "result": "SELECT day, money FROM state", "shape": "row",
        },
        "think": {"kind": "think", "doc": "Think aloud.",
                  "parameters": {"thought": {"type": "string", "doc": "What you think."}}},
        "submit": {
            "kind": "submit", "doc": "Hand in.",
            "parameters": {"total": {"type": "integer", "doc": "How many were ordered.", "minimum": 0, "maximum": 99}},
        },
    }  # fmt: skip
