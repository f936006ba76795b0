"""envsynth doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from envsynth.cli._options import JsonOption


def doctor(
    network: Annotated[bool, typer.Option("--network", help="Ask the package registry too.")] = False,
    json: JsonOption = False,
) -> None:
    """Say what works on this machine and what to do about the rest. Exit code 3 when a build would fail."""
    from envsynth.cli._diagnosis import diagnose
    from envsynth.cli._output import print_json, print_table

    checks = diagnose(network=network)
    if json:
        print_json([check._asdict() for check in checks])
    else:
        print_table(("", "what", "found"), [(check.status, check.what, check.text) for check in checks])
    if any(check.status == "fails" for check in checks):
        raise typer.Exit(3)
