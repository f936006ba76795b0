"""How many lines a change adds and removes, in time that what is compared cannot stretch."""

from __future__ import annotations

from collections import Counter
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

_EXACT_LINES = 2000
"""Up to this many differing lines a side are compared in order; beyond, as multisets, which is linear."""
EXACT_STEPS = 4_000_000
"""Pairs of equal lines looked at for all files of a submission; once they are used up, multisets are compared."""
COMPARED_BYTES = 2**24
"""Content compared for all files of a submission; what comes after counts as rewritten."""


class LineCounts(NamedTuple):
    """Lines of a change; both 0 for a binary file."""

    added: int
    removed: int


class LineCounter:
    """Counts the files of one submission, which share the work that may be spent.

    An ordinary change takes a few thousand steps. Files made of one line repeated between others take the cube of
    their length, and a submission may have thousands of them.
    """

    def __init__(self) -> None:
        self._steps = EXACT_STEPS
        self._bytes = COMPARED_BYTES

    def count(self, old: bytes, new: bytes) -> LineCounts:
        """Lines added and removed between two contents, as a diff counts them."""
        if b"\0" in old[:8192] or b"\0" in new[:8192]:
            return LineCounts(0, 0)
        self._bytes -= len(old) + len(new)
        if self._bytes < 0:
            return LineCounts(new.count(b"\n"), old.count(b"\n"))
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
        start = _common(before, after)
        before, after = before[start:], after[start:]
        end = _common(before[::-1], after[::-1])
        before, after = before[: len(before) - end], after[: len(after) - end]
        if not before or not after:
            return LineCounts(len(after), len(before))
        kept = self._kept_in_order(before, after) if max(len(before), len(after)) <= _EXACT_LINES else None
        if kept is None:
            kept = (Counter(before) & Counter(after)).total()
        return LineCounts(len(after) - kept, len(before) - kept)

    def _kept_in_order(self, before: list[bytes], after: list[bytes]) -> int | None:
        """Lines in matching blocks; None when there is no work left for finding them."""
        # Numbers compare in one step, however long the lines are.
        numbers: dict[bytes, int] = {}
        left, right = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (before, after))
        matcher = _Matcher(left, right, self._steps)
        try:
            return sum(block.size for block in matcher.get_matching_blocks())
        except _TooMuchWork:
            return None
        finally:
            self._steps = matcher.steps


def count_lines(old: bytes, new: bytes) -> LineCounts:
    """Lines added and removed between two contents that are all that is compared."""
    return LineCounter().count(old, new)


class _TooMuchWork(Exception):
    """The steps are used up."""


class _Matcher(SequenceMatcher[int]):
    """Stops before it takes more steps than it was given."""

    def __init__(self, left: list[int], right: list[int], steps: int) -> None:
        super().__init__(None, left, right, autojunk=False)
        self.steps = steps
        """Steps left."""
        partners = Counter(right)
        self._work = list(accumulate((1 + partners[line] for line in left), initial=0))

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """As the base does; every search for a block goes through here.

        Raises:
            _TooMuchWork: it would take more steps than are left.
        """
        work = self._work[len(self._work) - 1 if ahi is None else ahi] - self._work[alo]
        if work > self.steps:
            raise _TooMuchWork
        self.steps -= work
        return super().find_longest_match(alo, ahi, blo, bhi)


def _common(left: list[bytes], right: list[bytes]) -> int:
    size = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        size += 1
    return size
