"""Variants of a reference solution that behave as it does: what its tests should accept."""

from __future__ import annotations

from envsynth.languages.python.rewrites.generate import rewrites

__all__ = ["rewrites"]
