"""Options of a scenario source, each checked with a message that names the line it stands on."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from envsynth.errors import ConfigError
from envsynth.generators.business.blueprint import VAGUENESS, Industry
from envsynth.generators.business.countries import countries, country
from envsynth.generators.business.load import Library
from envsynth.models import Model, Source
from envsynth.options import needs_author, read_options
from envsynth.protocols import Context

DEFAULT_LIMIT = 30
"""Tasks of one source that names no limit."""
LEVELS = (1, 2, 3, 4, 5)
FREE = "free"
"""The location of a source that names no industry."""


class Wishes(Model):
    """What every scenario's source line may say after its URI, besides the options every source takes."""

    author: Literal["model", "deterministic"] | None = None
    """Who writes worlds and tasks; None: the author role's model where there is one."""
    corpus: str = ""
    """Folder of documents: each world that a model writes comes from a passage of one. Empty: none."""
    persona: str = ""
    """Name of a persona that ships here, or words with underscores; for worlds that a model writes."""
    levels: tuple[int, ...] = LEVELS
    """Difficulties, in turn."""
    vagueness: tuple[int, ...] = VAGUENESS
    """How the instruction names things, in turn."""
    tasks: int = Field(default=5, ge=1, le=1000)
    """Tasks of one world; the next one is another company, in another country where it has one."""

    @field_validator("countries", "levels", "vagueness", "rewrite", mode="before", check_fields=False)
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(dict.fromkeys(part.strip() for part in value.split(","))) if isinstance(value, str) else value

    @field_validator("levels", "vagueness", "rewrite", check_fields=False)
    @classmethod
    def _known(cls, numbers: tuple[int, ...], info: object) -> tuple[int, ...]:
        known = LEVELS if getattr(info, "field_name", "") == "levels" else VAGUENESS
        if not numbers or not set(numbers) <= set(known):
            raise ValueError(f"they are {known[0]} to {known[-1]}")
        return numbers


class Settings(Wishes):
    """What a line of `scenario:INDUSTRY` may say."""

    countries: tuple[str, ...] = ()
    """ISO codes, in turn; empty: all, in an order that depends on the seed."""
    rewrite: tuple[int, ...] = ()
    """Levels of vagueness to which a model rewrites the instructions of composed tasks, in turn; empty: they stay."""


class FreeSettings(Wishes):
    """What a line of `scenario:free` may say."""

    brief: str = ""
    """What worlds are to be about: words with underscores, or a file's path. Empty: anything."""


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
    _fits(settings, where)
    return Scenario(industry, (process,) if process else tuple(industry.processes), settings)


def is_free(source: Source) -> bool:
    """Whether a source is `scenario:free`: no industry, everything is written by a model."""
    return source.location.partition("/")[0] == FREE


def read_free(source: Source) -> FreeSettings:
    """The settings of a line of `scenario:free`.

    Raises:
        ConfigError: an option is unknown or has a bad value.
    """
    where = str(source.origin)
    if source.location != FREE:
        raise ConfigError("scenario:free has no processes", where=where, next_step="write scenario:free brief=WORDS")
    if source.options.strategies:
        raise ConfigError("a scenario has no strategies", where=where, next_step="use levels=1,2 or vagueness=0,1")
    settings = read_options(source, FreeSettings, "scenario:free")
    if settings.author == "deterministic":
        raise ConfigError(
            "scenario:free is written by a model", where=where, cause="author=deterministic",
            next_step="leave author= out, or use scenario:INDUSTRY",
        )  # fmt: skip
    return settings


def _fits(settings: Settings, where: str) -> None:
    given = [name for name in ("corpus", "persona") if getattr(settings, name)]
    if given and settings.author == "deterministic":
        raise ConfigError(
            f"{given[0]}= is for worlds that a model writes", where=where, cause="author=deterministic",
            next_step="leave one of them out",
        )  # fmt: skip
    if settings.rewrite and settings.author != "deterministic":
        raise ConfigError(
            "rewrite= is for tasks that are composed", where=where, cause="a model may write this line's worlds",
            next_step="add author=deterministic, or leave rewrite= out",
        )  # fmt: skip


def rewrites(settings: Settings, context: Context, source: Source) -> tuple[int | None, ...]:
    """Levels to which instructions are rewritten, in turn; None: they stay.

    Raises:
        ConfigError: there are some, and no author model is configured.
    """
    if settings.rewrite and context.model("author") is None:
        raise needs_author("rewrite=", source)
    return settings.rewrite or (None,)


def by_model(settings: Wishes, context: Context, source: Source) -> bool:
    """Whether a source's worlds are written by a model.

    Raises:
        ConfigError: they have to be, and none is configured.
    """
    if settings.author == "deterministic":
        return False
    if context.model("author") is not None:
        return True
    asks = "scenario:free" if is_free(source) else next(
        (f"{name}=" for name in ("corpus", "persona") if getattr(settings, name)),
        "author=model" if settings.author == "model" else "",
    )  # fmt: skip
    if not asks:
        return False
    raise needs_author(asks, source, required=is_free(source))


def every_country() -> tuple[str, ...]:
    """Codes of all countries."""
    return tuple(countries())
