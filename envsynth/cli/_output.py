"""Printing: tables for people, tab-separated lines where no terminal reads, JSON on demand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Text that cannot steer a terminal: what repositories say is shown, not obeyed."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def print_json(value: Any) -> None:
    """One JSON document on one line; values without a JSON form as their text."""
    typer.echo(json.dumps(value, ensure_ascii=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """A table on a terminal, else tab-separated lines under a header; the title is for terminals only."""
    texts = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [list(columns), *texts]:
            typer.echo("\t".join(re.sub(r"\s+", " ", cell) for cell in line))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=Text(title, "bold") if title else None, title_justify="left", pad_edge=False)
    numeric = [all(re.fullmatch(r"-?[\d.,]*%?", row[index]) for row in texts) for index in range(len(columns))]
    for name, right in zip(columns, numeric, strict=True):
        first = not table.columns  # names the row: to be copied whole
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold", no_wrap=first)
    for row in texts:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def print_prose(text: str) -> None:
    """Text that cannot steer a terminal, broken between words where one reads."""
    if not sys.stdout.isatty():
        typer.echo(clean(text))
        return
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(clean(text)))


def heading(text: str) -> None:
    """A section's name."""
    typer.secho(f"\n{text}", bold=True)


def size(count: float) -> str:
    """Bytes for people: powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | dict):
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    return clean(str(value))
