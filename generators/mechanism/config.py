"""Options of a mechanism source, each checked with a message that names the line it stands on."""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import field_validator

from envsynth.errors import ConfigError
from envsynth.generators.mechanism.contract import LEVELS, Presentation
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.registry import family_names
from envsynth.models import Model, Source
from envsynth.options import read_options

DEFAULT_LIMIT = 30
"""Tasks of one source that names no limit."""
MAX_LIMIT = 100_000
"""Tasks of one source: all of them are planned before the first is worked on."""


class Settings(Model):
    """What a source line may say after its URI, besides the options every source takes."""

    levels: tuple[int, ...] = LEVELS
    """Difficulties, in turn."""
    presentations: tuple[Presentation, ...] = (Presentation.HIDDEN, Presentation.REVEALED, Presentation.WRITTEN)
    """Each mechanism becomes one task in each of these."""
    skins: tuple[str, ...] = ()
    """Domains, in turn; empty: all of the family."""

    @field_validator("levels", "presentations", "skins", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(dict.fromkeys(part.strip() for part in value.split(","))) if isinstance(value, str) else value

    @field_validator("levels")
    @classmethod
    def _known(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if not set(levels) <= set(LEVELS):
            raise ValueError(f"levels are {LEVELS[0]} to {LEVELS[-1]}")
        return levels


def read_settings(source: Source) -> Settings:
    """The settings of a source line, with the skins it means.

    Raises:
        ConfigError: the family is unknown, or an option is unknown or has a bad value.
    """
    where, name = str(source.origin), source.location
    if name not in family_names():
        close = get_close_matches(name, family_names(), n=3, cutoff=0.5)
        right = " or ".join(close) if close else f"one of {', '.join(family_names())}"
        raise ConfigError(f"there is no mechanism {name!r}", where=where, next_step=f"use mechanism:NAME with {right}")
    if source.options.strategies:
        raise ConfigError("a mechanism has no strategies", where=where, next_step="use presentations=hidden,written")
    settings = read_options(source, Settings, "a mechanism")
    known = tuple(skins_of(name))
    for skin in settings.skins:
        if skin not in known:
            raise ConfigError(f"{name} has no skin {skin!r}", where=where, next_step=f"use one of {', '.join(known)}")
    if (source.options.limit or 0) > MAX_LIMIT:
        raise ConfigError(f"limit={source.options.limit} is more than {MAX_LIMIT}", where=where, next_step="use seeds")
    return settings if settings.skins else settings.model_copy(update={"skins": known})
