"""Counting lines: as a diff does it for ordinary files, and never for long."""

from __future__ import annotations

import random
from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime import lines
from envsynth.runtime.lines import LineCounter, LineCounts, count_lines

TEXT = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"long " * 20 + b"\n", b"c\r\n", b"d"]), max_size=60)


def in_order(old: bytes, new: bytes) -> LineCounts:
    """What a diff says of the whole files; equal beginnings and ends are taken off first."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = sum(block.size for block in blocks)
    return LineCounts(len(after) - kept, len(before) - kept)


def source(seed: int, size: int) -> list[bytes]:
    """Lines as source has them: a third blank or closing, the rest mostly different."""
    chance = random.Random(seed)
    common = [b"\n", b"    return None\n", b"    )\n"]
    return [
        chance.choice(common) if chance.random() < 0.33 else b"x = %d\n" % chance.randrange(9**6) for _ in range(size)
    ]


def alike(count: int) -> tuple[bytes, bytes]:
    """Two files of one line repeated between others, and one line that was moved."""
    old, new = (b"".join(b"# %s%d\n\n" % (letter, place) for place in range(count)) for letter in (b"u", b"v"))
    return old + b"moved\n", b"moved\n" + new


@given(TEXT.map(b"".join), TEXT.map(b"".join))
def test_short_files_are_compared_in_order(old: bytes, new: bytes) -> None:
    assert count_lines(old, new) == in_order(old, new)


@given(st.integers(0, 10**6), st.lists(st.tuples(st.integers(0, 399), st.integers(0, 20)), max_size=8))
def test_edits_of_ordinary_files_are_compared_in_order(seed: int, edits: list[tuple[int, int]]) -> None:
    before = source(seed, 400)
    after = list(before)
    for place, size in edits:
        after[place : place + size // 2] = source(place, size)
    old, new = b"".join(before), b"".join(after)
    assert count_lines(old, new) == in_order(old, new)


def test_a_rewritten_file_is_compared_in_order() -> None:
    old, new = b"".join(source(1, 300)), b"".join(source(2, 300))
    assert count_lines(old, new) == in_order(old, new)


def test_lines_that_are_much_alike_are_compared_as_multisets() -> None:
    assert count_lines(*alike(50)) == in_order(*alike(50)) == (51, 51)
    assert count_lines(*alike(900)) == (900, 900)


def test_the_work_of_a_submission_is_bounded() -> None:
    counter = LineCounter()
    counts = [counter.count(*alike(150)) for _ in range(20)]
    exact = counts.count(LineCounts(151, 151))
    assert 1 <= exact < 10
    assert counts[exact:] == [LineCounts(150, 150)] * (20 - exact)
    assert LineCounter().count(*alike(150)) == (151, 151)


def test_content_beyond_the_bound_counts_as_rewritten() -> None:
    counter = LineCounter()
    big = b"x\n" * (lines.COMPARED_BYTES // 4)
    assert counter.count(big, big) == (0, 0)
    assert counter.count(b"a\nb\n", b"a\nb\nc\n") == (3, 2)
