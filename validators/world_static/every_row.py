"""Effects that change every row of a table, whatever a call names: sound SQL that lacks its WHERE."""

from __future__ import annotations

from collections.abc import Sequence

from envsynth.models import Finding, ToolKind, World
from envsynth.runtime.worlds.sqltext import Token, tokens
from envsynth.validators.world_static.statements import Statement

_MESSAGE = (
    "it changes every row of {table}, {rows} at the start, whatever the call names: say in a WHERE which ones are meant"
)


def every_row_finding(statement: Statement, world: World) -> Finding | None:
    """What is wrong with an effect of a tool that is told what is meant, and does not ask."""
    tool = statement.tool
    if statement.kind != "effect" or tool is None or tool.kind is not ToolKind.WRITE or not tool.parameters:
        return None
    pieces = tokens(statement.sql)
    table = _changed_whole(pieces)
    rows = len(world.rows.get(table, ()))
    # One row stands for the state of something, and a clock tool's effects come over everything.
    if rows <= 1:
        return None
    return Finding(rule="effect_on_every_row", message=_MESSAGE.format(table=table, rows=rows), where=statement.where)


def _changed_whole(pieces: Sequence[Token]) -> str:
    """The table that an UPDATE or DELETE without WHERE changes; empty for other statements."""
    words = [piece for piece in pieces if piece.depth == 0]
    if not words or words[0].text not in ("UPDATE", "DELETE") or any(piece.text == "WHERE" for piece in words):
        return ""
    first = 1 if words[0].text == "UPDATE" else 2
    if len(words) > first + 1 and words[first].text == "OR":
        first += 2
    return words[first].text.strip('"`[]').lower() if len(words) > first else ""
