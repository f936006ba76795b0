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
WorkCatalogOption = Annotated[
    Path | None, typer.Option("--catalog", metavar="P", help="Catalog file.", show_default="catalogs/envsynth.duckdb")
]
CacheOption = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Folder of finished work.", show_default="$ENVSYNTH_CACHE"),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", metavar="F", help="envsynth.toml.")]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--llm", metavar="[ROLE=]MODEL[@URL]", help="Model of a role, or of all; repeatable.", show_default="none"
    ),
]
SolverOption = Annotated[
    list[str] | None, typer.Option("--llm", metavar="[ROLE=]MODEL[@URL]", help="As for build; the role is solver.")
]
BudgetOption = Annotated[
    float | None,
    typer.Option("--budget", metavar="USD", help="Most that models may cost, over all runs of the catalog."),
]


def catalog_path(given: Path | None) -> Path:
    """The catalog a command works on: as given, else as configured in the working folder.

    Raises:
        ConfigError: `envsynth.toml` is wrong.
    """
    from envsynth.config import load_config

    return Path.cwd() / given if given is not None else load_config().catalog
