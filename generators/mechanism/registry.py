"""The families that are there: every module of `families` that exports one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from envsynth.errors import ConfigError
from envsynth.generators.mechanism.contract import Family

_FOLDER = Path(__file__).with_name("families")


@cache
def family_names() -> tuple[str, ...]:
    """Names of all families, sorted; none is imported."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_")))


@cache
def family(name: str) -> Family[Any, Any]:
    """A family by name, made once a process.

    Raises:
        ConfigError: there is none.
    """
    if name not in family_names():
        raise ConfigError(f"there is no mechanism {name!r}", next_step=f"use one of {', '.join(family_names())}")
    module = import_module(f"envsynth.generators.mechanism.families.{name}")
    return next(found() for found in _exported(module).values())


def _exported(module: Any) -> Mapping[str, type[Family[Any, Any]]]:
    return {
        name: found
        for name, found in vars(module).items()
        if inspect.isclass(found) and issubclass(found, Family) and found.__module__ == module.__name__
    }
