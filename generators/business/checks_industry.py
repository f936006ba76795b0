"""What can be wrong with an industry: words and names that are missing, rules and goals that cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from envsynth.generators.business import manual
from envsynth.generators.business.blueprint import Goal, Industry, Rule, Service, parts_of, steps_of
from envsynth.generators.business.checks_goal import Surroundings, goal_faults
from envsynth.generators.business.checks_names import name_faults, value_faults
from envsynth.generators.business.checks_texts import Texts, goal_texts, service_texts
from envsynth.generators.business.load import Library
from envsynth.generators.business.prepared import Prepared
from envsynth.generators.business.words import BUILT_IN, as_names, braces
from envsynth.generators.business.yamllines import Fault
from envsynth.models import Guard

_OF_COMPANY = frozenset({"surname", "city"})


def industry_faults(library: Library, name: str) -> Iterator[Fault]:
    """What is wrong with an industry that could be read.

    Raises:
        EnvsynthError: its services do not go together.
    """
    industry = library.industry(name)
    services = library.composed(industry)

    def at(*place: str | int) -> str:
        return library.place("industry", name, *place)

    yield from _twice(services, at("services"))
    yield from _without_faults(library, industry, services)
    tables = [table for service in services for table in service.tables]
    try:
        prepared = Prepared([*tables, manual.table()])
    except ValueError as exc:
        yield Fault(at("services"), str(exc))
        return
    try:
        yield from name_faults(library, industry, services, prepared)
        yield from value_faults(library, industry, services)
        yield from _word_faults(library, industry, services)
        yield from _list_faults(library, industry, services)
        yield from _override_faults(library, industry, services)
        scope = _scope(industry, services, prepared)
        by_name = {service.service: service for service in services}
        for number, rule in enumerate(industry.rules):
            for path, message in _rule_faults(rule, scope, by_name):
                yield Fault(at("rules", number, *path), f"rule {rule.id}: {message}")
        yield from _process_faults(library, industry, services)
        yield from _unused_tools(library, industry, services)
    finally:
        prepared.close()


def _twice(services: Sequence[Service], where: str) -> Iterator[Fault]:
    """Things that two services call the same."""
    kinds = {
        "table": [table.name for service in services for table in service.tables],
        "tool": [tool.name for service in services for tool in service.tools],
        "goal": [goal.id for service in services for goal in service.goals],
        "entity": [entity.id for service in services for entity in service.entities],
        "invariant": [invariant.id for service in services for invariant in service.invariants],
    }
    for kind, names in kinds.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield Fault(where, f"two of its services have a {kind} {name}")
    given: dict[str, str] = {}
    for service in services:
        for key in service.settings:
            other = given.setdefault(key, service.service)
            if other != service.service:
                yield Fault(where, f"the setting {key} belongs to {other} and to {service.service}")


def _without_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    """Tools that the industry does without, and that are not there or cannot be done without."""
    known = {tool.name for name in industry.services for tool in library.service(name).tools}
    looking = {entity.look_up[0]: entity.id for service in services for entity in service.entities}
    for number, name in enumerate(industry.without):
        where = library.place("industry", industry.industry, "without", number)
        if name not in known:
            yield Fault(where, f"none of its services has the tool {name}, which it is to do without")
        elif name in looking:
            yield Fault(where, f"it cannot do without {name}, with which the {looking[name]} is looked up")


def _word_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    """Braces that nothing fills."""
    settings = {key for one in parts_of(services, industry) for key in one.settings}
    known = BUILT_IN | settings | industry.words.keys() | industry.values.keys()
    missing: dict[str, str] = {}
    for service in services:
        for place, text, more in service_texts(service):
            for word in _unfilled(text, known | more):
                missing.setdefault(word, library.place("service", service.service, *place))
    where = library.place("industry", industry.industry, "words")
    for word, used in sorted(missing.items()):
        yield Fault(where, f"no word for {{{word}}}, which {used} wants")
    for path, text, more in _own_texts(industry):
        allowed = _OF_COMPANY if path[0] == "company" else known | more
        for word in _unfilled(text, allowed):
            yield Fault(library.place("industry", industry.industry, *path), f"no word for {{{word}}}")
    for word in sorted(industry.words.keys() & settings):
        yield Fault(library.place("industry", industry.industry, "words", word), f"{word} is a setting already")


def _unfilled(text: str, known: Collection[str]) -> list[str]:
    return sorted(word for word in braces(text) if word not in known and word[0].lower() + word[1:] not in known)


def _own_texts(industry: Industry) -> Texts:
    """Texts and SQL of the industry itself."""
    none: frozenset[str] = frozenset()
    yield ("role",), industry.role, none
    yield from ((("company", number), pattern, none) for number, pattern in enumerate(industry.company))
    for number, rule in enumerate(industry.rules):
        place = ("rules", number)
        guard = [rule.enforced[1].sql, rule.enforced[1].error] if rule.enforced else []
        yield from (((*place, "enforced"), text, none) for text in guard)
        yield (*place, "states"), rule.states, none
        yield (*place, "sql"), rule.sql, none
        yield from (((*place, "traps", trap), sql, none) for trap, sql in enumerate(rule.traps))
        for which, goal in enumerate(rule.goals):
            yield from (((*place, "goals", which, *path), text, more) for path, text, more in goal_texts(goal))


def _list_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    where = library.place("industry", industry.industry, "lists")
    for service in services:
        for table, rows in service.rows.items():
            for column, recipe in rows.columns.items():
                which, _, field = (recipe.listed or "").partition(".")
                if not which or which == "holidays":
                    continue
                used = library.place("service", service.service, "rows", table, "columns", column)
                if which not in industry.lists:
                    yield Fault(where, f"there is no list {which}, which {used} wants")
                elif any(field not in entry for entry in industry.lists[which]):
                    spot = library.place("industry", industry.industry, "lists", which)
                    yield Fault(spot, f"an entry has no {field}, which {used} wants")


def _override_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    settings = {key for one in parts_of(services, industry) for key in one.settings}
    filled = {table for service in services for table in service.rows}
    for kind, known in (("settings", settings), ("counts", filled)):
        for key in getattr(industry, kind).keys() - known:
            what = "setting" if kind == "settings" else "table with rows"
            yield Fault(library.place("industry", industry.industry, kind, key), f"there is no {what} {key} to replace")


def _scope(industry: Industry, services: Sequence[Service], prepared: Prepared) -> Surroundings:
    pages = [manual.Page(one.service, "", "") for one in services] + [
        manual.Page(rule.id, "", "") for rule in industry.rules
    ]
    return Surroundings(
        tools={tool.name: tool for one in services for tool in one.tools} | {t.name: t for t in manual.tools(pages)},
        entities={entity.id: entity for one in services for entity in one.entities},
        tables={table.name: table for one in services for table in one.tables},
        pages=frozenset(page.page for page in pages),
        settings=tuple(key for one in parts_of(services, industry) for key in one.settings),
        prepared=prepared,
    )  # fmt: skip


Found = tuple[tuple[str | int, ...], str]


def _rule_faults(rule: Rule, scope: Surroundings, services: Mapping[str, Service]) -> Iterator[Found]:
    for kind in ("trigger", "target"):
        if getattr(rule, kind) not in services:
            yield (kind,), f"its {kind} {getattr(rule, kind)} is no service of this industry"
            return
    if rule.trigger == rule.target:
        yield ("target",), "trigger and target lie in one service"
    yield from _rule_sql_faults(rule, scope, services)
    for key in rule.settings:
        if key not in braces(rule.states):
            yield ("settings", key), f"its statement says nothing of {{{key}}}"
    for number, goal in enumerate(rule.goals):
        for path, message in goal_faults(goal, scope):
            yield ("goals", number, *path), f"goal {goal.id}: {message}"


def _rule_sql_faults(rule: Rule, scope: Surroundings, services: Mapping[str, Service]) -> Iterator[Found]:
    sql = as_names(rule.sql, scope.settings)
    if fault := scope.prepared.fault(sql):
        yield ("sql",), fault
    else:
        read = scope.prepared.tables_read(sql)
        for service in (services[rule.trigger], services[rule.target]):
            if not read & {table.name for table in service.tables}:
                yield ("sql",), f"it reads no table of {service.service}, where its trigger or target lies"
    for number, trap in enumerate(rule.traps):
        if fault := scope.prepared.fault(as_names(trap, scope.settings), effect=True):
            yield ("traps", number), f"traps: {fault}"
    if rule.enforced:
        yield from ((("enforced",), message) for message in _guard_faults(rule, *rule.enforced, scope, services))


def _guard_faults(
    rule: Rule, name: str, guard: Guard, scope: Surroundings, services: Mapping[str, Service]
) -> Iterator[str]:
    tool = next((tool for tool in services[rule.target].tools if tool.name == name), None)
    if tool is None:
        yield f"{rule.target}, where its target lies, has no tool {name}"
        return
    sql = as_names(guard.sql, scope.settings)
    bound = [parameter.name for parameter in tool.parameters]
    if fault := scope.prepared.fault(sql, bound):
        yield fault
    elif not scope.prepared.tables_read(sql, bound) & {table.name for table in services[rule.trigger].tables}:
        yield f"its guard reads no table of {rule.trigger}, where its trigger lies"
    if rule.id not in guard.error:
        yield f"the error of its guard does not name {rule.id}, the page of the manual that states it"


def _process_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    goals: dict[str, Goal] = {goal.id: goal for one in parts_of(services, industry) for goal in one.goals}
    if not industry.processes:
        yield Fault(library.place("industry", industry.industry, "processes"), "it has no process")
    for process, names in industry.processes.items():
        where = library.place("industry", industry.industry, "processes", process)
        if not names:
            yield Fault(where, f"the process {process} has no goal")
        for name in names:
            if name not in goals:
                yield Fault(where, f"the process {process} has a goal {name}, which is none of its services'")


def _unused_tools(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    """Tools that no goal calls and nothing is looked up with."""
    goals = [goal for one in parts_of(services, industry) for goal in one.goals]
    used = {step.tool for goal in goals for _, step in steps_of(goal)}
    used |= {entity.look_up[0] for service in services for entity in service.entities}
    for service in services:
        for tool in service.tools:
            if tool.name not in used:
                where = library.place("service", service.service, "tools", tool.name)
                yield Fault(where, f"no goal of {industry.industry} uses the tool {tool.name}")
