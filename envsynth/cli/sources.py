"""envsynth sources check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from envsynth.models import Source

app = typer.Typer(help="Look at source lists.", no_args_is_help=False)


@app.callback()
def sources() -> None:
    """Look at source lists."""


@app.command()
def check(
    texts: Annotated[list[str], typer.Argument(metavar="F|URI...", help="Source lists and URIs.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Read sources as build would, and name every bad line. Fetches nothing."""
    from envsynth import plugins
    from envsynth.cli._output import print_json, print_table
    from envsynth.sources import read_sources

    listed = read_sources(texts)
    known = plugins.names("generators")
    errors = [str(error) for error in listed.errors]
    errors += [
        f"{source.origin}: no generator {source.generator!r} for {source.kind.value} sources is installed."
        " Next: envsynth plugins"
        for source in listed.sources
        if source.generator not in known
    ]
    if json:
        for source in listed.sources:
            print_json({"source": source.document()})
        for error in errors:
            print_json({"error": error})
    else:
        print_table(
            ("where", "kind", "uri", "revision", "options"),
            [
                (source.origin, source.kind.value, source.uri, source.revision, _options(source))
                for source in listed.sources
            ],
        )
        for error in errors:
            typer.echo(f"envsynth: {error}", err=True)
        typer.echo(f"{len(listed.sources)} good, {len(errors)} bad", err=True)
    if errors:
        raise typer.Exit(2)


def _options(source: Source) -> str:
    named = source.options.model_dump(mode="json", exclude_defaults=True) | dict(source.extra)
    texts = {key: ",".join(value) if isinstance(value, list) else str(value) for key, value in named.items()}
    if "trusted" in texts:
        texts["trusted"] = "yes"
    return " ".join(f"{key}={text}" for key, text in texts.items())
