"""Wrong variants of a reference solution: what its tests should notice."""

from __future__ import annotations

from envsynth.languages.python.mutants.generate import mutants

__all__ = ["mutants"]
