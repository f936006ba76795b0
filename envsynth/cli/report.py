"""envsynth report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsynth.cli._options import CatalogOption


def report(
    catalog: CatalogOption = None,
    where: Annotated[
        str,
        typer.Option("--where", metavar="SQL", help="Tasks that have a page before all others; over the view task."),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of report.html; else report/ under outputs/.")
    ] = None,
    tasks: Annotated[int, typer.Option("--tasks", metavar="N", min=0, help="Most tasks that have a page.")] = 200,
) -> None:
    """Write one HTML file about a catalog: yield, graders, solve rates, references, spend, and a page a task.

    Each page has the instruction, tools, checks, rubric and panel, and steps through any trajectory with what each call
    changed; trajectories in worlds are played for it. The file needs no network. It shows what is hidden from agents:
    keep it away from them.
    """
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import size
    from envsynth.config import load_config
    from envsynth.report import write_report

    path = catalog_path(catalog)
    folder = out or load_config(catalog=path).out / "report"
    written = write_report(path, folder, where=where, tasks=tasks)
    typer.echo(f"{written.path}: {size(written.size)}, pages of {written.pages} of {written.tasks} tasks")
