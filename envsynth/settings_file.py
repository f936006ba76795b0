"""Reading a file of settings, TOML or JSON."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from pydantic import JsonValue

from envsynth.errors import ConfigError

__all__ = ["DEFAULT_FILE", "read_settings"]

DEFAULT_FILE = Path("envsynth.toml")


def read_settings(file: Path) -> dict[str, JsonValue]:
    """The document of a configuration file, TOML or JSON.

    Raises:
        ConfigError: it cannot be read, or is no table.
    """
    try:
        text = file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError("there is no such configuration file", where=str(file)) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError("the configuration file cannot be read", where=str(file), cause=str(exc)) from exc
    try:
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as exc:
        kind = "JSON" if file.suffix == ".json" else "TOML"
        raise ConfigError(f"the configuration file is not {kind}", where=str(file), cause=str(exc)) from exc
    if not isinstance(document, dict):
        raise ConfigError("the configuration file holds no table of settings", where=str(file))
    return document
