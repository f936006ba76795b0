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
from .quick import Acceptor

MAX_ROWS = 1_000
"""Rows that a result may have."""
MAX_TEXT = 20_000
"""Characters that a text argument may have where its schema says nothing."""
_INTEGERS = range(-(2**63), 2**63)
_NUMBERS = (int, float)
_SHOWN_AS_THEY_ARE = frozenset({int, str})
_OURS, _SHOWN, _EFFECT = Phase.OURS, Phase.SHOWN, Phase.EFFECT
_TROUBLE = (sqlite3.Error, sqlite3.Warning, OverflowError, MemoryError)
"""What a statement raises that cannot be run."""

Values = dict[str, JSON]


class Called(NamedTuple):
    """What a call did: a result, or an error for the agent."""

    result: JSON
    error: str = ""


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
        self._accepts = Acceptor(self.schema, longest=MAX_TEXT)
        self._names: list[str] | None = None

    def public(self) -> JSON:
        """Name, description and JSON Schema parameters; a fresh copy."""
        return {"name": self.name, "description": self.description, "parameters": json.loads(json.dumps(self.schema))}

    def checked(self, arguments: JSON) -> tuple[Values, str]:
        """Arguments that fit, or why they do not."""
        if self._accepts(arguments):
            return dict(arguments), ""
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

        Where the database has rolled back more than the call, the connection is in no transaction any more.

        Args:
            connection: the episode's.
            values: checked arguments.
            now: virtual time.
        """
        connection.steps.refill()
        bound = {**self._absent, **values, "now": now}
        if self._each and (self._guards or self._effects):
            return self._call_each(connection, bound)
        error = self._stopped(connection, bound) if self._guards else ""
        if error:
            return Called(None, error)
        return self._change(connection, bound, None) if self._effects else self._read(connection, bound)

    def _call_each(self, connection: Connection, bound: Values) -> Called:
        elements, error = self._elements(bound)
        return Called(None, error) if error else self._change(connection, bound, elements)

    def _change(self, connection: Connection, bound: Values, elements: Sequence[Values] | None) -> Called:
        """Run effects and result under a savepoint; guards too, where elements are given."""
        execute, authority = connection.cursor.execute, connection.authority
        authority.phase = _OURS
        execute("SAVEPOINT call")
        try:
            error = self._apply_each(connection, elements) if elements is not None else self._apply(connection, bound)
            answer = Called(None, error) if error else self._read(connection, bound)
        finally:
            authority.phase = _OURS
            connection.steps.refill()
        if connection.sql.in_transaction:
            if answer.error:
                execute("ROLLBACK TO call")
            execute("RELEASE call")
        return answer

    def _apply_each(self, connection: Connection, elements: Sequence[Values]) -> str:
        for element in elements:
            error = self._stopped(connection, element) or self._apply(connection, element)
            if error:
                return f"element {element['position']}: {error}"
        return ""

    def _stopped(self, connection: Connection, bound: Values) -> str:
        """What the first guard that does not hold tells the agent; empty where all do."""
        connection.authority.phase = _SHOWN
        execute = connection.cursor.execute
        try:
            for guard, error in self._guards:
                row = execute(guard, bound).fetchone()
                if row is None or not isinstance(row[0], _NUMBERS) or not row[0]:
                    return str(error)
        except _TROUBLE:
            return _cause(connection)
        return ""

    def _apply(self, connection: Connection, bound: Values) -> str:
        """Run the effects; why one of them was not possible."""
        connection.authority.phase = _EFFECT
        execute = connection.cursor.execute
        try:
            for effect in self._effects:
                execute(effect, bound)
        except _TROUBLE:
            return _cause(connection)
        return ""

    def _read(self, connection: Connection, bound: Values) -> Called:
        if not self._result:
            return Called({"ok": True})
        connection.authority.phase = _SHOWN
        cursor = connection.cursor
        try:
            cursor.execute(self._result, bound)
            if self._names is None:
                self._names = [column[0] for column in cursor.description]
            rows = cursor.fetchmany(MAX_ROWS + 1)
        except _TROUBLE:
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
        if self._shape == "rows":
            return Called([self._row(names, row) for row in rows])
        return Called(self._row(names, rows[0]) if rows else None)

    def _row(self, names: Sequence[str], row: Sequence[JSON]) -> Values:
        shown = dict(zip(names, row, strict=True))
        for name, value in shown.items():
            if type(value) not in _SHOWN_AS_THEY_ARE:
                shown[name] = self._number(name, value)
        return shown

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
