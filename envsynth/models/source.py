"""Source: where tasks come from."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from envsynth.models.base import Model


class SourceKind(StrEnum):
    """What kind of URI a source is."""

    GIT = "git"
    PYPI = "pypi"
    SCENARIO = "scenario"
    MECHANISM = "mechanism"


class Origin(Model):
    """Where a source was written down, for messages."""

    file: str
    """The list's path, or `--source` for one given on the command line."""
    line: int = Field(ge=1)
    """1-based line number."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SourceOptions(Model):
    """Options that every source takes."""

    limit: int | None = Field(default=None, ge=1)
    """At most this many leads are developed; None: the generator's default."""
    seed: int = Field(default=0, ge=0)
    """Seed of every random choice for this source."""
    strategies: tuple[str, ...] = ()
    """Names of the generator's strategies; empty: its defaults."""
    trusted: bool = False
    """Whether its code may run without isolation where no sandbox works."""


class Source(Model):
    """A parsed URI with options, pinned to a revision once it was resolved."""

    uri: str
    """As written, without revision."""
    kind: SourceKind
    location: str
    """What the generator opens: a clone URL, an absolute path, `name==version`, `industry/process`, a family."""
    revision: str | None = None
    """What was asked for after `@`; None: the default branch's head."""
    options: SourceOptions = SourceOptions()
    extra: tuple[tuple[str, str], ...] = ()
    """Further `key=value` options, checked by the generator."""
    origin: Origin

    @property
    def generator(self) -> str:
        """Name of the generator that reads this kind of source."""
        return {
            SourceKind.GIT: "repository", SourceKind.PYPI: "repository",
            SourceKind.SCENARIO: "business", SourceKind.MECHANISM: "mechanism",
        }[self.kind]  # fmt: skip
