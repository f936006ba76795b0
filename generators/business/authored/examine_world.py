"""What is wrong with each artefact of a world, found the moment it exists."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from envsynth.errors import SandboxError
from envsynth.generators.business import manual
from envsynth.generators.business.authored.artefacts import Brief, Policies, Rows, Schema, Tools
from envsynth.generators.business.authored.bench import Bench
from envsynth.generators.business.authored.blame import WORLDLY, faults_of
from envsynth.generators.business.authored.draft import PAGES, Draft, tables_of, world_of
from envsynth.generators.business.authored.faults import Fault, fault
from envsynth.models import Model, ToolKind
from envsynth.runtime.worlds.grading import Ending, WorldDatabase
from envsynth.runtime.worlds.image import build_image

__all__ = ["examine_brief", "examine_policies", "examine_rows", "examine_schema", "examine_tools", "examine_world"]

LEAST_ROWS = 12
"""Rows of a world; fewer hold nothing that could be mixed up."""
LEAST_READS = 2
_ACTS = (ToolKind.WRITE, ToolKind.CLOCK, ToolKind.SUBMIT)


def examine_brief(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Names stand once, and the clock is a moment."""
    brief = draft.of(Brief)
    yield from _twice(Brief, "service", (service.name for service in brief.services))
    yield from _twice(Brief, "matter", (matter.name for matter in brief.matters))
    try:
        datetime.fromisoformat(brief.clock)
    except ValueError:
        yield fault(Brief, "clock_invalid", f"{brief.clock} is no moment", "clock")


def examine_schema(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """The tables can be made."""
    schema = draft.of(Schema)
    yield from _twice(Schema, "table", (table.name for table in schema.tables))
    if PAGES in {table.name for table in schema.tables}:
        yield fault(Schema, "table_taken", "every world has this table already: leave it out", f"table {PAGES}")
        return
    try:
        build_image({"tables": [table.document() for table in tables_of(draft)], "rows": {}})
    except ValueError as exc:
        yield fault(Schema, "schema_invalid", str(exc))
    if all(table.hidden for table in schema.tables):
        yield fault(Schema, "nothing_visible", "every table is hidden: an agent could see nothing")


def examine_policies(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Invariants are queries over the tables, and what is stated stands on a page."""
    policies = draft.of(Policies)
    yield from _twice(Policies, "page", (page.page for page in policies.pages))
    yield from _twice(Policies, "invariant", (one.id for one in policies.invariants))
    pages = {page.page for page in policies.pages}
    document = {"tables": [table.document() for table in tables_of(draft)], "rows": {}}
    image = build_image(document)
    database = WorldDatabase(Ending(document, image, image, (), {}))
    try:
        database.seal()
        for one in policies.invariants:
            where = f"invariant {one.id}"
            page = one.stated_in.rpartition("/")[2]
            if one.stated_in and page not in pages:
                message = f"it is stated in {one.stated_in}, and there is no page {page}: name one as {PAGES}/PAGE"
                yield fault(Policies, "page_unknown", message, where)
            try:
                database.rows(one.sql, where=where)
            except SandboxError as exc:
                yield fault(Policies, "invariant_sql_invalid", exc.cause or exc.what, where)
    finally:
        database.close()


def examine_tools(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Every statement prepares under its authority; names are free; something can be seen and done."""
    tools = draft.of(Tools).tools
    yield from _twice(Tools, "tool", (tool.name for tool in tools))
    taken = {tool.name for tool in tools} & set(manual.NAMES[1:])
    for name in sorted(taken):
        yield fault(Tools, "tool_taken", "every world has this tool already: leave it out", f"tool {name}")
    if sum(tool.kind is ToolKind.READ for tool in tools) < LEAST_READS:
        yield fault(Tools, "too_few_reads", f"fewer than {LEAST_READS} tools read: an agent must find its way")
    if not any(tool.kind in _ACTS for tool in tools):
        yield fault(Tools, "nothing_to_do", "no tool writes or hands in: nothing could be asked for")
    if taken or len({tool.name for tool in tools}) < len(tools):
        return
    try:
        world = world_of(draft.without(Rows))
        bench.stage(world)
    except ValueError as exc:
        yield fault(Tools, "tools_invalid", _said(exc))
        return
    yield from (one for one in faults_of(bench.probe(world, played=False)) if one.artefact is Tools)


def examine_rows(draft: Draft, bench: Bench) -> Iterator[Fault]:
    """Rows fit types, references and enumerations, and violate no invariant."""
    rows = draft.of(Rows).rows
    known = {table.name: table for table in draft.of(Schema).tables}
    fits = True
    for name, lines in rows.items():
        if name not in known:
            fits = False
            message = "the manual is filled from its pages" if name == PAGES else "there is no such table"
            yield fault(Rows, "table_unknown", message, f"table {name}")
            continue
        width = len(known[name].columns)
        for number, line in enumerate(lines):
            if len(line) != width or any(isinstance(value, list | dict) for value in line):
                fits = False
                yield fault(Rows, "row_width", f"row {number} has not {width} plain values", f"table {name}")
    if not fits:
        return
    try:
        stage = bench.stage(world_of(draft))
    except (ValueError, sqlite3.Error) as exc:
        yield fault(Rows, "rows_invalid", _said(exc))
        return
    if sum(map(len, rows.values())) < LEAST_ROWS:
        message = f"fewer than {LEAST_ROWS} rows: give each thing that is meant others that it could be mistaken for"
        yield fault(Rows, "rows_too_few", message)
    try:
        for name in stage.broken:
            message = "the rows violate it before anybody has done anything"
            yield fault(Rows, "invariant_violated_at_start", message, f"invariant {name}")
    except SandboxError as exc:
        yield fault(Policies, "invariant_sql_invalid", exc.cause or exc.what, exc.where or "")


def examine_world(draft: Draft, bench: Bench) -> list[Fault]:
    """What the ladder finds in a whole world, whatever its tasks are.

    Whether every tool can succeed is left to the tasks: some take several right calls before.
    """
    verdicts = bench.probe(world_of(draft), played=True)
    found = [one for one in faults_of(verdicts) if one.artefact in WORLDLY]
    return [one for one in found if one.finding.rule != "tool_never_succeeds"]


def _said(exc: Exception) -> str:
    """The first line that says something of an error of pydantic or SQLite."""
    errors = getattr(exc, "errors", None)
    if callable(errors):
        first = errors()[0]
        return str(first["msg"])
    return str(exc)


def _twice(artefact: type[Model], what: str, names: Iterable[str]) -> Iterator[Fault]:
    for name, count in Counter(names).items():
        if count > 1:
            yield fault(artefact, f"{what}_twice", f"{count} {what}s have this name", f"{what} {name}")
