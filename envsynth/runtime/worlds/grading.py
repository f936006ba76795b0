"""From the end of an episode in a world to its grade: one database of final and initial state, trace and answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import SandboxError
from ..contract import JSON, Grade
from ..rewards import combined, normalised, outcome, process
from ..sealed import SealedDatabase, known_functions
from .authority import DATE_FUNCTIONS, open_database
from .checks import diff_fault
from .sqltext import names_in
from .states import TableDiff, state_diff

_EXTRA = """
CREATE TABLE trace (turn INTEGER PRIMARY KEY, tool TEXT NOT NULL, arguments TEXT NOT NULL, ok INTEGER NOT NULL,
  result TEXT NOT NULL, error TEXT, cost REAL NOT NULL) STRICT;
CREATE TABLE answer (key TEXT PRIMARY KEY, value ANY) STRICT;
"""


class Ending(NamedTuple):
    """Everything that an episode in a world is graded on."""

    document: JSON
    """Of the `models.World`."""
    initial: bytes
    """Image of the initial state."""
    final: bytes
    """Image of the state that is graded."""
    trace: Sequence[tuple[JSON, ...]]
    """Rows of `trace`: turn, tool, arguments (JSON), ok, result (JSON), error, cost."""
    answer: Mapping[str, JSON]
    written: frozenset[str] | None = None
    """Tables that may differ from the initial state; None: any."""


class WorldDatabase(SealedDatabase):
    """The database of a finished episode in a world."""

    def __init__(self, ending: Ending) -> None:
        connection = open_database()
        connection.deserialize(ending.final)
        connection.execute("ATTACH ':memory:' AS initial")
        connection.deserialize(ending.initial, name="initial")
        connection.executescript(_EXTRA)
        connection.executemany("INSERT INTO trace VALUES (?, ?, ?, ?, ?, ?, ?)", ending.trace)
        connection.executemany("INSERT INTO answer VALUES (?, ?)", ending.answer.items())
        super().__init__(connection)
        self._functions = known_functions() | DATE_FUNCTIONS
        tables: Sequence[JSON] = ending.document["tables"]
        self._tables = [table for table in tables if ending.written is None or table["name"] in ending.written]

    def diff(self) -> dict[str, TableDiff]:
        """The tables that changed, and how."""
        return state_diff(self._connection, self._tables)


def judge(ending: Ending, verifier: JSON, conditions: Mapping[str, bool], *, where: str) -> Grade:
    """Every component of the grade.

    Args:
        ending: what the checks see.
        verifier: the document of a `models.Verifier`.
        conditions: what the gate may ask for, by name.
        where: the task's id, for messages.

    Raises:
        SandboxError: the verifier cannot be evaluated; there is no grade.
    """
    if not verifier["checks"]:
        raise SandboxError("the task has no checks", where=where, cause="anything would pass", retryable=False)
    database = WorldDatabase(ending)
    try:
        diffs = database.diff()
        database.seal()
        faults = {check["id"]: _fault(database, check, ending, diffs, where) for check in verifier["checks"]}
        rubric = verifier.get("rubric", ())
        criteria = {line["id"]: _criterion(database, line, where) for line in rubric}
        utility = _utility(database, verifier.get("utility"), where)
    finally:
        database.close()
    checks = {name: not fault for name, fault in faults.items()}
    result = outcome(checks) * (1.0 if utility is None else normalised(utility, verifier["utility"]))
    total = combined(verifier["reward"], conditions, result)
    detail: dict[str, JSON] = {
        "transcript": dict(conditions),
        "faults": {name: fault for name, fault in faults.items() if fault},
        "changed": {name: [len(diff.added), len(diff.changed), len(diff.removed)] for name, diff in diffs.items()},
    }
    if utility is not None:
        detail["utility"] = utility
    return Grade(
        reward=total.reward,
        outcome=result,
        process=process((line["class"], criteria[line["id"]]) for line in rubric),
        gate=total.gate,
        checks=checks,
        criteria=criteria,
        penalties=total.penalties,
        detail=detail,
        conditions=dict(conditions),
    )


def _fault(database: SealedDatabase, check: JSON, ending: Ending, diffs: Mapping[str, TableDiff], where: str) -> str:
    place = f"{where}: check {check['id']}"
    if check["kind"] == "diff":
        return diff_fault(check, diffs, ending.document["tables"], ending.answer)
    if check["kind"] == "sql":
        return "" if database.truth(check["sql"], where=place) else "not so"
    open_to_change = _open_to_change(ending.document, diffs)
    for invariant in ending.document["invariants"]:
        # It holds in the initial state, and so it does where nothing that it reads has changed.
        if names_in(invariant["sql"]) & open_to_change and database.rows(
            invariant["sql"], where=f"{place}: {invariant['id']}"
        ):
            return f"the invariant {invariant['id']} is violated"
    return ""


def _open_to_change(document: JSON, diffs: Mapping[str, TableDiff]) -> frozenset[str]:
    """Names of tables that may hold something else than at the start; a difference says nothing of exempt columns."""
    unseen = [
        table["name"] for table in document["tables"]
        if table["tolerated"] or any(column["role"] == "exempt" for column in table["columns"])
    ]  # fmt: skip
    return frozenset(name.upper() for name in (*diffs, *unseen, "trace", "answer"))


def _criterion(database: SealedDatabase, line: JSON, where: str) -> bool | None:
    if not line["sql"]:
        return None  # for a judge to say
    met = database.truth(line["sql"], where=f"{where}: criterion {line['id']}")
    return (not met) if met is not None and line["class"] == "pitfall" else met


def _utility(database: SealedDatabase, utility: JSON, where: str) -> float | None:
    if not utility:
        return None
    rows = database.rows(utility["sql"], where=f"{where}: utility")
    if not rows or not isinstance(rows[0][0], int | float) or not math.isfinite(rows[0][0]):
        raise SandboxError("the task's utility is no finite number", where=where, retryable=False)
    return float(rows[0][0])


def trace_row(turn: int, tool: str, arguments: JSON, called: tuple[JSON, str], cost: float) -> tuple[JSON, ...]:
    """A row of `trace`; JSON in ASCII, because an agent may send lone surrogates, which no database takes."""
    result, error = called
    return (turn, tool, _ascii_json(arguments), not error, _ascii_json(result), error or None, cost)


def _ascii_json(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
