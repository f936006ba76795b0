"""envsynth plugins, plugins check."""

from __future__ import annotations

from typing import Annotated

import typer

from envsynth.cli._options import JsonOption

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def plugins(
    context: typer.Context,
    json: JsonOption = False,
    load: Annotated[bool, typer.Option("--load", help="Import each one too, and say what is wrong.")] = False,
) -> None:
    """List what is installed: generators, validators, exporters, languages, sandboxes."""
    if context.invoked_subcommand is not None:
        return
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


@app.command("check")
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GENERATOR]...", help="Which to check; none: all that ship documents."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check the documents that generators ship: one line a fault, with file and line; 1 where there is any."""
    from envsynth import plugins as registry
    from envsynth.cli._output import clean, print_json
    from envsynth.errors import GeneratorError, boundary

    total = 0
    for name in names or registry.names("generators"):
        found = getattr(registry.load("generators", name)(), "faults", None)
        if found is None:
            continue
        with boundary(GeneratorError, "the documents cannot be checked", where=name):
            for fault in found():
                total += 1
                if json:
                    print_json({"generator": name, "fault": fault})
                else:
                    typer.echo(clean(fault))
    if not json:
        typer.echo(f"{total or 'no'} fault{'' if total == 1 else 's'}", err=True)
    if total:
        raise typer.Exit(1)
