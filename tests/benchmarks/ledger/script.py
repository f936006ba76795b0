"""The calls that every player makes, and what must come of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple


class Call(NamedTuple):
    """One tool call."""

    tool: str
    arguments: dict[str, Any]


Timed = Literal["read", "write", "refused"]

SCRIPT = (
    Call("balance", {"account": 1}),
    Call("transfer", {"source": 1, "target": 3, "amount": 2500}),
    Call("withdraw", {"account": 3, "amount": 9999}),
    Call("deposit", {"account": 2, "amount": 1000}),
    Call("transfer", {"source": 2, "target": 3, "amount": 1000}),
    Call("withdraw", {"account": 3, "amount": 500}),
    Call("transfer", {"source": 2, "target": 2, "amount": 1}),
    Call("journal", {}),
)
"""Solves the task; the third and the seventh are refused."""

ANSWERS: tuple[Any, ...] = (
    {"balance": 10_000},
    {"balance": 7_500},
    "insufficient funds",
    {"balance": 6_000},
    {"balance": 5_000},
    {"balance": 3_000},
    "source and target are the same",
    [
        {"kind": "withdraw", "source": 3, "target": None, "amount": 500},
        {"kind": "transfer", "source": 2, "target": 3, "amount": 1000},
        {"kind": "deposit", "source": None, "target": 2, "amount": 1000},
        {"kind": "transfer", "source": 1, "target": 3, "amount": 2500},
    ],
)
"""What each call of the script is answered with: a result, or the text of a refusal."""

TIMED: dict[Timed, tuple[Call, Call]] = {
    "read": (Call("balance", {"account": 1}), Call("balance", {"account": 2})),
    "write": (
        Call("transfer", {"source": 1, "target": 3, "amount": 5}),
        Call("transfer", {"source": 3, "target": 1, "amount": 5}),
    ),
    "refused": (
        Call("transfer", {"source": 2, "target": 3, "amount": 999_999}),
        Call("withdraw", {"account": 3, "amount": 999_999}),
    ),
}
"""Pairs of calls that can be made over and over."""
