"""envsynth catalog stats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from envsynth.cli._options import CatalogOption, JsonOption

if TYPE_CHECKING:
    from pathlib import Path

    from envsynth.catalog import StrengthStats
    from envsynth.llm import Spend

_SPEND_COLUMNS = ("role", "model", "endpoint", "calls", "tokens_in", "tokens_out", "usd", "uncertain")


def stats(catalog: CatalogOption = None, json: JsonOption = False) -> None:
    """Strength of the graders; yield by reason, flickering tests and cost, by source; what models cost, by role."""
    from envsynth.catalog import Catalog
    from envsynth.cli._options import catalog_path
    from envsynth.cli._output import heading, print_json, print_table, size

    path = catalog_path(catalog)
    with Catalog.open(path, read_only=True) as opened:
        found = opened.stats()
    spend = _spend(path)
    if json:
        print_json({**found.document(), "spend": [row.document() for row in spend]})
        return
    tasks = found.statuses.get("admitted", 0)
    typer.echo(f"{path}: {tasks} tasks of {found.leads} leads in {found.builds} builds, {size(found.file_bytes)}")
    typer.echo(_strength(found.strength))
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
    if spend:
        heading("models")
        print_table(_SPEND_COLUMNS, [_spend_row(row) for row in spend])
    if found.near_duplicates:
        where = "id NOT IN (SELECT other FROM near_duplicate)"
        typer.echo(
            f'\ntasks that nearly repeat another: {found.near_duplicates}; export without them: --where "{where}"'
        )
    if found.flicker:
        heading("flickering tests")
        print_table(("source", "tests"), [(row.source, row.tests) for row in found.flicker])


def _spend(catalog: Path) -> tuple[Spend, ...]:
    """What the ledger beside a catalog holds; nothing where no model was ever asked."""
    from envsynth.llm.ledger import Ledger, ledger_path

    path = ledger_path(catalog)
    return Ledger(path).rows() if path.exists() else ()


def _spend_row(row: Spend) -> tuple[str | int, ...]:
    uncertain = f"{row.uncertain} (${row.uncertain_usd:.4f} at most)" if row.uncertain else ""
    return (
        row.role, row.model, row.endpoint, row.settled, row.prompt_tokens, row.completion_tokens,
        f"{row.settled_usd:.4f}", uncertain,
    )  # fmt: skip


def _strength(found: StrengthStats) -> str:
    """One line: what was tried against the graders, and what they did not withstand."""
    if not found.tasks and not found.attacked:
        return "graders: strength not measured; envsynth validate measures it"
    median = "not measured" if found.median_kill_rate is None else f"{found.median_kill_rate:.0%}"
    return (
        f"graders: {found.attacks_worked} of {found.attacks} attacks worked on {found.attacked} candidates;"
        f" median kill rate {median}, {found.survivors} mutants survive;"
        f" {found.rewrites_rejected} of {found.rewrites} right rewrites rejected"
    )


def _share(total: float, tasks: int) -> str:
    return f"{total / tasks:.1f}" if tasks else ""
