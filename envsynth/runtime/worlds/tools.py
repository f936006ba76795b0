"""A world's tools: what an agent is told of them, and what a call does to the database."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..arguments import check_arguments
from ..contract import JSON
from .authority import Connection, Phase

MAX_ROWS = 1_000
"""Rows that a result may have."""
MAX_TEXT = 20_000
"""Characters that a text argument may have where its schema says nothing."""
_INTEGERS = range(-(2**63), 2**63)

Values = dict[str, JSON]


class Called(NamedTuple):
    """What a call did: a result, or an error for the agent."""

    result: JSON
    error: str = ""


class _Failed(Exception):
    """A guard was false; the text is for the agent."""


class WorldTool:
    """One tool, ready to be called."""

    def __init__(self, document: JSON, decimals: Mapping[str, int]) -> None:
        """A tool.

        Args:
            document: the document of a `models.Tool`.
            decimals: digits after the point by column name, for columns that the tool says nothing of.
        """
        self.name: str = document["name"]
        self.kind: str = document["kind"]
        self.cost: float = document["cost"]
        self.schema = object_schema(document["parameters"])
        self.description: str = document["doc"]
        self._guards = [(marked(Phase.SHOWN, guard["sql"]), guard["error"]) for guard in document["guards"]]
        self._effects: list[str] = [marked(Phase.EFFECT, effect) for effect in document["effects"]]
        self._result: str = document["result"] and marked(Phase.SHOWN, document["result"])
        self._shape: str = document["shape"]
        self._decimals = {**decimals, **document["decimals"]}
        self._each: JSON = document["each"]
        self._element = object_schema(self._each["fields"]) if self._each else None
        self._absent = dict.fromkeys(self.schema["properties"])
        self._names: list[str] | None = None

    def public(self) -> JSON:
        """Name, description and JSON Schema parameters; a fresh copy."""
        return {"name": self.name, "description": self.description, "parameters": json.loads(json.dumps(self.schema))}

    def checked(self, arguments: JSON) -> tuple[Values, str]:
        """Arguments that fit, or why they do not."""
        if self._each and isinstance(arguments, dict) and isinstance(arguments.get(self._each["parameter"]), list):
            # A model may send the list itself where its text is asked for; both mean the same.
            try:
                listed = json.dumps(arguments[self._each["parameter"]], allow_nan=False)
            except (ValueError, TypeError, RecursionError):
                return {}, f"argument {self._each['parameter']!r} is no JSON"
            arguments = {**arguments, self._each["parameter"]: listed}
        values, error = check_arguments(self.schema, arguments)
        return values, error or _unfit(self.schema, values)

    def call(self, connection: Connection, values: Values, now: str) -> Called:
        """Run guards, effects and result as one; nothing is left of a call that fails.

        Where the database has rolled back more than the call, the connection is `lost`.

        Args:
            connection: the episode's.
            values: checked arguments.
            now: virtual time.
        """
        connection.steps.refill()
        bound = {**self._absent, **values, "now": now}
        if not self._effects and not self._guards:
            return self._read(connection, bound)
        elements, error = self._elements(bound)
        if error:
            return Called(None, error)
        sql, authority = connection.sql, connection.authority
        authority.phase = Phase.OURS
        sql.execute("SAVEPOINT call")
        try:
            for element in elements:
                self._apply(connection, element)
            answer = self._read(connection, bound)
        except _Failed as exc:
            answer = Called(None, str(exc))
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError):
            answer = Called(None, _cause(connection))
        finally:
            authority.phase = Phase.OURS
            connection.steps.refill()
        if not connection.lost:
            if answer.error:
                sql.execute("ROLLBACK TO call")
            sql.execute("RELEASE call")
        return answer

    def _apply(self, connection: Connection, bound: Values) -> None:
        sql, authority = connection.sql, connection.authority
        authority.phase = Phase.SHOWN
        for guard, error in self._guards:
            row = sql.execute(guard, bound).fetchone()
            if row is None or not isinstance(row[0], int | float) or not row[0]:
                raise _Failed(f"element {bound['position']}: {error}" if self._each else error)
        authority.phase = Phase.EFFECT
        for effect in self._effects:
            sql.execute(effect, bound)

    def _read(self, connection: Connection, bound: Values) -> Called:
        if not self._result:
            return Called({"ok": True})
        connection.authority.phase = Phase.SHOWN
        try:
            cursor = connection.sql.execute(self._result, bound)
            if self._names is None:
                self._names = [column[0] for column in cursor.description]
            rows = cursor.fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError):
            return Called(None, _cause(connection))
        if len(rows) > MAX_ROWS:
            return Called(None, f"more than {MAX_ROWS} rows: ask for fewer")
        return self._shaped(self._names, rows)

    def _shaped(self, names: Sequence[str], rows: Sequence[Sequence[JSON]]) -> Called:
        if self._shape == "json":
            try:
                return Called(json.loads(rows[0][0], parse_float=_finite) if rows and rows[0][0] is not None else None)
            except (ValueError, TypeError, RecursionError):
                return Called(None, "the call has no result")
        shown = [
            {name: value if type(value) in (int, str) else self._number(name, value)
             for name, value in zip(names, row, strict=True)}
            for row in rows
        ]  # fmt: skip
        if self._shape == "rows":
            return Called(shown)
        return Called(shown[0] if shown else None)

    def _number(self, name: str, value: JSON) -> JSON:
        """A value as it is shown: declared decimals, whole numbers without a point, no binary."""
        if isinstance(value, bytes):
            return value.hex()
        if not isinstance(value, float):
            return value
        if name in self._decimals:
            value = round(value, self._decimals[name])
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value

    def _elements(self, bound: Values) -> tuple[list[Values], str]:
        """What guards and effects are run with, once for each."""
        if not self._each:
            return [bound], ""
        name, most = self._each["parameter"], self._each["maximum"]
        try:
            listed = json.loads(bound[name])
        except (ValueError, RecursionError):
            return [], f"argument {name!r} is no JSON"
        if not isinstance(listed, list) or len(listed) > most:
            return [], f"argument {name!r} must be a JSON array of at most {most} objects"
        elements = []
        for position, element in enumerate(listed):
            values, error = check_arguments(self._element, element)
            error = error or _unfit(self._element, values)
            if error:
                return [], f"element {position} of {name!r}: {error}"
            absent = dict.fromkeys(self._element["properties"]) if self._element else {}
            elements.append({**bound, **absent, **values, "position": position})
        return elements, ""


def marked(phase: Phase, sql: str) -> str:
    """A statement as it is prepared: equal texts of different phases are different statements.

    The authorizer is asked when a statement is prepared, and prepared statements are kept by their text; so a query
    that effects may make would stay allowed in a result.
    """
    return f"/* {phase.name.lower()} */ {sql}"


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def object_schema(parameters: Sequence[JSON]) -> JSON:
    """The flat JSON Schema of parameters.

    Args:
        parameters: documents of `models.Parameter`.
    """
    return {
        "type": "object",
        "properties": {parameter["name"]: _property(parameter) for parameter in parameters},
        "required": [parameter["name"] for parameter in parameters if parameter["required"]],
        "additionalProperties": False,
    }


def _property(parameter: JSON) -> JSON:
    found = {"type": parameter["type"]}
    if parameter["doc"]:
        found["description"] = parameter["doc"]
    if parameter["enum"]:
        found["enum"] = list(parameter["enum"])
    for name, keyword in (
        ("minimum", "minimum"), ("maximum", "maximum"), ("min_length", "minLength"), ("max_length", "maxLength")
    ):  # fmt: skip
        if parameter[name] is not None:
            found[keyword] = parameter[name]
    return found


def _unfit(schema: JSON, values: Values) -> str:
    """Why values cannot be bound although their types are right; empty when they can."""
    for name, value in values.items():
        if isinstance(value, str):
            if "\0" in value:
                return f"argument {name!r} cannot hold a NUL character"
            if len(value) > schema["properties"][name].get("maxLength", MAX_TEXT):
                return f"argument {name!r} must have at most {MAX_TEXT} characters"
        elif isinstance(value, int) and value not in _INTEGERS:
            return f"argument {name!r} is too large a number"
    return ""


def _cause(connection: Connection) -> str:
    """What an agent is told of a statement that failed; the database's own words would name hidden things."""
    if connection.steps.left < 0:
        return "the call took too long; nothing was changed"
    return "the call is not possible; nothing was changed"
