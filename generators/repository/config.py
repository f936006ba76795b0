"""Options of a repository source, each checked with a message that names the line it stands on."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from envsynth.errors import ConfigError
from envsynth.models import Model, Source, SourceKind, digest_of
from envsynth.options import read_options

STRATEGIES = ("history", "lm_modify", "lm_rewrite")
DEFAULT_STRATEGIES = ("history",)
DEFAULT_LIMIT = 100
Level = Annotated[int, Field(ge=0, le=3)]


class Settings(Model):
    """What a source line may say after its URI, besides the options every source takes."""

    tests: tuple[str, ...] = ()
    """Relative paths the runner collects from; empty: what the project's own settings say."""
    commits: int = Field(default=1000, ge=1, le=1_000_000)
    """Only the newest so many commits are scanned."""
    since: date | None = None
    """Commits before this day are not followed."""
    max_files: int = Field(default=10, ge=1)
    """Source files that a commit may touch."""
    max_lines: int = Field(default=500, ge=1)
    """Source lines that a commit may add and remove together."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds a host may take to answer its first question."""
    test_timeout: float | None = Field(default=None, gt=0)
    """Seconds for one run of the whole suite; None: the language's default."""
    recipe: Path | None = None
    """JSON file with the recipe of the environment, as a repair by a model keeps it; None: the project's own
    requirements, and repair where they do not do."""
    author: Literal["model", "deterministic"] | None = None
    """Who writes instructions; None: the author role's model where there is one."""
    vagueness: tuple[Level, ...] = Field(default=(1,), min_length=1)
    """How much the instructions of a model say, one of these for each lead; see `vagueness.py`."""
    rewrite: tuple[Level, ...] = ()
    """Levels of vagueness to which a model rewrites deterministic instructions, one of these for each lead; empty: they
    stay."""

    @field_validator("tests", mode="before")
    @classmethod
    def _paths(cls, value: object) -> object:
        paths = tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value
        if isinstance(paths, tuple):
            for path in paths:
                if not path or path.startswith(("/", "-")) or ".." in str(path).split("/"):
                    raise ValueError("must be relative paths inside the repository, separated by commas")
        return paths

    @field_validator("recipe")
    @classmethod
    def _is_there(cls, recipe: Path | None) -> Path | None:
        if recipe is not None and not recipe.is_file():
            raise ValueError("there is no such file; name it from the working folder, or from the root")
        return recipe

    @field_validator("vagueness", "rewrite", mode="before")
    @classmethod
    def _levels(cls, value: object) -> object:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if isinstance(parts, list) and (not all(part in ("0", "1", "2", "3") for part in parts)):
            raise ValueError("must be levels from 0 (all is told) to 3 (a user's report), separated by commas")
        return tuple(int(part) for part in parts) if isinstance(parts, list) else parts

    def work_digest(self, *versions: str) -> str:
        """Digest of what changes the outcome of one lead; how many leads there are is not part of it."""
        recipe = [] if self.recipe is None else [self.recipe.read_text("utf-8", "replace")]
        return digest_of([self.model_dump(mode="json", include={"tests", "test_timeout"}), *versions, *recipe])


def read_settings(source: Source) -> Settings:
    """The settings of a source line.

    Raises:
        ConfigError: an option is unknown or has a bad value, or a strategy does not exist.
    """
    where = str(source.origin)
    if source.kind is not SourceKind.GIT:
        raise ConfigError(
            "a registry package has no history", where=where, cause=f"{source.uri} gives source only",
            next_step="name the project's git repository instead",
        )  # fmt: skip
    for strategy in source.options.strategies:
        if strategy not in STRATEGIES:
            raise ConfigError(
                f"no strategy {strategy!r} for repositories", where=where, next_step=f"use {', '.join(STRATEGIES)}"
            )
    settings = read_options(source, Settings, "a repository")
    if settings.rewrite and settings.author != "deterministic":
        raise ConfigError(
            "rewrite= is for instructions that are not a model's already", where=where,
            next_step="add author=deterministic, or use vagueness= instead",
        )  # fmt: skip
    return settings
