"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CatalogOption = Annotated[
    Path | None,
    typer.Option(
        "--catalog", metavar="P", help="Catalog file; else as in envsynth.toml, else catalogs/envsynth.duckdb."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WhereOption = Annotated[
    str,
    typer.Option("--where", metavar="SQL", help='Condition over the view task, such as "fail_to_pass > 1".'),
]


def catalog_path(given: Path | None) -> Path:
    """The catalog a command works on: as given, else as configured in the working folder.

    Raises:
        ConfigError: `envsynth.toml` is wrong.
    """
    from envsynth.config import load_config

    return Path.cwd() / given if given is not None else load_config().catalog
