"""`world_static`: schema, SQL, hidden values, texts and verifier of a world task, without playing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from envsynth.judging import verdict_of
from envsynth.models import Candidate, Finding, Source, Verdict, VerdictStatus, World
from envsynth.protocols import Context
from envsynth.runtime.worlds.authority import Connection
from envsynth.runtime.worlds.sqltext import tokens
from envsynth.timing import Stopwatch
from envsynth.validators.world_static.copies import copy_findings
from envsynth.validators.world_static.every_row import every_row_finding
from envsynth.validators.world_static.forgiving import forgiving_findings
from envsynth.validators.world_static.inner_order import unordered_inside
from envsynth.validators.world_static.ordering import lacks_order
from envsynth.validators.world_static.program import Storage
from envsynth.validators.world_static.schemas import schema_findings
from envsynth.validators.world_static.statements import Prepared, Statement, inserted_table, prepare, statements
from envsynth.validators.world_static.texts import private_findings, text_findings, unseen_findings
from envsynth.validators.world_static.verifier import verifier_findings
from envsynth.validators.worlds.opened import Opened, opened

__all__ = ["WorldStatic"]

MAX_IMAGE = 8 * 2**20
"""Bytes of the state at the start: every reset, fork and grade copies it."""
_LARGE = "its state takes {size:.1f} MiB, {most:.0f} at most: seed fewer rows, or shorter texts"
_OVER = (
    "it reads hidden {read}: that an episode goes on would tell it for nothing; have the call that decides it write"
    " the end into a visible column, and read that"
)
_INNER = (
    "what {function} gives depends on the order of its rows, and none is stated: take them FROM (SELECT ... ORDER BY a"
    " key), or put ORDER BY into the window"
)
_REFERS = (
    "it refers to hidden {target}, and tools write it: a refused row would tell which values are there; drop"
    " `references`, or make {target} visible"
)


class WorldStatic:
    """A world task keeps to its authority, hides what it hides, says what it must, and asks for something."""

    name = "world_static"
    version = "6"
    order = 10
    environment = "world"

    def validate(
        self, candidate: Candidate, source: Source, context: Context, earlier: Sequence[Verdict] = ()
    ) -> Verdict:
        """FAIL where anything is found that makes the candidate unusable; the rest is noted."""
        watch = Stopwatch()
        try:
            open_ = opened(candidate, context)
        except ValidationError as exc:
            first = exc.errors()[0]
            where = ".".join(map(str, first["loc"]))
            finding = Finding(rule="world_invalid", message=first["msg"], where=where)
            return verdict_of(self, VerdictStatus.FAIL, [finding], watch)
        except ValueError as exc:
            finding = Finding(rule="world_invalid", message=str(exc))
            return verdict_of(self, VerdictStatus.FAIL, [finding], watch)
        world = open_.world
        if len(open_.model.image) > MAX_IMAGE:
            message = _LARGE.format(size=len(open_.model.image) / 2**20, most=MAX_IMAGE / 2**20)
            finding = Finding(rule="world_too_large", message=message, where="world")
            return verdict_of(self, VerdictStatus.FAIL, [finding], watch)
        program = _of_program(open_)
        fatal = [
            *program.findings,
            *text_findings(candidate, world),
            *copy_findings(candidate, world),
            *private_findings(candidate, world, open_.content),
            *unseen_findings(candidate, open_.content),
            *forgiving_findings(candidate, world),
            *verifier_findings(candidate, open_),
        ]
        evidence = {
            "tables": len(world.tables), "rows": sum(map(len, world.rows.values())), "tools": len(world.tools),
            "statements": program.statements, "image_bytes": len(open_.model.image),
        }  # fmt: skip
        status = VerdictStatus.FAIL if fatal else VerdictStatus.PASS
        return verdict_of(self, status, [*fatal, *_noted(world)], watch, evidence=evidence)


class _Program(NamedTuple):
    """What was found in a world's own SQL and schemas, whatever its tasks are."""

    findings: tuple[Finding, ...]
    statements: int


_latest: list[tuple[Opened, _Program]] = []
"""Of the world that was asked for last: its tasks follow each other."""


def _of_program(open_: Opened) -> _Program:
    if not _latest or _latest[0][0] is not open_:
        prepared = _prepared(open_)
        findings = (
            *(finding for one in prepared for finding in _of_statement(*one, open_)),
            *_of_orders(prepared, open_),
            *_of_references(prepared, open_),
            *schema_findings(open_.world),
        )
        _latest[:] = [(open_, _Program(findings, len(prepared)))]
    return _latest[0][1]


