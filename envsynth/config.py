"""Configuration of a build: command line over `envsynth.toml` over defaults, and the resolved record of each run."""

from __future__ import annotations

import difflib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from envsynth.cache import default_cache_dir
from envsynth.errors import ConfigError, boundary
from envsynth.llm.ledger import ledger_path
from envsynth.llm.resolve import llm_settings
from envsynth.llm.settings import LlmSettings
from envsynth.models.base import Model
from envsynth.models.source import SourceOptions
from envsynth.settings_file import DEFAULT_FILE, read_settings

__all__ = ["DEFAULT_CATALOG", "BuildConfig", "load_config", "resolved_path", "write_resolved"]

DEFAULT_CATALOG = Path("catalogs/envsynth.duckdb")


class BuildConfig(Model):
    """Everything a build is told. Paths are absolute once `load_config` made it."""

    sources: tuple[str, ...] = ()
    """Source lists and URIs, each as on the command line: `URI key=value ...`."""
    root: Path = Path()
    """Folder that relative paths in `sources` are relative to."""
    catalog: Path = DEFAULT_CATALOG
    """DuckDB file; made where there is none."""
    out: Path = Path("outputs")
    """Folder under which packs are written."""
    format: str = Field(default="gymnasium", min_length=1)
    """Exporter of the pack."""
    seed: int = Field(default=0, ge=0)
    """Seed for sources that do not name their own."""
    limit: int | None = Field(default=None, ge=1)
    """At most this many leads a source, for sources that do not name their own limit."""
    jobs: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    """Worker processes."""
    executor: str = Field(default="local", min_length=1)
    sandbox: str = Field(default="auto", min_length=1)
    """`auto`, or a backend by name."""
    llm: LlmSettings = LlmSettings()
    """Models by role; a role without one is played by deterministic code, or by nobody."""
    cache: Path = Field(default_factory=default_cache_dir)
    """Folder of finished work; may be deleted at any time."""
    offline: bool = False
    """Whether nothing may be fetched."""
    keep_going: bool = False
    """Whether the good lines of a list are built where others are bad."""

    @property
    def pack_name(self) -> str:
        """Name of a build's pack and its folder under `out`: the source list's, else the catalog's, and the format."""
        first = Path(self.sources[0].strip()) if self.sources else Path()
        stem = first.stem if first.suffix == ".txt" else self.catalog.stem
        words = re.findall(r"[a-z0-9]+", f"{stem} {self.format}".lower())
        return "-".join(words if words[0][0].isalpha() else ["pack", *words])

    @property
    def ledger(self) -> Path:
        """What models cost is entered here: beside the catalog."""
        return ledger_path(self.catalog)

    @property
    def source_defaults(self) -> SourceOptions:
        """Options for sources that do not name their own."""
        return SourceOptions(limit=self.limit, seed=self.seed)

    @field_validator("catalog")
    @classmethod
    def _names_a_file(cls, catalog: Path) -> Path:
        if catalog.is_dir():
            raise ValueError(f"is a folder; name a file in it, such as {catalog / DEFAULT_CATALOG.name}")
        return catalog


def load_config(
    file: Path | None = None,
    *,
    cwd: Path | None = None,
    llm: Sequence[str] = (),
    budget: float | None = None,
    **given: Any,
) -> BuildConfig:
    """The resolved configuration.

    Args:
        file: TOML, or JSON as `write_resolved` wrote it; None: `envsynth.toml` in `cwd` where there is one.
            Relative paths and sources in it are relative to its folder.
        cwd: what relative paths of `given` are relative to; None: the current folder.
        llm: each `--llm` of the command line, in order.
        budget: `--budget`, in US dollars.
        **given: other settings of the command line, by field name; None means not given. A `sources` that is given
            replaces the file's.

    Raises:
        ConfigError: the file cannot be read, or a setting is unknown or has a wrong value.
    """
    here = Path.cwd() if cwd is None else cwd.absolute()
    settings: dict[str, Any] = {}
    where = "command line"
    if file is None and (here / DEFAULT_FILE).is_file():
        file = here / DEFAULT_FILE
    if file is not None:
        file = here / file
        settings = _absolute(_checked(read_settings(file), str(file)), file.parent)
        settings.setdefault("root", file.parent)
        where = str(file)
    settings["llm"] = llm_settings(settings.get("llm"), llm, budget, where=where)
    named = {key: value for key, value in given.items() if value is not None}
    settings |= _absolute(_checked(named, "command line"), here)
    if "sources" in named:
        settings["root"] = here
    for key, default in (("catalog", DEFAULT_CATALOG), ("out", Path("outputs")), ("root", Path())):
        settings.setdefault(key, here / default)
    try:
        return BuildConfig.model_validate(settings)
    except ValidationError as exc:
        first = exc.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{key}: {first['msg'].removeprefix('Value error, ')}", where="command line" if key in named else where,
            cause="" if first["type"] == "value_error" else f"it is {first['input']!r}",
            next_step="envsynth build --help",
        ) from exc  # fmt: skip


def resolved_path(catalog: Path) -> Path:
    """Where the resolved configuration of a catalog's last build stands."""
    return catalog.with_name(f"{catalog.stem}.build.json")


def write_resolved(config: BuildConfig) -> Path:
    """Write the resolved configuration beside the catalog; `envsynth build --config` replays it.

    Raises:
        ConfigError: the folder cannot be written.
    """
    target = resolved_path(config.catalog)
    text = json.dumps(config.document(), indent=2, sort_keys=True) + "\n"
    with boundary(ConfigError, "the resolved configuration cannot be written", where=str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".build-", suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return target


def _checked(settings: dict[str, Any], where: str) -> dict[str, Any]:
    for key in settings:
        if key not in BuildConfig.model_fields:
            close = difflib.get_close_matches(key, BuildConfig.model_fields, n=1)
            raise ConfigError(
                f"unknown setting {key!r}", where=where,
                cause=f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(BuildConfig.model_fields))}",
            )  # fmt: skip
    return settings


def _absolute(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    paths = {
        key: folder / Path(settings[key]).expanduser()
        for key in ("catalog", "out", "cache", "root")
        if isinstance(settings.get(key), str | Path)
    }
    single = {"sources": (settings["sources"],)} if isinstance(settings.get("sources"), str) else {}
    return {**settings, **paths, **single}
