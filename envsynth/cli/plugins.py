"""envsynth plugins."""

from __future__ import annotations

from typing import Annotated

import typer

from envsynth.cli._options import JsonOption


def plugins(
    json: JsonOption = False,
    load: Annotated[bool, typer.Option("--load", help="Import each one too, and say what is wrong.")] = False,
) -> None:
    """List what is installed: generators, validators, exporters, languages, sandboxes."""
    from envsynth.cli._output import print_json, print_table
    from envsynth.plugins import GROUPS, listing
    from envsynth.plugins import load as load_plugin

    rows = [plugin for group in GROUPS for plugin in listing(group)]
    faults = []
    if load:
        from envsynth.errors import ConfigError

        for plugin in rows:
            try:
                load_plugin(plugin.group, plugin.name)  # type: ignore[call-overload]
            except ConfigError as error:
                faults.append(str(error))
    if json:
        print_json([plugin._asdict() for plugin in rows])
    else:
        print_table(("group", "name", "module", "from"), rows)
    for fault in faults:
        typer.echo(f"envsynth: {fault}", err=True)
    if faults:
        raise typer.Exit(2)
