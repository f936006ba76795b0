"""Showing a build while it runs: a bar on a terminal, plain lines elsewhere, JSON lines on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from envsynth.cli._output import clean, print_json
from envsynth.models import Event

Progress = Callable[[Event], None]


@contextmanager
def watching(*, json: bool) -> Iterator[Progress]:
    """What a build tells its events to. People's lines go to stderr, JSON lines to stdout."""
    if json:
        yield lambda event: print_json({"event": event.kind, **_without_kind(event)})
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield lambda event: typer.echo(_line(event), err=True)


def _without_kind(event: Event) -> dict[str, object]:
    document = event._asdict()
    del document["kind"]
    return document


def _line(event: Event) -> str:
    counted = f"[{event.done}/{event.total}] " if event.kind == "lead" and event.total else ""
    label = "" if event.kind in ("lead", "source", "plan", "export") else f"{event.kind}: "
    return clean(f"{counted}{label}{event.text}").replace("\n", " ")


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("reading", total=None)

        def show(event: Event) -> None:
            console.print(Text(_line(event), "red" if event.kind == "error" else ""), soft_wrap=True)
            bar.update(shown, completed=event.done, total=event.total or None, description=event.kind)

        yield show
