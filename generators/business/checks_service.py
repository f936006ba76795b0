"""What can be wrong with one service blueprint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsynth.errors import ConfigError, EnvsynthError
from envsynth.generators.business import manual
from envsynth.generators.business.blueprint import Recipe, Service
from envsynth.generators.business.checks_goal import Surroundings, goal_faults
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library
from envsynth.generators.business.prepared import Prepared
from envsynth.generators.business.rows import in_order
from envsynth.generators.business.scratch import numbered
from envsynth.generators.business.words import as_names, braces
from envsynth.generators.business.yamllines import Fault
from envsynth.models import Column, Table, Tool

_KINDS = ("serial", "faker", "choice", "integer", "money", "days", "after", "ref", "listed", "text", "sql")


def service_faults(library: Library, name: str) -> Iterator[Fault]:
    """What is wrong with a service that could be read."""
    service = library.service(name)
    try:
        around = with_needs(library, service)
    except EnvsynthError as error:
        yield Fault(error.where or library.place("service", name, "needs"), f"{error.what} ({error.cause})")
        return
    yield from _cycles(library, service)
    tables = [table for one in around for table in one.tables]
    try:
        prepared = Prepared([*tables, manual.table()])
    except ValueError as exc:
        yield Fault(library.place("service", name, "tables"), str(exc))
        return
    try:
        yield from _row_faults(library, service, {table.name: table for table in tables})
        settings = [key for one in around for key in one.settings]
        yield from _statement_faults(library, service, prepared, settings)
        yield from _goal_faults(library, service, around, prepared)
    finally:
        prepared.close()


def with_needs(library: Library, service: Service) -> tuple[Service, ...]:
    """A service after all those that it needs.

    Raises:
        EnvsynthError: one of them is missing, or they need each other in a circle.
    """
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            where = library.place("service", path[-1], "needs")
            raise ConfigError("services need each other in a circle", where=where, cause=circle)
        if name in order:
            return
        for needed in library.service(name).needs:
            if needed not in library.services:
                raise ConfigError("it needs a service that is not there", where=library.place("service", name, "needs"),
                                  cause=needed)  # fmt: skip
            visit(needed, (*path, name))
        order.append(name)

    visit(service.service, ())
    return tuple(library.service(name) for name in order)


def _cycles(library: Library, service: Service) -> Iterator[Fault]:
    """Tables whose foreign keys point at each other in a circle."""
    own = [table.name for table in service.tables]
    targets = {
        table.name: {c.references.partition(".")[0] for c in table.columns if c.references} - {table.name}
        for table in service.tables
    }
    left = dict(targets)
    while ready := [name for name in left if not left[name] & left.keys()]:
        for name in ready:
            del left[name]
    if left:
        circle = ", ".join(name for name in own if name in left)
        yield Fault(library.place("service", service.service, "tables", next(iter(left))),
                    f"a cycle of foreign keys: {circle}")  # fmt: skip


def _row_faults(library: Library, service: Service, tables: Mapping[str, Table]) -> Iterator[Fault]:
    """Recipes that cannot be followed."""
    own = {table.name for table in service.tables}
    filled = [name for name in tables if name not in own]
    for name, rows in service.rows.items():
        place = ("rows", name)
        if name not in own:
            yield Fault(library.place("service", service.service, *place), f"there is no table {name} in this service")
            continue
        table = tables[name]
        columns = {column.name: column for column in table.columns}
        if rows.per and rows.per not in filled:
            where = library.place("service", service.service, *place, "per")
            yield Fault(where, f"{rows.per} has no rows before {name}")
        drawn = rows.columns.keys() | {numbered(table)} if rows.count[1] else columns.keys()
        for missing in sorted(columns.keys() - drawn):
            yield Fault(library.place("service", service.service, *place), f"no recipe for {name}.{missing}")
        for column, recipe in rows.columns.items():
            where = library.place("service", service.service, *place, "columns", column)
            if column not in columns:
                yield Fault(where, f"there is no column {name}.{column}")
                continue
            for message in _recipe_faults(recipe, columns[column], bool(rows.per), filled, tables):
                yield Fault(where, f"{name}.{column}: {message}")
        yield from _order_fault(library, service, name)
        filled.append(name)


def _order_fault(library: Library, service: Service, table: str) -> Iterator[Fault]:
    try:
        in_order(service.rows[table].columns, table)
    except EnvsynthError as error:
        yield Fault(library.place("service", service.service, "rows", table), f"{error.what} ({error.cause})")


def _recipe_faults(
    recipe: Recipe, column: Column, owned: bool, filled: Sequence[str], tables: Mapping[str, Table]
) -> Iterator[str]:
    kinds = [kind for kind in _KINDS if getattr(recipe, kind) is not None]
    if len(kinds) > 1 or (kinds and recipe.value is not None):
        yield f"two kinds of recipe ({', '.join(kinds)}): one is wanted"
    if not kinds and recipe.value is None and not column.nullable:
        yield "it would stay empty, and is not nullable"
    if recipe.missing and not column.nullable:
        yield "rows without it are wanted, and it is not nullable"
    if recipe.ref == "owner" and not owned:
        yield "`ref: owner` needs rows that are made per something"
    if recipe.ref and recipe.ref != "owner":
        yield from _ref_faults(recipe.ref, filled, tables)
    if recipe.listed is not None and recipe.listed.count(".") != 1:
        yield "`listed` is written list.field"
    if recipe.faker:
        try:
            country("us").pool(recipe.faker)
        except ConfigError as error:
            yield error.what
    yield from _value_faults(recipe, column)


def _ref_faults(ref: str, filled: Sequence[str], tables: Mapping[str, Table]) -> Iterator[str]:
    table, _, key = ref.partition(".")
    if table not in filled:
        yield f"{table} has no rows before this table's"
    elif key and key not in {one.name for one in tables[table].columns}:
        yield f"there is no column {ref}"


def _value_faults(recipe: Recipe, column: Column) -> Iterator[str]:
    """Bounds the wrong way round, and enumerated columns drawn from other words."""
    for kind in ("integer", "money", "days"):
        bounds = getattr(recipe, kind)
        if bounds and bounds[0] > bounds[1]:
            yield f"nothing lies between {bounds[0]} and {bounds[1]}"
    if not column.enum:
        return
    drawn = list(recipe.choice or ()) if recipe.choice is not None else [] if recipe.value is None else [recipe.value]
    for word in drawn:
        if word not in column.enum:
            yield f"{word!r} is none of {', '.join(map(str, column.enum))}"


def _statement_faults(
    library: Library, service: Service, prepared: Prepared, settings: Sequence[str]
) -> Iterator[Fault]:
    """SQL that cannot be prepared, and settings that the manual is silent about."""
    place, name = library.place, service.service
    for path, what, sql in _preparing(service):
        if fault := prepared.fault(as_names(sql, settings), effect=True):
            yield Fault(place("service", name, *path), f"{what}: {fault}")
    for number, tool in enumerate(service.tools):
        for path, message in tool_faults(tool, prepared, settings):
            yield Fault(place("service", name, "tools", number, *path), f"tool {tool.name}: {message}")
    page = f"policies/{name}"
    for number, found in enumerate(service.invariants):
        spot = ("invariants", number)
        if fault := prepared.fault(as_names(found.sql, settings)):
            yield Fault(place("service", name, *spot, "sql"), f"invariant {found.id}: {fault}")
        if found.stated_in and found.stated_in != page:
            where = place("service", name, *spot, "stated_in")
            yield Fault(where, f"invariant {found.id}: it is stated in {page}, and not in {found.stated_in}")
    for key in service.settings:
        if key not in braces(service.page):
            yield Fault(place("service", name, "page"), f"the manual's page says nothing of {{{key}}}, a setting")


def _preparing(service: Service) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Statements that make rows: where each stands, what it is, and its SQL."""
    for kind in ("derive", "traps"):
        yield from (((kind, number), kind, sql) for number, sql in enumerate(getattr(service, kind)))
    for table, rows in service.rows.items():
        for column, recipe in rows.columns.items():
            if recipe.sql is not None:
                statement = f'UPDATE "{table}" SET "{column}" = ({recipe.sql})'
                yield ("rows", table, "columns", column), f"{table}.{column}", statement


