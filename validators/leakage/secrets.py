"""Credentials and addresses in texts. Formats: `words/secrets.toml`; where they are made up: `words/fixtures.txt`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

from envsynth.models import FileMode, Finding, Role, RoleRule, Tree, role_of

__all__ = ["EMAIL", "secrets_in", "secrets_of_tree"]

EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
MAX_SCANNED = 2**20
"""Bytes; larger files are not searched."""


class _Table(NamedTuple):
    patterns: dict[str, re.Pattern[bytes]]
    placeholders: tuple[bytes, ...]
    least_characters: int


def secrets_in(content: bytes) -> Iterator[str]:
    """What kinds of credentials a content seems to hold, each once; none that looks made up."""
    table = _table()
    for kind, pattern in table.patterns.items():
        if any(_looks_real(found, table) for found in pattern.finditer(content)):
            yield kind


def secrets_of_tree(tree: Tree, get: Callable[[str], bytes], roles: tuple[RoleRule, ...]) -> Iterator[Finding]:
    """Credentials in a tree: rule `secret_in_tree`, or `possible_secret` where they are fixtures of tests or texts.

    A task's files travel to whoever trains on it, so a credential that may be true must not be among them; one in a
    test, a document or an example was published to be read there.
    """
    for entry in tree.entries:
        if entry.size > MAX_SCANNED or entry.mode is FileMode.SYMLINK:
            continue
        for kind in secrets_in(get(entry.blob)):
            made_up = role_of(entry.path, roles) is Role.TEST or _fixtures().search(entry.path) is not None
            rule = "possible_secret" if made_up else "secret_in_tree"
            yield Finding(rule=rule, message=f"looks like a {kind}", where=entry.path)


def _looks_real(found: re.Match[bytes], table: _Table) -> bool:
    body = next((text for name, text in found.groupdict().items() if name.startswith("body") and text), b"")
    whole = found.group().lower()
    return len(set(body)) >= table.least_characters and not any(word in whole for word in table.placeholders)


@cache
def _table() -> _Table:
    known = tomllib.loads((resources.files(__package__) / "words" / "secrets.toml").read_text("utf-8"))
    return _Table(
        {kind: re.compile(pattern.encode()) for kind, pattern in known["patterns"].items()},
        tuple(word.encode() for word in known["placeholders"]),
        int(known["least_characters"]),
    )


@cache
def _fixtures() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in words("fixtures")), re.I)


@cache
def words(name: str) -> tuple[str, ...]:
    """The lines of a table in `words/`, without comments and blank lines."""
    text = (resources.files(__package__) / "words" / f"{name}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
