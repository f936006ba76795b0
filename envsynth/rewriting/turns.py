"""What turns an instruction's meaning round without a number or a name: limits, prohibitions and conditions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from envsynth.models import Finding

__all__ = ["turned", "words_of_turns"]


class _Kind(NamedTuple):
    tells: str
    added: bool
    """Whether a rewriting may not have one where the original has none."""
    said: re.Pattern[str]
    also: re.Pattern[str]
    """Other words for it in a rewriting."""


def turned(rewritten: str, original: str) -> Iterator[Finding]:
    """Kinds of limits, prohibitions and conditions that one of two texts has and the other has not.

    A count would object to every good rewriting, and a number's own limit cannot be told without reading; but the text
    that says `at most` for `at least`, or leaves the only `do not` out, has lost a kind altogether.
    """
    for kind in _kinds():
        original, had = _without(original, kind)
        bare, has = _without(rewritten, kind)
        if had and not has and not kind.also.search(rewritten):
            yield Finding(rule="rewrite_turns_meaning", message=f"the instruction has {kind.tells}: {had!r}")
        if has and not had and kind.added and not kind.also.search(original):
            yield Finding(rule="rewrite_turns_meaning", message=f"the instruction has not {kind.tells}: {has!r}")
        rewritten = bare


@cache
def words_of_turns() -> str:
    """The word table."""
    return Path(__file__).with_name("turns.toml").read_text("utf-8")


def _without(text: str, kind: _Kind) -> tuple[str, str]:
    """A text without a kind's phrases, and the first of them."""
    found = kind.said.search(text)
    return kind.said.sub(" ", text), found[0] if found else ""


@cache
def _kinds() -> tuple[_Kind, ...]:
    table = tomllib.loads(words_of_turns())
    return tuple(
        _Kind(row["tells"], row["added"], _words(row["patterns"]), _words(row["also"])) for row in table.values()
    )


def _words(patterns: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)
