"""envsynth catalog merge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsynth.cli._options import CatalogOption


def merge(
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="Catalog to take over; it stays as it is.")],
    catalog: CatalogOption = None,
) -> None:
    """Take over what another catalog knows; merging it twice changes nothing."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path

    path = catalog_path(catalog)
    with Catalog.open(path) as opened:
        report = opened.merge(other)
    typer.echo(
        f"{report.added} leads added, {report.replaced} replaced, {report.kept} left as they were;"
        f" {path} has {report.tasks} tasks"
    )
