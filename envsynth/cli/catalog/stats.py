"""envsynth catalog stats."""

from __future__ import annotations

import typer

from envsynth.cli._options import CatalogOption, JsonOption


def stats(catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """Yield by reason, flickering tests and cost, by source."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import heading, print_json, print_table, size

    path = catalog_path(catalog)
    with Catalog.open(path, read_only=True) as opened:
        found = opened.stats()
    if json:
        print_json(found.document())
        return
    tasks = found.statuses.get("admitted", 0)
    typer.echo(f"{path}: {tasks} tasks of {found.leads} leads in {found.builds} builds, {size(found.file_bytes)}")
    heading("yield")
    print_table(("source", "status", "reason", "leads"), [tuple(row.document().values()) for row in found.funnel])
    heading("cost")
    print_table(
        ("source", "tasks", "wall_s", "cpu_s", "cpu_s_per_task", "disk"),
        [
            (
                row.source,
                row.tasks,
                f"{row.wall_s:.1f}",
                f"{row.cpu_s:.1f}",
                _share(row.cpu_s, row.tasks),
                size(row.disk_bytes),
            )
            for row in found.costs
        ],
    )
    if found.flicker:
        heading("flickering tests")
        print_table(("source", "tests"), [(row.source, row.tests) for row in found.flicker])


def _share(total: float, tasks: int) -> str:
    return f"{total / tasks:.1f}" if tasks else ""
