"""What models cost: reserved before a call, settled after it, uncertain where nobody was there to hear the answer.

SQLite in WAL mode, shared by any number of threads and processes. Every step is one transaction of its own, so that a
process that is killed loses nothing that was settled; what it had under way counts with its upper bound from then on.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from envsynth.errors import BudgetSpent, ModelError, boundary
from envsynth.llm.messages import Usage
from envsynth.models.base import Model

__all__ = ["PICO", "Ask", "Ledger", "Spend", "ledger_path"]

PICO = 10**12
"""Picodollars in a US dollar."""
_SQL = Path(__file__).with_name("sql")


def ledger_path(catalog: Path) -> Path:
    """Where the ledger of a catalog's builds stands: beside it."""
    return catalog.with_name(f"{catalog.stem}.spend.sqlite")


class Ask(NamedTuple):
    """A request that is about to be sent."""

    role: str
    model: str
    endpoint: str
    request: str
    """Digest of what is asked."""
    bound: int | None
    """Picodollars that it cannot exceed; None: prices are not known."""


class Spend(Model):
    """What a ledger holds, of one role at one endpoint or in all."""

    role: str = ""
    model: str = ""
    endpoint: str = ""
    settled: int = Field(default=0, ge=0)
    """Requests that were answered."""
    reserved: int = Field(default=0, ge=0)
    """Requests under way."""
    uncertain: int = Field(default=0, ge=0)
    """Requests that may have been billed: the process or the connection died during the call."""
    released: int = Field(default=0, ge=0)
    """Requests that the endpoint turned away, unbilled."""
    settled_usd: float = 0.0
    reserved_usd: float = 0.0
    """Upper bound of what is under way."""
    uncertain_usd: float = 0.0
    """Upper bound of what is uncertain."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    @property
    def committed_usd(self) -> float:
        """What a spend limit reckons with."""
        return self.settled_usd + self.reserved_usd + self.uncertain_usd


class Ledger:
    """The ledger in one file.

    Args:
        path: SQLite file; made where there is none.
        budget_usd: most US dollars that all calls in the file may come to; None: no limit.
    """

    def __init__(self, path: Path, budget_usd: float | None = None) -> None:
        self.path = path
        self.budget_usd = budget_usd
        with self._boundary():
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_sql("schema"))
                with _transaction(connection):
                    _orphan_the_dead(connection)

    def reserve(self, ask: Ask) -> int:
        """Set a request's upper bound aside; returns its number in the ledger.

        Raises:
            BudgetSpent: it would exceed the limit; nothing was reserved.
        """
        with self._boundary(), self._connection() as connection, _transaction(connection):
            _orphan_the_dead(connection)
            if self.budget_usd is not None:
                (committed,) = connection.execute(_sql("committed")).fetchone()
                if committed + (ask.bound or 0) > round(self.budget_usd * PICO):
                    raise self._spent(committed / PICO, (ask.bound or 0) / PICO)
            row = {**ask._asdict(), "owner": _this_process(os.getpid()), "started": time.time()}
            number = connection.execute(_sql("reserve"), row).lastrowid
        assert number is not None  # an INSERT has one
        return number

    def settle(self, number: int, usage: Usage, cost: int | None) -> None:
        """Enter what an answered request cost, in picodollars; None: prices are not known."""
        self._write("settle", {"id": number, "cost": cost, **usage.model_dump()})

    def release(self, number: int, reason: str) -> None:
        """Give back what was reserved for a request that is certainly not billed."""
        self._write("close", {"id": number, "state": "released", "reason": reason})

    def doubt(self, number: int, reason: str) -> None:
        """Note that a request may have been billed; it counts with its upper bound."""
        self._write("close", {"id": number, "state": "uncertain", "reason": reason})

    def rows(self) -> tuple[Spend, ...]:
        """The spend by role, model and endpoint."""
        with self._boundary(), self._connection() as connection:
            with _transaction(connection):
                _orphan_the_dead(connection)
            connection.row_factory = sqlite3.Row
            return tuple(_spend(row) for row in connection.execute(_sql("totals")))

    def total(self) -> Spend:
        """The spend in all."""
        rows = [row.model_dump(exclude={"role", "model", "endpoint"}) for row in self.rows()]
        return Spend(**{key: sum(row[key] for row in rows) for key in rows[0]}) if rows else Spend()

    def _spent(self, committed: float, bound: float) -> BudgetSpent:
        return BudgetSpent(
            f"the budget of ${self.budget_usd:g} leaves no room for another call", where=str(self.path),
            cause=f"${committed:.6f} are spent or under way, and the next call may cost up to ${bound:.6f}",
            next_step="run the same command with a higher --budget: finished work and paid answers are kept",
        )  # fmt: skip

    def _write(self, statement: str, values: dict[str, object]) -> None:
        with self._boundary(), self._connection() as connection:
            connection.execute(_sql(statement), values)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # A connection a step: it takes a fraction of a millisecond, and survives threads and forks.
        with closing(sqlite3.connect(self.path, timeout=60.0, isolation_level=None)) as connection:
            yield connection

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        step = "see whether the disk is full or the folder read-only; the file is an SQLite database"
        with boundary(ModelError, "the spend ledger cannot be written", where=str(self.path), next_step=step):
            yield


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _orphan_the_dead(connection: sqlite3.Connection) -> None:
    for (owner,) in connection.execute(_sql("owners")).fetchall():
        if not _alive(owner):
            connection.execute(_sql("orphan"), (owner,))


def _spend(row: sqlite3.Row) -> Spend:
    figures = dict(row)
    money = {
        "settled_usd": figures.pop("settled_cost") / PICO,
        "reserved_usd": figures.pop("reserved_bound") / PICO,
        "uncertain_usd": figures.pop("uncertain_bound") / PICO,
    }
    return Spend(**figures, **money)


@cache
def _sql(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text("utf-8")


@cache
def _this_process(pid: int) -> str:
    """A name that no other process has or will have: a process id is used again, its start is not."""
    return f"{_boot()}/{pid}/{_started(pid)}"


def _alive(owner: str) -> bool:
    boot, pid, started = owner.split("/")
    return boot == _boot() and started == _started(int(pid))


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Clock ticks from boot to the start of a process; empty where there is none, or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]
