"""envsynth catalog rm."""

from __future__ import annotations

from typing import Annotated

import typer

from envsynth.cli._options import CatalogOption


def rm(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="Ids, or beginnings that fit one only.")],
    catalog: CatalogOption = None,
) -> None:
    """Forget tasks. Another build of their source makes them again; to leave tasks out for good, export --where."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.errors import ConfigError

    path = catalog_path(catalog)
    if not path.exists():
        raise ConfigError("there is no catalog", where=str(path), next_step="name it with --catalog")
    with Catalog.open(path) as opened:
        removed = opened.remove(tasks)
    typer.echo(f"{removed} tasks removed from {path}")
