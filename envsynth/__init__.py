"""envsynth: tool environments with graders you can trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from envsynth.admission import admit
    from envsynth.catalog import Catalog
    from envsynth.errors import EnvsynthError
    from envsynth.pipeline import build
    from envsynth.sources import read_sources

_PUBLIC = {
    "build": "envsynth.pipeline",
    "admit": "envsynth.admission",
    "Catalog": "envsynth.catalog",
    "EnvsynthError": "envsynth.errors",
    "read_sources": "envsynth.sources",
}

__all__ = ["Catalog", "EnvsynthError", "admit", "build", "read_sources"]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'envsynth' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