def _prepared(open_: Opened) -> list[tuple[Statement, Prepared]]:
    connection = _connection(open_)
    try:
        return [(statement, prepare(connection, statement)) for statement in statements(open_.world)]
    finally:
        connection.sql.close()


def _connection(open_: Opened) -> Connection:
    connection = Connection(open_.model.hidden, lists=open_.model.lists)
    connection.load(open_.model.image)
    return connection


def _of_statement(statement: Statement, prepared: Prepared, open_: Opened) -> Iterator[Finding]:
    """What one statement may not do."""
    if prepared.finding is not None:
        yield prepared.finding
        return
    tolerated = {table.name for table in open_.world.tables if table.tolerated}
    forbidden = sorted(prepared.written - tolerated)
    if statement.tool is not None and statement.tool.kind == "read" and forbidden:
        message = f"a read tool writes to {', '.join(forbidden)}, which is not tolerated"
        yield Finding(rule="read_tool_writes", message=message, where=statement.where)
    if statement.kind == "effect" and not prepared.written:
        yield Finding(rule="effect_without_effect", message="it writes to no table", where=statement.where)
    if finding := every_row_finding(statement, open_.world):
        yield finding


def _of_orders(prepared: Sequence[tuple[Statement, Prepared]], open_: Opened) -> Iterator[Finding]:
    """What has no order, and what reads hidden things without having asked."""
    grown = {inserted_table(statement.sql) for statement, _ in prepared if statement.kind == "effect"}
    keys: dict[str, tuple[str, ...] | None] = {
        table.name: () if table.name not in grown and len(open_.world.rows.get(table.name, ())) <= 1
        else table.key or None
        for table in open_.world.tables
    }  # fmt: skip
    connection = _connection(open_)
    try:
        storage = Storage(connection, open_.model.document["tables"])
        for statement, one in prepared:
            if one.finding is not None:
                continue
            if _is_for_show(statement) and (read := storage.hidden_read(one.program, open_.model.hidden)):
                yield Finding(rule="reads_hidden", message=f"it reads hidden {read}", where=statement.where)
            if statement.kind == "over" and (read := storage.hidden_read(one.program, open_.model.hidden)):
                yield Finding(rule="over_reads_hidden", message=_OVER.format(read=read), where=statement.where)
            if function := unordered_inside(statement.sql, {name: key == () for name, key in keys.items()}):
                message = _INNER.format(function=function)
                yield Finding(rule="order_inside_missing", message=message, where=statement.where)
            if statement.kind == "result" and lacks_order(statement, connection, keys):
                message = "it may give several rows and has no ORDER BY that names a column"
                yield Finding(rule="result_without_order", message=message, where=statement.where)
    finally:
        connection.sql.close()


def _of_references(prepared: Sequence[tuple[Statement, Prepared]], open_: Opened) -> Iterator[Finding]:
    """Columns whose values a tool may only choose among hidden ones."""
    written = frozenset[str]().union(*(one.written for _, one in prepared))
    hidden = open_.model.hidden
    for table in open_.world.tables:
        for column in table.columns if table.name in written else ():
            if column.references and hidden.covers(*column.references.split(".", 1)):
                message = _REFERS.format(target=column.references)
                where = f"table {table.name}, column {column.name}"
                yield Finding(rule="refers_to_hidden", message=message, where=where)


def _is_for_show(statement: Statement) -> bool:
    """Whether what a statement reads can be seen: so can what a read tool writes, for nobody pays for looking."""
    looks = statement.tool is not None and statement.tool.kind == "read"
    return statement.kind in ("guard", "result") or (statement.kind == "effect" and looks)


def _noted(world: World) -> Iterator[Finding]:
    """What is odd and harms nobody."""
    for tool in world.tools:
        sql = " ".join((*(guard.sql for guard in tool.guards), *tool.effects, tool.result))
        used = {piece.text[1:] for piece in tokens(sql) if piece.kind == "parameter"}
        listed = {tool.each.parameter} if tool.each else set()
        for parameter in tool.parameters:
            if tool.kind not in ("submit", "think") and parameter.name not in used | listed:
                where = f"tool {tool.name}, parameter {parameter.name}"
                yield Finding(rule="parameter_unused", message="no statement reads it", where=where)
