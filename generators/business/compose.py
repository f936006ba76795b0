"""A world from an industry, a country and a seed: services merged, filled with rows, and given the industry's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.generators.business import manual
from envsynth.generators.business.blueprint import Entity, Goal, Industry, Rule, Service
from envsynth.generators.business.countries import Country
from envsynth.generators.business.fill import filled_rule, filled_service
from envsynth.generators.business.load import Library
from envsynth.generators.business.rows import Home, fill_service
from envsynth.generators.business.scratch import Scratch
from envsynth.generators.business.words import TRIVIAL, Renamer, Speaker, in_money, renamer
from envsynth.models import Invariant, Table, Tool, World
from envsynth.renaming import Wording, checked_names, names_of, rename_world
from envsynth.seeds import stream

_EPOCH = date(2024, 2, 1)
_SPAN_DAYS = 900


@dataclass(frozen=True)
class Company:
    """A composed world with everything that its tasks are made from."""

    world: World
    """In the industry's names; what an agent plays."""
    neutral: World
    """The same in neutral names, its SQL filled in."""
    industry: Industry
    country: Country
    seed: str
    renamer: Renamer
    """From neutral names to the industry's, and back."""
    speaker: Speaker
    """Fills in words of the industry, settings, `{company}` and the country's words."""
    settings: Mapping[str, int]
    services: tuple[Service, ...]
    """As composed, SQL filled in; their texts and goals as written."""
    goals: Mapping[str, Goal]
    """Of services and rules; `pick`, `near` and `wrong` filled in, texts as written."""
    origins: Mapping[str, str]
    """Service or rule by goal."""
    entities: Mapping[str, Entity]
    trapped: Mapping[str, int]
    """By trap (`service returns, traps 1`): how many rows it put one step away from a violation."""

    @property
    def role(self) -> str:
        """Who the agent is; opens every instruction."""
        return self.speaker.say(self.industry.role)

    @cached_property
    def today(self) -> date:
        """The world's day."""
        return date.fromisoformat(self.neutral.clock[:10])

    def dress(self, statement: str) -> str:
        """A statement in neutral names, with settings in braces, as the world's own."""
        return self.renamer.sql(self.speaker.sql(statement))


def compose(library: Library, industry: Industry, country: Country, seed: str) -> Company:
    """A company's world.

    Args:
        library: has the services of the industry.
        industry: what is composed.
        country: where it is.
        seed: of this world; equal arguments give equal worlds.

    Raises:
        GeneratorError: the documents do not make a world; says what is wrong, and where.
    """
    services = library.composed(industry)
    full = f"{industry.industry}/{country.code}/{seed}"
    today = _today(country, full)
    settings = _settings(services, industry, country, full)
    speaker = _speaker(industry, country, settings, full)
    filled = tuple(filled_service(service, speaker) for service in services)
    rules = tuple(filled_rule(rule, speaker) for rule in industry.rules)
    clock = f"{today.isoformat()}T09:00:00"
    tables = (*(table for service in filled for table in service.tables), manual.table())
    where = f"industry {industry.industry}"
    _once("table", (table.name for table in tables), where)
    holidays: tuple[dict[str, JsonValue], ...] = tuple({"date": d, "name": n} for d, n in country.holidays_near(today))
    lists = {**industry.lists, "holidays": holidays}
    home = Home(full, country, today, lists, industry.counts, speaker.partly)
    pages = _pages(filled, rules, speaker)
    rows, trapped = _rows(tables, filled, rules, home, clock)
    rows["policies"] = tuple((page.page, page.title, page.body) for page in pages)
    name = f"{industry.industry}-{country.code}-{seed}".replace("_", "-").replace("/", "-").lower()
    tools = _tools(filled, rules, pages)
    _once("tool", (tool.name for tool in tools), where)
    neutral = World(
        id=f"{name}-neutral", clock=clock, tables=tables, rows=rows, tools=tools,
        invariants=_invariants(filled, rules, clock),
    )  # fmt: skip
    own = _renamer(neutral, industry, country, [page.page for page in pages])
    goals, origins = _goals(filled, rules, where)
    return Company(
        world=_renamed(neutral, own, country, name), neutral=neutral, industry=industry, country=country, seed=seed,
        renamer=own, speaker=speaker, settings=settings, services=filled, goals=goals, origins=origins,
        entities={entity.id: entity for service in filled for entity in service.entities}, trapped=trapped,
    )  # fmt: skip


def _today(country: Country, seed: str) -> date:
    """A working day."""
    day = _EPOCH + timedelta(stream(seed, "today").randrange(_SPAN_DAYS))
    while not country.is_working(day):
        day += timedelta(1)
    return day


def _settings(services: Sequence[Service], industry: Industry, country: Country, seed: str) -> dict[str, int]:
    """One number a setting; those that end in `cents` are amounts in about US cents, scaled as prices are."""
    given: dict[str, tuple[int, ...]] = {}
    for found in (*(one.settings for one in services), *(one.settings for one in industry.rules)):
        given.update(found)
    given.update(industry.settings)
    drawn = {name: stream(seed, f"setting/{name}").choice(values) for name, values in sorted(given.items())}
    return {name: country.amount(value) if name.endswith("cents") else value for name, value in drawn.items()}


