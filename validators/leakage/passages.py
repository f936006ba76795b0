"""Passages of a text that a copy of it has and that nothing else has by chance: three lines in a row, one new."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["Guarded", "Held", "guard", "held", "readings", "squeezed"]

ROW = 3
"""Lines in a passage. One line alone is often found elsewhere; three in a row, one of them new, are a copy."""
_LEAST = 40
"""Characters of a passage altogether; less is `else:`, `return None`, `)`."""
_TELLING = 12
"""Characters of an old line that ties a passage to its place in the file."""
SIGNIFICANT = 20
"""Characters of a line that says something by itself."""
_OWN_SHARE = 0.6
"""Of the passages without an old line, how many make a copy of code that is elsewhere in another surrounding."""
_DIFF = re.compile(r"^(?:@@ -\d+|--- \S|diff --git )", re.M)
_TAG = re.compile(r"<[^<>\n]*>")


class Guarded(NamedTuple):
    """What must not be found of one file of a solution, or of the hidden tests."""

    path: str
    what: str
    """`fix` or `hidden_test`."""
    tied: frozenset[str]
    """Passages with an old line of the same file: only another copy of that file has these."""
    own: frozenset[str]
    """Passages of new lines alone; whatever the solution copies from elsewhere has these too."""
    marks: tuple[str, ...]
    """One line of each passage, as it is written: a file without any of these holds no passage."""


class Held(NamedTuple):
    """How much of a guarded file a text holds."""

    tied: int
    own: int
    copy: bool
    """Whether it is a copy of the file, changes included."""
    alike: bool
    """Whether it holds most of the new code, in another surrounding."""


def squeezed(text: str) -> list[str]:
    """Lines that hold anything, with their white space squeezed."""
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()))]


def guard(path: str, what: str, before: str, after: str) -> Guarded | None:
    """What a text must not hold, or None where a change leaves nothing to recognise.

    Args:
        path: of the file.
        what: `fix` or `hidden_test`.
        before: its text where agents can read it; empty for a new file.
        after: its text where they cannot.
    """
    old_lines = squeezed(before)
    old, known = set(old_lines), set(_passages(old_lines))
    written = {" ".join(raw.split()): raw.strip() for raw in after.splitlines() if raw.strip()}
    tied: set[str] = set()
    own: set[str] = set()
    marks: dict[str, None] = {}
    new_lines = squeezed(after)
    for row in _rows(new_lines):
        passage = "\n".join(row)
        if passage in known or len(passage) < _LEAST:
            continue
        (tied if any(line in old and len(line) >= _TELLING for line in row) else own).add(passage)
        new = [line for line in row if line not in old]
        best = max(new or row, key=len)
        if len(best) < SIGNIFICANT:
            best = max(row, key=len)
        marks[written[best]] = None
    if not tied and not own:
        return None
    return Guarded(path, what, frozenset(tied), frozenset(own), tuple(marks))


def held(guarded: Guarded, passages: frozenset[str]) -> Held:
    """How much of a guarded file is among a text's passages."""
    tied, own = len(guarded.tied & passages), len(guarded.own & passages)
    all_tied, all_own = len(guarded.tied), len(guarded.own)
    if all_tied:
        need = min(ROW, all_tied + all_own)
        copy = tied >= min(2, all_tied) and tied + own >= need
    else:
        copy = own >= max(min(ROW, all_own), _OWN_SHARE * all_own)
    alike = own >= max(ROW + 1, _OWN_SHARE * all_own)
    return Held(tied, own, copy, alike)


def readings(path: str, content: bytes) -> Iterator[frozenset[str]]:
    """The passages of a file's content, in each of the ways it can be read: as it is; a diff forwards and backwards."""
    if b"\0" in content[:8192]:
        return
    text = content.decode("utf-8", "replace")
    if path.lower().endswith((".html", ".htm")):
        text = html.unescape(_TAG.sub("", text))
    yield frozenset(_passages(squeezed(text)))
    if _DIFF.search(text):
        for sign in "+-":
            lines = (line[1:] for line in text.splitlines() if line.startswith((sign, " ")))
            yield frozenset(_passages(squeezed("\n".join(lines))))


def _passages(lines: Sequence[str]) -> Iterable[str]:
    return ("\n".join(row) for row in _rows(lines))


def _rows(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Every run of `ROW` lines; all of a shorter text."""
    if 0 < len(lines) < ROW:
        yield lines
    for start in range(len(lines) - ROW + 1):
        yield lines[start : start + ROW]
