"""envsynth doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envsynth.cli._options import JsonOption


def doctor(
    *,
    network: Annotated[bool, typer.Option("--network", help="Ask the package registry too.")] = False,
    llm: Annotated[
        list[str] | None, typer.Option(metavar="[ROLE=]MODEL[@URL]", help="As for build.", show_default="none")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="F", help="envsynth.toml.")] = None,
    json: JsonOption = False,
) -> None:
    """Say what works on this machine and what to do about the rest. Exit code 3 when a build would fail.

    Each model that is configured is asked for a few tokens.
    """
    from envsynth.cli._diagnosis import Diagnosis, diagnose
    from envsynth.cli._endpoints import configured, endpoints
    from envsynth.cli._output import print_json, print_table

    settings = configured(config, llm or [])
    models = [settings] if isinstance(settings, Diagnosis) else endpoints(settings)
    checks = [*diagnose(network=network), *models]
    if json:
        print_json([check._asdict() for check in checks])
    else:
        print_table(("", "what", "found"), [(check.status, check.what, check.text) for check in checks])
    if any(check.status == "fails" for check in checks):
        raise typer.Exit(3)
