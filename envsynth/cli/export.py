"""envsynth export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsynth.cli._options import CatalogOption, WhereOption


def export(
    format: Annotated[str, typer.Option("--format", metavar="NAME", help="Exporter.")] = "gymnasium",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the pack; else one under outputs/.")
    ] = None,
    catalog: CatalogOption = None,
    where: WhereOption = "",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="An option of the exporter; repeatable.")
    ] = None,
) -> None:
    """Write tasks of the catalog as a pack. Needs no cache: the catalog has every content."""
    from envsynth import plugins
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.config import load_config
    from envsynth.errors import ConfigError, ExportError

    options = dict(text.partition("=")[::2] for text in option or [])
    if not all(text.partition("=")[2] for text in option or []):
        raise ConfigError("an exporter's option is KEY=VALUE", where="--option", next_step="envsynth export --help")
    from envsynth.cli._result import as_called, quoted

    exporter = plugins.load("exporters", format)()
    path = catalog_path(catalog)
    config = load_config(catalog=path, format=format)
    with Catalog.open(path, read_only=True) as opened:
        tasks = opened.tasks(where)
        if not tasks:
            raise ExportError(
                "no task is selected", where=str(path), cause=f"none fits {where}" if where else "the catalog has none",
                next_step="envsynth catalog ls",
            )  # fmt: skip
        pack = exporter.export(tasks, opened.blobs, out or config.out / config.pack_name, options)
    typer.echo(f"{len(tasks)} tasks in {pack}")
    typer.echo(f"Next: {as_called('envsynth')} replay {quoted(pack)}", err=True)
