"""Options of a mechanism source, each checked with a message that names the line it stands on."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from envsynth.errors import ConfigError
from envsynth.generators.mechanism.contract import LEVELS, Presentation
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.registry import family_names
from envsynth.generators.mechanism.setter import NEW
from envsynth.models import Model, Source
from envsynth.options import needs_author, read_options
from envsynth.rewriting.levels import LEVELS as VAGUENESS

DEFAULT_LIMIT = 30
"""Tasks of one source that names no limit."""
DEFAULT_NEW_SKINS = 4
"""Skins that a model writes for one source that names no number."""
MAX_LIMIT = 100_000
"""Tasks of one source: all of them are planned before the first is worked on."""


class Settings(Model):
    """What a source line may say after its URI, besides the options every source takes."""

    levels: tuple[int, ...] = LEVELS
    """Difficulties, in turn."""
    presentations: tuple[Presentation, ...] = (Presentation.HIDDEN, Presentation.REVEALED, Presentation.WRITTEN)
    """Each mechanism becomes one task in each of these."""
    skins: tuple[str, ...] = ()
    """Domains that ship, in turn; empty: all of the family or, where a model writes new ones, none."""
    author: Literal["model", "deterministic"] | None = None
    """Who writes: `model` has new skins written; None: a model where one is configured and no skin is named."""
    new_skins: int | None = Field(default=None, ge=1, le=100)
    """How many new ones; None: `DEFAULT_NEW_SKINS`."""
    rewrite: tuple[int, ...] = ()
    """Levels of vagueness to which a model rewrites the instructions, in turn; empty: they stay."""

    @field_validator("levels", "presentations", "skins", "rewrite", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(dict.fromkeys(part.strip() for part in value.split(","))) if isinstance(value, str) else value

    @field_validator("levels")
    @classmethod
    def _known(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if not set(levels) <= set(LEVELS):
            raise ValueError(f"levels are {LEVELS[0]} to {LEVELS[-1]}")
        return levels

    @field_validator("rewrite")
    @classmethod
    def _vague(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        if not set(levels) <= set(VAGUENESS):
            raise ValueError(f"levels of vagueness are {VAGUENESS[0]} to {VAGUENESS[-1]}")
        return levels

    def written_by_model(self, *, configured: bool) -> bool:
        """Whether a model writes new skins, where an author is configured or none is."""
        return self.author == "model" or (self.author is None and configured and not self.skins)


class Wardrobe(NamedTuple):
    """What the leads of a source wear, in turn."""

    skins: tuple[str, ...]
    """Names of skins that ship, and `new-1`, `new-2`, ..."""
    rewrite: tuple[int | None, ...]
    """Levels of vagueness; None: the instruction stays."""


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
    if settings.new_skins is not None and settings.author == "deterministic":
        raise ConfigError(
            "new_skins= needs a model", where=where, cause="author=deterministic", next_step="leave one of them out"
        )
    return settings


def wardrobe_of(source: Source, settings: Settings, *, configured: bool) -> Wardrobe:
    """What the leads of a source wear.

    Args:
        source: the line.
        settings: its settings.
        configured: whether an author model is.

    Raises:
        ConfigError: the line asks for a model, and none is configured.
    """
    model = settings.written_by_model(configured=configured)
    asks = "rewrite=" if settings.rewrite else "author=model" if model else "new_skins="
    if not configured and (model or settings.rewrite or settings.new_skins is not None):
        raise needs_author(asks, source)
    new = settings.new_skins or (DEFAULT_NEW_SKINS if model else 0)
    skins = (*settings.skins, *(f"{NEW}{number}" for number in range(1, new + 1)))
    return Wardrobe(skins or tuple(skins_of(source.location)), settings.rewrite or (None,))
