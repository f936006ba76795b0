"""Variant: a solution made from the reference by one deliberate change, wrong (a mutant) or as right as before."""

from __future__ import annotations

from pydantic import Field

from envsynth.models.base import Model


class VariantFile(Model):
    """One file of a variant that differs from the reference's."""

    path: str
    """Relative POSIX path."""
    text: str | None
    """The whole new content; None: the file is removed."""


class Variant(Model):
    """The reference, changed at one place."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.:-]*$")
    """Unique among the variants of a candidate, such as `swap_comparison:pkg-mod.py:31:2`."""
    kind: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """The operator that made it."""
    path: str
    """Where it was made; of several files the first."""
    line: int = Field(ge=0)
    """1-based line in the reference's file; 0: the file as a whole."""
    description: str
    """One line for people: what became what."""
    files: tuple[VariantFile, ...]
    """What to lay over the tree with the reference applied; never empty."""
    equivalent: str = ""
    """Why it provably behaves like the reference; empty where that is not known."""
