"""The ledger's rules in Python, for the players that have no world: state, tools and grade, standard library only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

INSTRUCTION = "Move 25.00 from Ada to Cid. Ben pays in 10.00 and hands them to Cid, who then takes out 5.00. Submit."
OPENING = {1: 10_000, 2: 5_000, 3: 0}
CLOSING = {1: 7_500, 2: 5_000, 3: 3_000}
SHOWN = 10
"""Bookings that the journal shows."""

Entry = tuple[str, int | None, int | None, int]
"""Kind, source, target, amount in cents."""
BOOKED: Counter[Entry] = Counter(
    [("transfer", 1, 3, 2500), ("deposit", None, 2, 1000), ("transfer", 2, 3, 1000), ("withdraw", 3, None, 500)]
)


class Refused(Exception):
    """A guard was false; the text is for the agent."""


@dataclass
class Ledger:
    """Three accounts and a journal; a call that is refused changes nothing."""

    balances: dict[int, int] = field(default_factory=OPENING.copy)
    entries: list[Entry] = field(default_factory=list)

    def balance(self, account: int) -> dict[str, int]:
        """Balance of an account."""
        return {"balance": self.balances[account]}

    def journal(self) -> list[dict[str, str | int | None]]:
        """The last ten bookings, latest first."""
        return [
            {"kind": kind, "source": source, "target": target, "amount": amount}
            for kind, source, target, amount in reversed(self.entries[-SHOWN:])
        ]

    def deposit(self, account: int, amount: int) -> dict[str, int]:
        """Pay into an account."""
        self.balances[account] += amount
        self.entries.append(("deposit", None, account, amount))
        return {"balance": self.balances[account]}

    def withdraw(self, account: int, amount: int) -> dict[str, int]:
        """Take out of an account."""
        if self.balances[account] < amount:
            raise Refused("insufficient funds")
        self.balances[account] -= amount
        self.entries.append(("withdraw", account, None, amount))
        return {"balance": self.balances[account]}

    def transfer(self, source: int, target: int, amount: int) -> dict[str, int]:
        """Move money between two accounts."""
        if source == target:
            raise Refused("source and target are the same")
        if self.balances[source] < amount:
            raise Refused("insufficient funds")
        self.balances[source] -= amount
        self.balances[target] += amount
        self.entries.append(("transfer", source, target, amount))
        return {"balance": self.balances[source]}

    def grade(self) -> float:
        """1.0 for the expected balances and bookings, with no overdraft and no balance that the journal leaves open."""
        if self.balances != CLOSING or Counter(self.entries) != BOOKED:
            return 0.0
        explained = dict(OPENING)
        for _, source, target, amount in self.entries:
            if source is not None:
                explained[source] -= amount
            if target is not None:
                explained[target] += amount
        return float(explained == self.balances and min(self.balances.values()) >= 0)
