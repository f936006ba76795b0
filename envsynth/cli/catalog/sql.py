"""envsynth catalog sql."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperCommand

from envsynth.cli._options import CatalogOption, JsonOption


class SqlCommand(TyperCommand):
    """Adds the views and the example queries to `--help`, read only when asked for."""

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """The usual help, then `examples.sql`."""
        from envsynth.catalog import examples, views

        usual = super().get_help(ctx)
        described = views()
        width = max(map(len, described)) + 1
        listed = "\n".join(f"  {name:{width}}{text}" for name, text in described.items())
        asked = "\n\n".join(f"  -- {name}\n  {text}" for name, text in examples().items())
        return f"{usual}\n\nViews (DESCRIBE view lists the columns):\n{listed}\n\nExamples:\n{asked}\n"


def sql(
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT over the views; - reads it from stdin.")],
    catalog: CatalogOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the catalog in DuckDB's SQL. Nothing can be changed, and no other file can be reached."""
    import sys

    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import print_json, print_table

    text = sys.stdin.read() if query == "-" else query
    with Catalog.open(catalog_path(catalog), read_only=True) as opened:
        result = opened.query(text)
    if json:
        print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
    else:
        print_table(result.columns, result.rows)
