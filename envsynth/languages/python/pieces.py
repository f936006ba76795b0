"""The whole top-level statements in which two versions of a module differ: what must be read again after a change."""

from __future__ import annotations

import ast
from bisect import bisect_left
from functools import lru_cache

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import parse


def differing_pieces(reference: str, text: str) -> tuple[str, str] | None:
    """The shortest runs of whole top-level statements of the reference, and what stands for them in the other text.

    A whole module behaves as another where the pieces do, since all around them is equal.

    Returns:
        Both pieces, or None where the reference cannot be read.
    """
    bounds = statement_bounds(reference)
    if not bounds:
        return None
    left, right = lines_of(reference), lines_of(text)
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    # What is inserted just before a statement may belong to the one above.
    first = bounds[max(0, bisect_left(bounds, start) - 1)]
    last = bounds[bisect_left(bounds, max(len(left) - end, first))]
    return "".join(left[first:last]), "".join(right[first : len(right) - (len(left) - last)])


@lru_cache(maxsize=16)
def statement_bounds(text: str) -> tuple[int, ...]:
    """0-based lines at which the text may be cut: the first line of each top-level statement, and both ends.

    Empty where the text cannot be read.
    """
    module = parse(text)
    if module is None:
        return ()
    firsts = {0}
    line_ends = [0]
    for node in module.body:
        decorators = (
            node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
        )
        first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
        # Two statements on one line stay together.
        if first >= line_ends[-1]:
            firsts.add(first)
        line_ends.append(node.end_lineno or node.lineno)
    return (*sorted(firsts), len(lines_of(text)))


def _common(left: list[str], right: list[str]) -> int:
    """How many lines are equal from the beginning."""
    for number, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return number
    return min(len(left), len(right))