def tool_faults(tool: Tool, prepared: Prepared, settings: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What is wrong with a tool's SQL: where in its document, and what."""
    outer = [parameter.name for parameter in tool.parameters]
    inner = [*outer, "position", *(field.name for field in tool.each.fields)] if tool.each else outer
    for number, guard in enumerate(tool.guards):
        if fault := prepared.fault(as_names(guard.sql, settings), inner):
            yield ("guards", number), f"guard {number + 1}: {fault}"
    for number, effect in enumerate(tool.effects):
        if fault := prepared.fault(as_names(effect, settings), inner, effect=True):
            yield ("effects", number), f"effect {number + 1}: {fault}"
    if tool.result and (fault := prepared.fault(as_names(tool.result, settings), outer)):
        yield ("result",), f"result: {fault}"


def _goal_faults(library: Library, service: Service, around: Sequence[Service], prepared: Prepared) -> Iterator[Fault]:
    pages = [manual.Page(one.service, one.title, "") for one in around]
    scope = Surroundings(
        tools={tool.name: tool for one in around for tool in one.tools} | {t.name: t for t in manual.tools(pages)},
        entities={entity.id: entity for one in around for entity in one.entities},
        tables={table.name: table for one in around for table in one.tables},
        pages=frozenset(page.page for page in pages),
        settings=tuple(key for one in around for key in one.settings),
        prepared=prepared,
    )  # fmt: skip
    for number, entity in enumerate(service.entities):
        for path, message in scope.entity_faults(entity):
            where = library.place("service", service.service, "entities", number, *path)
            yield Fault(where, f"entity {entity.id}: {message}")
    for number, goal in enumerate(service.goals):
        for path, message in goal_faults(goal, scope):
            where = library.place("service", service.service, "goals", number, *path)
            yield Fault(where, f"goal {goal.id}: {message}")