def _speaker(industry: Industry, country: Country, settings: Mapping[str, int], seed: str) -> Speaker:
    rng = stream(seed, "company")
    places = {"surname": rng.choice(country.pool("last_name")), "city": rng.choice(country.pool("city"))}
    where = f"industry {industry.industry}"
    company = Speaker(places, country, where).say(rng.choice(industry.company))
    given: dict[str, JsonValue] = {
        "country": country.name, "currency": country.currency, "cents": country.minor, "company": company,
        "tax_percent": f"{country.tax:g}", "tax_permille": country.tax_permille, "weekend_days": country.weekend_days,
    }  # fmt: skip
    return Speaker({**given, **industry.values, **industry.words, **settings}, country, where)


def _pages(services: Sequence[Service], rules: Sequence[Rule], speaker: Speaker) -> list[manual.Page]:
    found = [manual.Page(service.service, service.title, _flat(service.page)) for service in services]
    for rule in rules:
        title = rule.id.replace("_", " ")
        found.append(manual.Page(rule.id, title[:1].upper() + title[1:], _flat(rule.states)))
    _once("page", (page.page for page in found), speaker.say("the manual of {company}"))
    return found


def _flat(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _rows(
    tables: Sequence[Table], services: Sequence[Service], rules: Sequence[Rule], home: Home, clock: str
) -> tuple[dict[str, tuple[tuple[JsonValue, ...], ...]], dict[str, int]]:
    """All rows, and by trap how many it changed.

    Service by service rows are drawn, derived and put one step away from violations; traps of rules come at the end.
    """
    scratch = Scratch(tables, clock)
    trapped: dict[str, int] = {}
    try:
        for service in services:
            fill_service(scratch, service, home)
            for number, statement in enumerate(service.derive, 1):
                scratch.change(statement, f"service {service.service}, derive {number}")
            trapped |= _trapped(scratch, service.traps, f"service {service.service}")
        for rule in rules:
            trapped |= _trapped(scratch, rule.traps, f"rule {rule.id}")
        return {table.name: tuple(scratch.values(table.name)) for table in tables}, trapped
    finally:
        scratch.close()


def _trapped(scratch: Scratch, statements: Sequence[str], who: str) -> dict[str, int]:
    places = {f"{who}, traps {number}": statement for number, statement in enumerate(statements, 1)}
    return {place: scratch.change(statement, place) for place, statement in places.items()}


def _tools(services: Sequence[Service], rules: Sequence[Rule], pages: Sequence[manual.Page]) -> tuple[Tool, ...]:
    found = {tool.name: tool for service in services for tool in service.tools}
    for rule in rules:
        if rule.enforced:
            name, guard = rule.enforced
            if name not in found:
                raise GeneratorError(f"there is no tool {name}", where=f"rule {rule.id}", next_step="name a tool")
            found[name] = found[name].model_copy(update={"guards": (*found[name].guards, guard)})
    return (*(found[tool.name] for service in services for tool in service.tools), *manual.tools(pages))


def _invariants(services: Sequence[Service], rules: Sequence[Rule], clock: str) -> tuple[Invariant, ...]:
    """Over the final state, where nothing binds `:now`: the clock stands in its place."""
    found = [invariant for service in services for invariant in service.invariants]
    found += [
        Invariant(id=rule.id, sql=rule.sql, enforced=rule.enforced is not None, stated_in=f"policies/{rule.id}")
        for rule in rules
    ]
    return tuple(one.model_copy(update={"sql": one.sql.replace(":now", f"'{clock}'")}) for one in found)


def _renamer(neutral: World, industry: Industry, country: Country, pages: Sequence[str]) -> Renamer:
    names = in_money(industry.names, country)
    own = {word: names.get(word, word) for word in TRIVIAL} | names
    needed = set(names_of(neutral)) | set(names)
    checked = checked_names(needed, own, who=f"the industry {industry.industry}", where=neutral.id)
    return renamer(neutral, checked, industry.values, {page: checked.get(page, page) for page in pages})


def _renamed(neutral: World, own: Renamer, country: Country, name: str) -> World:
    def page(stated_in: str) -> str:
        table, slash, rest = stated_in.partition("/")
        return table + slash + own.page(rest)

    rows = tuple((own.page(str(row[0])), *row[1:]) for row in neutral.rows["policies"])
    tools = tuple(
        tool if tool.name != "read_page" else tool.model_copy(
            update={"parameters": tuple(
                one.model_copy(update={"enum": tuple(sorted(own.page(str(page)) for page in one.enum))})
                for one in tool.parameters
            )}
        )
        for tool in neutral.tools
    )  # fmt: skip
    invariants = tuple(
        found.model_copy(update={"stated_in": page(found.stated_in)}) for found in neutral.invariants
    )  # fmt: skip
    world = neutral.model_copy(
        update={"rows": {**neutral.rows, "policies": rows}, "tools": tools, "invariants": invariants}
    )
    wording = Wording(
        rename=own.name, sql=own.sql, say=str, value=own.value,
        unit=lambda unit: country.minor if unit == "cents" else unit,
    )  # fmt: skip
    return rename_world(world, wording, name)


def _goals(services: Sequence[Service], rules: Sequence[Rule], where: str) -> tuple[dict[str, Goal], dict[str, str]]:
    pairs = [(service.service, goal) for service in services for goal in service.goals]
    pairs += [(rule.id, goal) for rule in rules for goal in rule.goals]
    _once("goal", (goal.id for _, goal in pairs), where)
    return {goal.id: goal for _, goal in pairs}, {goal.id: origin for origin, goal in pairs}


def _once(what: str, names: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise GeneratorError(f"two {what}s are called {name}", where=where, next_step="rename one of them")
        seen.add(name)
