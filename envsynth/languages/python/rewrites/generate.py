"""All rewrites of a reference: each function that it changes, written otherwise in one way at a time."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from envsynth.hunks import changed_lines, lines_of, name_of
from envsynth.languages.python.functions import Function, changed_functions, parse
from envsynth.languages.python.pieces import differing_pieces
from envsynth.languages.python.rewrites import flow
from envsynth.languages.python.rewrites.helper import extract_helper
from envsynth.languages.python.rewrites.names import rename_locals
from envsynth.languages.python.rewrites.order import reorder
from envsynth.languages.python.rewrites.spelling import respell
from envsynth.models import Variant, VariantFile

_LOOKS_AT_ITSELF = frozenset(
    {"locals", "vars", "dir", "eval", "exec", "compile", "_getframe", "currentframe", "stack", "getsource", "f_locals"}
)
"""Names in whose presence the spelling of a function may be part of what it does."""
_LOOKS_AT_FRAMES = re.compile(r"_getframe|currentframe|inspect\.stack|f_back|stacklevel|linecache|recursionlimit")


class Rewritten(NamedTuple):
    """A function written otherwise."""

    line: int
    """1-based line of the reference's file."""
    text: str
    """The whole module."""
    description: str


def rewrites(before: Mapping[str, str], after: Mapping[str, str]) -> list[Variant]:
    """Variants that behave as the reference does by construction; equal arguments give an equal list.

    They differ from it in spelling, line numbers, names of locals, and at most one private helper more.

    Args:
        before: text of each source file that the reference touches, by path, at the start.
        after: the same with the reference applied.
    """
    found: list[Variant] = []
    seen = set(after.values())
    names: Counter[str] = Counter()
    for path in sorted(after):
        if not path.endswith(".py") or before.get(path) == after[path]:
            continue
        for kind, rewritten in _of_module(before.get(path, ""), after[path]):
            if rewritten.text in seen or not _compiles(after[path], rewritten.text):
                continue
            seen.add(rewritten.text)
            name = name_of(kind, path, rewritten.line)
            names[name] += 1
            found.append(
                Variant(
                    name=name if names[name] == 1 else f"{name}:{names[name]}",
                    kind=kind,
                    path=path,
                    line=rewritten.line,
                    description=rewritten.description,
                    files=(VariantFile(path=path, text=rewritten.text),),
                )
            )
    return found


def _of_module(before: str, after: str) -> Iterator[tuple[str, Rewritten]]:
    module = parse(after)
    if module is None:
        return
    lines = lines_of(after)
    changed = changed_lines(before, after)
    for function in changed_functions(parse(before), module):
        if _looks_at_itself(function.node) or any("\t" in line for line in _own(function, lines)):
            continue
        for kind, rewrite in _ways(after).items():
            done = rewrite(function, after, changed)
            if done is not None:
                yield kind, done


def _ways(text: str) -> dict[str, Callable[[Function, str, frozenset[int]], Rewritten | None]]:
    """How a function may be written otherwise, by kind, in the order in which they are tried."""
    ways: dict[str, Callable[[Function, str, frozenset[int]], Rewritten | None]] = {
        "rename_locals": _whole(rename_locals, "locals renamed"),
        "reorder_statements": _whole(reorder, "independent assignments in another order"),
    }
    if not _LOOKS_AT_FRAMES.search(text):
        ways["extract_helper"] = _extract
    for kind, (step, what) in flow.STEPS.items():
        ways[kind] = _flow(step, what)
    ways["respell"] = _whole(respell, "the same syntax in another spelling")
    return ways


def _whole(
    rewrite: Callable[[Function, str], str | None], what: str
) -> Callable[[Function, str, frozenset[int]], Rewritten | None]:
    def apply(function: Function, text: str, _: frozenset[int]) -> Rewritten | None:
        new = rewrite(function, text)
        return None if new is None else Rewritten(function.first, new, f"`{function.name}`: {what}")

    return apply


def _flow(step: flow.Step, what: str) -> Callable[[Function, str, frozenset[int]], Rewritten | None]:
    def apply(function: Function, text: str, changed: frozenset[int]) -> Rewritten | None:
        lines = lines_of(text)
        inner = frozenset(line - function.first + 1 for line in changed)
        done = flow.rewritten("".join(_own(function, lines)), step, inner, text)
        if done is None:
            return None
        line, new = done
        module = [*lines[: function.first - 1], new, *lines[function.last :]]
        return Rewritten(function.first + line - 1, "".join(module), f"`{function.name}`: {what}")

    return apply


def _extract(function: Function, text: str, changed: frozenset[int]) -> Rewritten | None:
    done = extract_helper(function, text, changed)
    return None if done is None else Rewritten(*done, f"`{function.name}`: a returned expression in a function")


def _own(function: Function, lines: list[str]) -> list[str]:
    return lines[function.first - 1 : function.last]


def _looks_at_itself(node: ast.AST) -> bool:
    return any(
        (isinstance(one, ast.Name) and one.id in _LOOKS_AT_ITSELF)
        or (isinstance(one, ast.Attribute) and one.attr in _LOOKS_AT_ITSELF - {"compile", "eval", "exec"})
        for one in ast.walk(node)
    )


def _compiles(reference: str, text: str) -> bool:
    pieces = differing_pieces(reference, text)
    return pieces is not None and parse(pieces[1]) is not None
