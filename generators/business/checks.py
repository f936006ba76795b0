"""Everything that can be wrong with blueprints and industries, by file and line, before any world is made."""

from __future__ import annotations

from collections.abc import Iterator

from envsynth.errors import EnvsynthError
from envsynth.generators.business.checks_industry import industry_faults
from envsynth.generators.business.checks_names import shared_names
from envsynth.generators.business.checks_service import service_faults
from envsynth.generators.business.load import Library
from envsynth.generators.business.yamllines import Fault


def first_fault(library: Library, industry: str) -> Fault | None:
    """The first fault of an industry that can be read, or of one of its services; None where it is sound."""
    return next(_of_industry(library, industry), None)


def _of_industry(library: Library, industry: str) -> Iterator[Fault]:
    for name in library.industry(industry).services:
        if name in library.services:
            yield from service_faults(library, name)
    yield from _industry_faults(library, industry)


def _industry_faults(library: Library, industry: str) -> Iterator[Fault]:
    try:
        yield from industry_faults(library, industry)
    except EnvsynthError as error:
        yield Fault(error.where or library.place("industry", industry), f"{error.what} {error.cause}".strip())


def library_faults(library: Library) -> Iterator[Fault]:
    """Faults of all documents: first of files that cannot be read, then of services, industries and what they share."""
    unreadable = list(library.faults())
    yield from unreadable
    bad = {fault.where.rpartition(":")[0] for fault in unreadable}
    for name in library.services:
        if str(library.folder / "blueprints" / f"{name}.yaml") not in bad:
            yield from service_faults(library, name)
    sound = [name for name in library.industries if str(library.folder / "industries" / f"{name}.yaml") not in bad]
    for name in sound:
        yield from _industry_faults(library, name)
    yield from shared_names(library, sound)
