"""Line differences between two versions of a text, in any language: hunks, and variants that leave some of them out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from envsynth.models import Variant, VariantFile

MAX_LINES = 20_000
"""Of one file; longer ones are generated and are compared as a whole."""
_WORD = re.compile(r"\w")


class Hunk(NamedTuple):
    """Lines `[first, last)` of the new text, 0-based, that stand for `old` in the old one."""

    first: int
    last: int
    old: tuple[str, ...]

    def within(self, other: Hunk) -> bool:
        """Whether two hunks touch: one could not be left out without a say in the other."""
        return self.first <= other.last and other.first <= self.last


def lines_of(text: str) -> list[str]:
    """Lines with their ends. Only a line feed ends a line, as in git; other separators stay inside."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def hunks(before: str, after: str, *, join: bool = False) -> list[Hunk]:
    """The differences, in order.

    Args:
        before: old text.
        after: new text.
        join: make one hunk of neighbours with nothing but blank lines and brackets between them.
    """
    return list(_hunks(before, after, join))


@lru_cache(maxsize=64)
def _hunks(before: str, after: str, join: bool) -> tuple[Hunk, ...]:
    old, new = lines_of(before), lines_of(after)
    if max(len(old), len(new)) > MAX_LINES:
        return (Hunk(0, len(new), tuple(old)),) if old != new else ()
    found: list[tuple[int, int, int, int]] = []
    for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if join and found and not any(_WORD.search(line) for line in new[found[-1][3] : first]):
            found[-1] = (found[-1][0], end, found[-1][2], last)
        else:
            found.append((start, end, first, last))
    return tuple(Hunk(first, last, tuple(old[start:end])) for start, end, first, last in found)


def apply(text: str, changes: Sequence[Hunk]) -> str:
    """The text with each hunk's lines replaced by its `old` ones; the hunks must not touch."""
    lines = lines_of(text)
    for hunk in sorted(changes, reverse=True):
        lines[hunk.first : hunk.last] = hunk.old
    return "".join(lines)


def changed_lines(before: str, after: str) -> frozenset[int]:
    """1-based lines of the new text that the old one does not have."""
    return frozenset(line + 1 for hunk in hunks(before, after) for line in range(hunk.first, hunk.last))


def merged(base: str, texts: Sequence[str]) -> str | None:
    """The base with the changes of all texts; None where two of them touch the same or neighbouring lines."""
    changes: list[Hunk] = []
    for text in texts:
        own = hunks(text, base)
        if any(one.within(other) for one in own for other in changes):
            return None
        changes += own
    return apply(base, changes)


def hunk_drops(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Variant]:
    """The reference without one of its hunks, for each hunk of the files that it changes."""
    for path in sorted(before.keys() & after.keys()):
        for hunk in hunks(before[path], after[path], join=True):
            new, old = hunk.last - hunk.first, len(hunk.old)
            yield Variant(
                name=name_of("hunk_drop", path, hunk.first + 1),
                kind="hunk_drop",
                path=path,
                line=hunk.first + 1,
                description=f"left as it was: {_count(new)} of the reference, for {_count(old)} of the start",
                files=(VariantFile(path=path, text=apply(after[path], [hunk])),),
            )


def file_drops(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Variant]:
    """The reference without its changes to one file, for each file."""
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield Variant(
                name=name_of("file_drop", path, 0),
                kind="file_drop",
                path=path,
                line=0,
                description="the whole file left as it was" if path in before else "the new file left out",
                files=(VariantFile(path=path, text=before.get(path)),),
            )


def name_of(kind: str, path: str, line: int) -> str:
    """A variant's name as far as the place says it."""
    slug = re.sub(r"[^a-z0-9_.]+", "-", path.lower()).strip("-.")
    return f"{kind}:{slug or 'file'}:{line}"


def _count(lines: int) -> str:
    return f"{lines} line" if lines == 1 else f"{lines} lines"
