"""The console script: assembles the commands, and is the boundary where every error becomes one line.

Exit codes: 0 done, 1 findings, 2 usage or configuration, 3 infrastructure, 130 interrupted, 141 the reader went away.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from envsynth import __version__
from envsynth.cli import build, doctor, export, image, play, plugins, proxy, replay, report, rollout, sources, validate
from envsynth.cli.catalog import app as catalog_app
from envsynth.errors import EnvsynthError, boundary

# Plain help: rendering it with rich would double the time of `envsynth --help`.
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
) -> None:
    """Turn repositories, scenarios and mechanisms into verified tasks for training tool-using agents."""
    if version:
        typer.echo(f"envsynth {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


app.command("build")(build.build)
app.add_typer(sources.app, name="sources")
app.add_typer(catalog_app, name="catalog")
app.command("validate")(validate.validate)
app.command("rollout")(rollout.rollout)
app.command("proxy")(proxy.proxy)
app.command("export")(export.export)
app.command("replay")(replay.replay)
app.command("play")(play.play)
app.command("report")(report.report)
app.add_typer(image.app, name="image")
app.add_typer(plugins.app, name="plugins")
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run the command line of this process."""
    # Schedulers and containers end a process so; it stops as cleanly as for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code; whatever went wrong was printed to stderr as one line.
    """
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    debug = "--debug" in ours
    arguments = [word for word in ours if word != "--debug"] + list(arguments[len(ours) :])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with boundary(EnvsynthError, "envsynth itself failed, which is a bug; --debug shows where"):
            code = _command(arguments)
            sys.stdout.flush()
            return code
    except EnvsynthError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"envsynth: {error}", err=True)
        return error.exit_code


def _command(arguments: Sequence[str]) -> int:
    try:
        command = typer.main.get_command(app)
        with command.make_context("envsynth", list(arguments)) as context:
            command.invoke(context)
        return 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("envsynth: interrupted; finished work is kept, the same command goes on with the rest", err=True)
        return 130
    except typer.TyperException as usage:
        # Usage errors know the command they happened in.
        found = getattr(usage, "ctx", None)
        path = found.command_path if found is not None else "envsynth"
        text = " ".join(usage.format_message().split()).rstrip(".")
        typer.echo(f"envsynth: {text}. Next: {path} --help", err=True)
        return 2
    except BrokenPipeError:
        # Nobody reads on. The interpreter's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
