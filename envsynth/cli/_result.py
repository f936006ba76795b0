"""What a build says at its end: what it made, where, and what to do next."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from envsynth.cli._output import clean, heading, print_json, print_table
from envsynth.config import DEFAULT_CATALOG
from envsynth.models import BuildReport, ModelUse

if TYPE_CHECKING:
    from envsynth.revalidate import ValidationReport

_MODEL_COLUMNS = ("role", "model", "calls", "cached", "uncertain", "tokens in", "tokens out", "US dollars")


def print_result(report: BuildReport, *, json: bool) -> None:
    """Print a build's report."""
    if json:
        print_json({"event": "report", **report.document()})
        return
    tasks = report.statuses.get("admitted", 0)
    known = f", {report.reused} of them settled before" if report.reused else ""
    heading(
        f"{tasks} tasks admitted of {report.leads} leads{known}, in {report.seconds:.1f} s ({report.cpu_s:.1f} s CPU)"
    )
    print_table(
        ("leads", "status", "reason", "source"),
        [(row.leads, row.status, row.reason, row.source) for row in report.funnel],
    )
    _print_models(report.models)
    for error in report.errors:
        typer.echo(f"envsynth: {clean(error)}", err=True)
    typer.echo(f"\ncatalog  {_shown(report.catalog)}")
    if report.pack is not None:
        typer.echo(f"pack     {_shown(report.pack)}")
    heading("Next")
    for line in _next_steps(report):
        typer.echo(f"  {line}")


def _print_models(uses: Sequence[ModelUse]) -> None:
    if uses:
        typer.echo("")
        print_table(_MODEL_COLUMNS, [_model_row(use) for use in uses])


def _model_row(use: ModelUse) -> tuple[object, ...]:
    cost = "unknown" if use.cost_usd is None else f"{use.cost_usd:.6f}"
    uncertain = f"{use.uncertain} (at most ${use.uncertain_usd:.6f})" if use.uncertain_usd else use.uncertain
    asked = (use.role, use.model, use.calls, use.cached, uncertain)
    return (*asked, use.prompt_tokens, use.completion_tokens, cost)


def print_validation(report: ValidationReport, *, json: bool) -> None:
    """Print what judging again came to."""
    if json:
        print_json({"event": "report", **report.document()})
        return
    renewed = report.selected - report.standing
    heading(
        f"{renewed} of {report.selected} candidates judged again, {report.standing} as they stood,"
        f" in {report.seconds:.1f} s ({report.cpu_s:.1f} s CPU)"
    )
    print_table(
        ("leads", "status", "reason", "source"),
        [(row.leads, row.status, row.reason, row.source) for row in report.funnel],
    )
    _print_models(report.models)
    for verb, names in (("admitted", report.admitted), ("no task any more", report.demoted)):
        for name in names:
            typer.echo(f"{verb}: {name}")
    for error in report.errors:
        typer.echo(f"envsynth: {clean(error)}", err=True)
    command = as_called("envsynth")
    named = "" if _shown(report.catalog) == str(DEFAULT_CATALOG) else f" --catalog {quoted(report.catalog)}"
    heading("Next")
    typer.echo(f"  {command} catalog stats{named}")
    if report.statuses.get("owed"):
        typer.echo("  the same command again: it tries what is owed, and nothing else")
    for name in report.demoted[:1]:
        typer.echo(f"  {command} catalog show {name}{named}")


def _next_steps(report: BuildReport) -> list[str]:
    command, python = as_called("envsynth"), as_called("python")
    named = "" if _shown(report.catalog) == str(DEFAULT_CATALOG) else f" --catalog {quoted(report.catalog)}"
    steps = [f"{command} catalog ls{named}"]
    if report.tasks:
        steps.append(f"{command} catalog show {report.tasks[0]}{named}")
        steps.append(f"{command} play {report.tasks[-1]}{named}")
    else:
        steps.append(f"{command} catalog ls --leads{named}")
    if report.statuses.get("owed"):
        steps.append("the same build command again: it tries what is owed, and nothing else")
    if report.pack is not None and report.tasks:
        package = report.pack.name.replace("-", "_")
        steps += [
            f"{command} replay {quoted(report.pack)}",
            f"{python} -m pip install {quoted(report.pack.absolute())}",
            f"{python} -c 'import gymnasium; env = gymnasium.make(\"{package}:{report.tasks[0]}-v0\");"
            " print(env.reset(seed=0)[0][\"text\"])'",
        ]  # fmt: skip
    return steps


def as_called(name: str) -> str:
    """A program of this environment as the user can type it: its bare name only where that is the one that runs."""
    beside = Path(sys.executable).parent / name
    found = shutil.which(name)
    return name if found is not None and Path(found) == beside else quoted(beside)


def _shown(path: Path) -> str:
    """Relative to the working folder where it is inside."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def quoted(path: Path) -> str:
    """A path as the user can type it."""
    return shlex.quote(_shown(path))
