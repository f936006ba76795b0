"""Whether an industry has a name of its own for everything, and shares none with another."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from envsynth.generators.business import manual
from envsynth.generators.business.blueprint import Industry, Service, parts_of
from envsynth.generators.business.load import Library
from envsynth.generators.business.prepared import Prepared
from envsynth.generators.business.words import TRIVIAL, as_names
from envsynth.generators.business.yamllines import Fault
from envsynth.models.world import RESERVED_TABLES
from envsynth.renaming import same_names
from envsynth.runtime.sealed import known_functions
from envsynth.runtime.worlds.authority import DATE_FUNCTIONS

MAX_SHARED = 0.35
"""Largest share of an industry's column names that another industry, or the blueprints, may have too."""
_WORD = re.compile(r"'(?:[^']|'')*'|[a-z_][a-z0-9_]*", re.IGNORECASE)


def name_faults(
    library: Library, industry: Industry, services: Sequence[Service], prepared: Prepared
) -> Iterator[Fault]:
    """Names that are missing, are nothing's, or mean two things."""
    used = _used(library, services, prepared)
    names, where = industry.names, library.place("industry", industry.industry, "names")
    for word, place in used.items():
        if word not in names and word not in TRIVIAL:
            yield Fault(where, f"no name for {word}, which {place} has")
    known = used.keys() | {key for one in parts_of(services, industry) for key in one.settings} | TRIVIAL
    aliases = _words(services, industry)
    for word, own in names.items():
        spot = library.place("industry", industry.industry, "names", word)
        if word not in known and word not in aliases:
            yield Fault(spot, f"{word} is the name of nothing in its services")
        if reserved(own) or own in RESERVED_TABLES:
            yield Fault(spot, f"{own} is a word of SQL or of grading")
    every = {word: names.get(word, word) for word in sorted({*used, *names})}
    for one, other in same_names(every):
        spot = library.place("industry", industry.industry, "names", other)
        yield Fault(spot, f"{one} and {other} are both called {every[other]}")


def _used(library: Library, services: Sequence[Service], prepared: Prepared) -> dict[str, str]:
    used: dict[str, str] = {}
    for service in services:
        settings = [key for one in services for key in one.settings]
        for word, place in _of_service(service, prepared, settings):
            used.setdefault(word, library.place("service", service.service, *place))
    for word in manual.NAMES:
        used.setdefault(word, "the manual")
    return used


def _of_service(
    service: Service, prepared: Prepared, settings: Sequence[str]
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for table in service.tables:
        yield table.name, ("tables", table.name)
        yield from ((column.name, ("tables", table.name, "columns", column.name)) for column in table.columns)
    for tool in service.tools:
        yield tool.name, ("tools", tool.name)
        parameters = (*tool.parameters, *(tool.each.fields if tool.each else ()))
        yield from ((one.name, ("tools", tool.name, "parameters")) for one in parameters)
        bound = [one.name for one in tool.parameters]
        shown = prepared.columns(as_names(tool.result, settings), bound) if tool.shape != "json" else []
        yield from ((name, ("tools", tool.name, "result")) for name in shown if name.isidentifier())


def _words(services: Sequence[Service], industry: Industry) -> set[str]:
    """Words of any statement: an alias inside a query may have a name too."""
    found: set[str] = set()
    for one in services:
        for tool in one.tools:
            for sql in (*(guard.sql for guard in tool.guards), *tool.effects, tool.result):
                found.update(word.lower() for word in _WORD.findall(sql) if not word.startswith("'"))
    return found


@cache
def _sql_words() -> frozenset[str]:
    lines = Path(__file__).with_name("sql_words.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def reserved(word: str) -> bool:
    """Whether a word is SQL's own, so that it cannot be replaced in statements, or stand there unquoted."""
    return word in _sql_words() or word in known_functions() or word in DATE_FUNCTIONS


def value_faults(library: Library, industry: Industry, services: Sequence[Service]) -> Iterator[Fault]:
    """Enumerated words without a word of the industry, and two that would be the same."""
    values, where = industry.values, library.place("industry", industry.industry, "values")
    missing: dict[str, str] = {}
    for service in services:
        for place, owner, words in _enumerated(service):
            spot = library.place("service", service.service, *place)
            for word in words:
                if word not in values:
                    missing.setdefault(word, spot)
            for one, other in same_names({word: values.get(word, word) for word in words}):
                yield Fault(where, f"{one} and {other} of {owner} are both called {values.get(other, other)}")
    for word, spot in missing.items():
        yield Fault(where, f"no word for {word!r}, which {spot} has")


def _enumerated(service: Service) -> Iterator[tuple[tuple[str | int, ...], str, list[str]]]:
    for table in service.tables:
        for column in table.columns:
            if words := [word for word in column.enum if isinstance(word, str)]:
                yield ("tables", table.name, "columns", column.name), f"{table.name}.{column.name}", words
    for tool in service.tools:
        for parameter in (*tool.parameters, *(tool.each.fields if tool.each else ())):
            if words := [word for word in parameter.enum if isinstance(word, str)]:
                yield ("tools", tool.name, "parameters"), f"{tool.name}'s {parameter.name}", words


def shared_names(library: Library, industries: Sequence[str]) -> Iterator[Fault]:
    """Tools and tables that two industries, or an industry and the blueprints, call the same, and too many columns."""
    neutral = {name: _kinds(library, name) for name in industries}
    own = {
        name: {kind: {library.industry(name).names.get(word, word) for word in words} - TRIVIAL
               for kind, words in kinds.items()}
        for name, kinds in neutral.items()
    }  # fmt: skip
    for place, name in enumerate(industries):
        for kind in ("tool", "table"):
            for word in sorted(neutral[name][kind] & own[name][kind]):
                spot = library.place("industry", name, "names", word)
                yield Fault(spot, f"the {kind} {word} has the blueprint's name")
        yield from _too_many(library, name, own[name]["column"], neutral[name]["column"], "the blueprints")
        for other in industries[:place]:
            yield from _too_many(library, name, own[name]["column"], own[other]["column"], other)
    for kind in ("tool", "table"):
        yield from _borne_twice(library, kind, {name: kinds[kind] for name, kinds in own.items()})


def _borne_twice(library: Library, kind: str, own: Mapping[str, set[str]]) -> Iterator[Fault]:
    bearers: dict[str, list[str]] = defaultdict(list)
    for name, words in own.items():
        for word in words:
            bearers[word].append(name)
    for word, names in sorted(bearers.items()):
        if len(names) > 1:
            spot = library.place("industry", names[-1], "names")
            yield Fault(spot, f"the {kind} {word} is called so in {' and '.join(names)}")


def _kinds(library: Library, name: str) -> dict[str, set[str]]:
    """Neutral names of an industry by kind."""
    industry = library.industry(name)
    services = [library.service(one) for one in industry.services if one in library.services]
    tables = [table for service in services for table in service.tables]
    return {
        "tool": {tool.name for service in services for tool in service.tools} - {*industry.without}
        | {"list_pages", "read_page"},
        "table": {table.name for table in tables} | {"policies"},
        "column": {column.name for table in tables for column in table.columns},
    }


def _too_many(library: Library, name: str, own: set[str], others: set[str], who: str) -> Iterator[Fault]:
    shared = sorted((own & others) - TRIVIAL)
    if len(shared) > MAX_SHARED * len(own):
        some = ", ".join(shared[:8])
        spot = library.place("industry", name, "names")
        yield Fault(spot, f"{len(shared)} of {len(own)} columns have the names of {who}: {some} …")
