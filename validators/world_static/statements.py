"""Every statement of a world, prepared as it will be when it is played."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Literal, NamedTuple

from envsynth.models import Finding, Tool, World
from envsynth.runtime.contract import JSON
from envsynth.runtime.worlds.authority import DATE_FUNCTIONS, Connection, Phase
from envsynth.runtime.worlds.sqltext import tokens
from envsynth.runtime.worlds.tools import marked

_QUERIES = frozenset({"SELECT", "WITH", "VALUES"})
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"})
_OUTSIDE = frozenset({"'now'", "'localtime'", "'utc'"})


class Statement(NamedTuple):
    """One statement of a world."""

    sql: str
    kind: Literal["guard", "effect", "result", "over"]
    where: str
    """The tool and which of its statements, for people."""
    parameters: frozenset[str]
    """Names that are bound when it is run."""
    tool: Tool | None = None

    @property
    def phase(self) -> Phase:
        """Under what authority it is run."""
        return {"effect": Phase.EFFECT, "over": Phase.ENDING}.get(self.kind, Phase.SHOWN)


class Prepared(NamedTuple):
    """A statement that SQLite has understood, or why it has not."""

    finding: Finding | None
    program: list[tuple[JSON, ...]]
    """SQLite's own instructions for it: address, opcode, five operands, comment."""
    written: frozenset[str]
    """Tables it writes to."""


def statements(world: World) -> Iterator[Statement]:
    """Guards, effects and results of every tool, and what says that nothing is left to do."""
    for tool in world.tools:
        outer = frozenset({"now", *(parameter.name for parameter in tool.parameters)})
        inner = outer | {"position", *(field.name for field in tool.each.fields)} if tool.each else outer
        for number, guard in enumerate(tool.guards, 1):
            yield Statement(guard.sql, "guard", f"tool {tool.name}, guard {number}", inner, tool)
        for number, effect in enumerate(tool.effects, 1):
            yield Statement(effect, "effect", f"tool {tool.name}, effect {number}", inner, tool)
        if tool.result:
            yield Statement(tool.result, "result", f"tool {tool.name}, result", outer, tool)
    if world.over:
        yield Statement(world.over, "over", "over", frozenset({"now"}))


def prepare(connection: Connection, statement: Statement) -> Prepared:
    """Have SQLite prepare a statement under the authority of its phase, all parameters NULL; it is not run."""
    authority = connection.authority
    authority.phase, authority.written = statement.phase, set()
    authority.denied.clear()
    connection.steps.refill()
    # The authorizer is asked when a statement is prepared; one that two tools share would be so only once.
    connection.sql.set_authorizer(authority)
    fault = _fault_of_text(statement)
    if fault is not None:
        return Prepared(fault, [], frozenset())
    try:
        # With its place in it, each text is a new one, and the authorizer is asked anew.
        sql = f"EXPLAIN /* {statement.where} */ {marked(statement.phase, statement.sql)}"
        program = connection.sql.execute(sql, dict.fromkeys(statement.parameters)).fetchall()
    except (sqlite3.Error, sqlite3.Warning) as exc:
        reason = authority.denied[0] if authority.denied else str(exc)
        finding = Finding(rule=_rule(authority.denied), message=reason, where=statement.where)
        return Prepared(finding, [], frozenset())
    finally:
        authority.phase = Phase.OURS
    return Prepared(None, program, frozenset(authority.written))


def inserted_table(sql: str) -> str:
    """The table that an INSERT or REPLACE adds rows to, in lower case; empty for other statements."""
    pieces = tokens(sql)
    for place, piece in enumerate(pieces[:-1]):
        if piece.depth == 0 and piece.text == "INTO":
            return pieces[place + 1].text.strip('"`[]').lower()
    return ""


def _fault_of_text(statement: Statement) -> Finding | None:
    """What is wrong with a statement although SQLite might take it."""
    pieces = tokens(statement.sql)
    first = pieces[0].text if pieces else ""
    if first not in (_CHANGES if statement.kind == "effect" else _QUERIES):
        message = f"it must begin with {' or '.join(sorted(_CHANGES if statement.kind == 'effect' else _QUERIES))}"
        return Finding(rule="sql_of_wrong_kind", message=message, where=statement.where)
    named = {piece.text[1:] for piece in pieces if piece.kind == "parameter"}
    unknown = sorted(named - statement.parameters)
    if unknown:
        message = f"no parameter is called {', '.join(unknown) or 'nothing'}"
        return Finding(rule="parameter_undeclared", message=message, where=statement.where)
    spoken = {piece.text for piece in pieces if piece.kind == "word"}
    moments = [piece.text for piece in pieces if piece.kind == "string" and piece.text.lower() in _OUTSIDE]
    if moments and not spoken.isdisjoint(function.upper() for function in DATE_FUNCTIONS):
        message = f"a world knows no present moment and no time zone: {moments[0]} gives NULL; use :now"
        return Finding(rule="present_moment", message=message, where=statement.where)
    return None


def _rule(denied: list[str]) -> str:
    if not denied:
        return "sql_invalid"
    if denied[0].startswith("it reads hidden"):
        return "reads_hidden"
    if denied[0].endswith("current_timestamp is not allowed") or "current_" in denied[0]:
        return "present_moment"
    return "sql_not_allowed"
