"""Levels of vagueness, in words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["LEVELS", "level_text"]

LEVELS = (0, 1, 2, 3)
"""0 ids, 1 names, 2 descriptions by relation and time, 3 goals whose parameters follow from policy."""


def level_text(level: int) -> str:
    """What a level means, as a writer is told."""
    return _texts()[str(level)].strip()


@cache
def _texts() -> Mapping[str, str]:
    found: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("levels.toml").read_text("utf-8"))["levels"]
    return found
