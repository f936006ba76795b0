"""envsynth catalog ls."""

from __future__ import annotations

from typing import Annotated

import typer

from envsynth.cli._options import CatalogOption, JsonOption, WhereOption

TASKS = ("id", "tier", "strength", "fail_to_pass", "pass_to_pass", "source", "title")
LEADS = ("status", "reason", "source", "ref", "title", "detail")


def ls(
    catalog: CatalogOption = None,
    where: WhereOption = "",
    leads: Annotated[
        bool, typer.Option("--leads", help="Every lead, admitted or not; --where is then over the view lead.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the tasks."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import print_json, print_table

    columns, view = (LEADS, "lead") if leads else (TASKS, "task")
    condition = where.strip() or "true"
    order = "source, status, ref" if leads else "id"
    selection = "*" if json else ", ".join(columns)
    with Catalog.open(catalog_path(catalog), read_only=True) as opened:
        result = opened.query(f"SELECT {selection} FROM {view} WHERE (\n{condition}\n) ORDER BY {order}")
    if json:
        print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
    else:
        print_table(result.columns, result.rows)
