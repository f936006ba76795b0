"""How many lines a change adds and removes."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from typing import NamedTuple

_EXACT_LINES = 2000
"""Up to this many differing lines a side are compared in order; beyond, as multisets, which is linear."""


class LineCounts(NamedTuple):
    """Lines of a change; both 0 for a binary file."""

    added: int
    removed: int


def count_lines(old: bytes, new: bytes) -> LineCounts:
    """Lines added and removed between two contents, as a diff counts them."""
    if b"\0" in old[:8192] or b"\0" in new[:8192]:
        return LineCounts(0, 0)
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = _common(before, after)
    before, after = before[start:], after[start:]
    end = _common(before[::-1], after[::-1])
    before, after = before[: len(before) - end], after[: len(after) - end]
    if max(len(before), len(after)) > _EXACT_LINES:
        gone, come = Counter(before), Counter(after)
        return LineCounts((come - gone).total(), (gone - come).total())
    kept = sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())
    return LineCounts(len(after) - kept, len(before) - kept)


def _common(left: list[bytes], right: list[bytes]) -> int:
    size = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        size += 1
    return size
