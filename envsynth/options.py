"""Options of one source line, read into a generator's typed settings."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from envsynth.errors import ConfigError
from envsynth.models import Model, Source

__all__ = ["needs_author", "read_options"]

S = TypeVar("S", bound=Model)


def read_options(source: Source, settings: type[S], what: str) -> S:
    """The further `key=value` options of a source, checked.

    Args:
        source: as it was parsed.
        settings: a field for each option.
        what: what the source is, for messages: `a repository`.

    Raises:
        ConfigError: an option is unknown or has a bad value; names the line and what would be right.
    """
    where, given = str(source.origin), dict(source.extra)
    for key in given:
        if key not in settings.model_fields:
            raise ConfigError(
                f"unknown option {key!r} for {what}", where=where,
                next_step=f"use one of {', '.join(sorted(settings.model_fields))}",
            )  # fmt: skip
    try:
        return settings.model_validate(given)
    except ValidationError as exc:
        first = exc.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else "option"
        raise ConfigError(
            f"bad value {given.get(key, '')!r} for {key!r}", where=where,
            cause=first["msg"].removeprefix("Value error, "), next_step=f"correct {key}= on that line",
        ) from None  # fmt: skip


def needs_author(what: str, source: Source, *, required: bool = False) -> ConfigError:
    """The error where a line asks for a model to write, and none is configured.

    Args:
        what: what of it asks: `author=model`.
        source: whose line it is.
        required: whether it cannot be left out of the line.
    """
    return ConfigError(
        f"{what} needs an author model, and none is configured", where=str(source.origin),
        next_step="name one with --llm MODEL or under [llm.author] of envsynth.toml"
        + ("" if required else ", or leave the option out"),
    )  # fmt: skip
