"""Options of a scenario source, each checked with a message that names the line it stands on."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field, field_validator

from envsynth.errors import ConfigError
from envsynth.generators.business.blueprint import VAGUENESS, Industry
from envsynth.generators.business.countries import countries, country
from envsynth.generators.business.load import Library
from envsynth.models import Model, Source
from envsynth.options import read_options

DEFAULT_LIMIT = 30
"""Tasks of one source that names no limit."""
LEVELS = (1, 2, 3, 4, 5)


class Settings(Model):
    """What a source line may say after its URI, besides the options every source takes."""

    countries: tuple[str, ...] = ()
    """ISO codes, in turn; empty: all, in an order that depends on the seed."""
    levels: tuple[int, ...] = LEVELS
    """Difficulties, in turn."""
    vagueness: tuple[int, ...] = VAGUENESS
    """How the instruction names things, in turn."""
    tasks: int = Field(default=5, ge=1, le=1000)
    """Tasks of one world; the next one is another company in another country."""

    @field_validator("countries", "levels", "vagueness", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(dict.fromkeys(part.strip() for part in value.split(","))) if isinstance(value, str) else value

    @field_validator("levels", "vagueness")
    @classmethod
    def _known(cls, numbers: tuple[int, ...], info: object) -> tuple[int, ...]:
        known = LEVELS if getattr(info, "field_name", "") == "levels" else VAGUENESS
        if not numbers or not set(numbers) <= set(known):
            raise ValueError(f"they are {known[0]} to {known[-1]}")
        return numbers


class Scenario(NamedTuple):
    """What a source line asks for."""

    industry: Industry
    processes: tuple[str, ...]
    """In turn."""
    settings: Settings


def read_scenario(source: Source, library: Library) -> Scenario:
    """The industry, processes and settings of a source line.

    Raises:
        ConfigError: something of it is unknown, or has a bad value.
        GeneratorError: the industry's own documents are not as they should be.
    """
    where = str(source.origin)
    name, _, process = source.location.partition("/")
    industry = library.industry(name, where=where)
    if process:
        library.process(industry, process, where=where)
    if source.options.strategies:
        raise ConfigError("a scenario has no strategies", where=where, next_step="use levels=1,2 or vagueness=0,1")
    settings = read_options(source, Settings, "a scenario")
    for code in settings.countries:
        country(code, where=where)
    return Scenario(industry, (process,) if process else tuple(industry.processes), settings)


def every_country() -> tuple[str, ...]:
    """Codes of all countries."""
    return tuple(countries())
