"""What `envsynth catalog show` says of a task in a world."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from envsynth.cli._call_lines import words_of
from envsynth.cli._output import clean, heading, print_table
from envsynth.cli._score import utility_rows
from envsynth.models import Budget, Trajectory, Utility, World
from envsynth.runtime.worlds.tools import object_schema

_LONGEST = 70
"""Characters shown of a trajectory's first calls."""


def show_world(world: World, budget: Budget) -> None:
    """Tables and tools; what is hidden is marked, for this is no agent's view."""
    rows = sum(map(len, world.rows.values()))
    _field("world", f"{world.id}: {len(world.tables)} tables, {rows} rows, clock {world.clock}")
    _field("hidden", ", ".join(_hidden(world)))
    cost = "" if budget.cost is None else f", cost {budget.cost:g}"
    _field("budget", f"{budget.turns} calls{cost}")
    heading("tools")
    for tool in world.tools:
        typer.echo(clean(f"  {tool.name} ({tool.kind.value}) {tool.doc}".rstrip()))
        schema = object_schema([parameter.document() for parameter in tool.parameters])
        for name, found in schema["properties"].items():
            optional = "" if name in schema["required"] else ", may be left out"
            typer.echo(clean(f"    {name}: {words_of(found)}{optional}"))
    for invariant in world.invariants:
        kept = "kept by the tools" if invariant.enforced else f"stated in {invariant.stated_in}"
        _field(f"invariant {invariant.id}", kept)


def show_utility(utility: Utility | None) -> None:
    """The query, and what each reference policy came to."""
    if utility is None:
        return
    _field("utility", utility.sql)
    heading("references")
    print_table(("who", "utility", "score", "expected"), utility_rows(utility.document(), utility.realised))


def show_panel(panel: Sequence[Trajectory]) -> None:
    """The labelled trajectories with the outcomes they must get."""
    heading(f"panel ({len(panel)})")
    print_table(
        ("trajectory", "outcome", "calls", "how it begins"),
        [(line.label, f"{line.outcome:.4g}", len(line.calls), _begin(line)) for line in panel],
    )


def _begin(line: Trajectory) -> str:
    calls = (f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}" for call in line.calls[:3])
    text = "; ".join(calls)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _hidden(world: World) -> list[str]:
    columns = (f"{table.name}.{column.name}" for table in world.tables for column in table.columns if column.hidden)
    return [*(table.name for table in world.tables if table.hidden), *columns]


def _field(name: str, text: str) -> None:
    if text:
        typer.echo(clean(f"  {name:16} {text}"))
