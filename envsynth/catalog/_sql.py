"""Named statements from the `.sql` files of this package. A name stands in a line `-- name: NAME`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_NAME = re.compile(r"^-- name: (.+)$", re.MULTILINE)


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


@cache
def statements(file: str) -> dict[str, str]:
    """The statements of `queries/<file>.sql` by name, in order."""
    text = (files("envsynth.catalog") / "queries" / f"{file}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return {name.strip(): sql.strip() for name, sql in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration this version knows, in order."""
    found = []
    for path in (files("envsynth.catalog") / "migrations").iterdir():
        match = re.fullmatch(r"([0-9]{4})_(\w+)\.sql", path.name)
        if match:
            found.append(Migration(int(match[1]), match[2], path.read_text("utf-8")))
    return tuple(sorted(found))


def views() -> dict[str, str]:
    """What each view, and each table for people, has."""
    return {name: text.removeprefix("-- ") for name, text in statements("views").items()}


def examples() -> dict[str, str]:
    """Example queries by what they answer."""
    return statements("examples")
