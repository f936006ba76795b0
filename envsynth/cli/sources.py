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
    from envsynth.errors import EnvsynthError, SourceError
    from envsynth.sources import read_sources

    listed = read_sources(texts)
    errors: list[EnvsynthError] = list(listed.errors)
    good = []
    for source in listed.sources:
        try:
            plugins.load("generators", source.generator)().check(source)
            good.append(source)
        except EnvsynthError as wrong:
            errors.append(type(wrong)(wrong, where=wrong.where or str(source.origin)))
    if not good and not errors:
        errors.append(SourceError("there is no source in it", where=" ".join(texts), next_step="name one a line"))
    if json:
        for source in good:
            print_json({"source": source.document()})
        for error in errors:
            print_json({"error": str(error)})
    else:
        print_table(
            ("where", "kind", "uri", "revision", "options"),
            [(source.origin, source.kind.value, source.uri, source.revision, _options(source)) for source in good],
        )
        for error in errors:
            typer.echo(f"envsynth: {error}", err=True)
        typer.echo(f"{len(good)} good, {len(errors)} bad", err=True)
    if errors:
        raise typer.Exit(2)


def _options(source: Source) -> str:
    named = source.options.model_dump(mode="json", exclude_defaults=True) | dict(source.extra)
    texts = {key: ",".join(value) if isinstance(value, list) else str(value) for key, value in named.items()}
    if "trusted" in texts:
        texts["trusted"] = "yes"
    return " ".join(f"{key}={text}" for key, text in texts.items())
