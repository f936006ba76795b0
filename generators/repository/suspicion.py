"""What a reader, without running anything, has against a function that a model wrote in place of another."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from importlib import resources
from typing import NamedTuple

from envsynth.generators.repository.breakable import parsed
from envsynth.generators.repository.drill import same_code
from envsynth.generators.repository.testcode import (
    FunctionNode,
    body_without_docstring,
    imports_of,
    names_bound,
    names_read,
)
from envsynth.generators.repository.transplant import Place
from envsynth.models import Finding

__all__ = ["against", "meaning_the_same"]

_KEPT = 0.4
"""Share of its code that a function changed on purpose must still have in common with what it was."""
_LEAST_SHARED = 6
"""Lines; a shorter function may change more of itself."""
_ALWAYS = frozenset({*dir(builtins), "__file__", "__name__", "__class__", "__doc__", "__package__", "__spec__"})


class _Words(NamedTuple):
    names: frozenset[str]
    attributes: frozenset[str]
    telling: re.Pattern[str]


def against(place: Place, node: FunctionNode, *, subtle: bool) -> list[Finding]:
    """What is wrong with a written function, the worst first; empty: nothing that can be seen.

    Args:
        place: what it replaces.
        node: the written function.
        subtle: whether it must still look like the old one.
    """
    found = [*_emptied(node), *_reaching_out(place, node), *_unknown(place, node), *_telling(place, node)]
    if subtle and not found:
        found += _too_different(place, node)
    return found


def meaning_the_same(before: str, after: str) -> bool:
    """Whether two versions of a file differ in comments and layout only."""
    return same_code(before, after)


def _emptied(node: FunctionNode) -> Iterator[Finding]:
    body = body_without_docstring(node)
    if all(isinstance(part, ast.Pass | ast.Raise) or _constant(part) for part in body):
        yield Finding(rule="function_emptied", message="the function does nothing any more")


def _constant(statement: ast.stmt) -> bool:
    """Whether a statement is a constant, or returns one."""
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _reaching_out(place: Place, node: FunctionNode) -> Iterator[Finding]:
    """Imports, declarations, calls and assignments by which a function does more than its own work."""
    words = _words()
    allowed = {ast.dump(part) for part in ast.walk(place.node) if isinstance(part, ast.Import | ast.ImportFrom)}
    for part in ast.walk(node):
        if isinstance(part, ast.Import | ast.ImportFrom) and ast.dump(part) not in allowed:
            yield _out(f"it imports `{ast.unparse(part)}`; the file's own imports must do")
    old_names, new_names = names_read(place.node), names_read(node)
    for name in sorted((new_names - old_names) & words.names):
        yield _out(f"it uses `{name}`")
    for name in sorted((_attributes(node) - _attributes(place.node)) & words.attributes):
        yield _out(f"it uses `.{name}`")
    for name in sorted(_declared(node) - _declared(place.node)):
        yield _out(f"it declares `{name}` global or nonlocal")
    for name in sorted(_changed_bases(node) - _changed_bases(place.node)):
        yield _out(f"it assigns to a part of `{name}`, which is not its own")


def _out(message: str) -> Finding:
    return Finding(rule="reaches_outside", message=message)


def _attributes(node: ast.AST) -> set[str]:
    """Attributes, and texts that could name one."""
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)} | _texts(node)


def _texts(node: ast.AST) -> set[str]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _declared(node: ast.AST) -> set[str]:
    return {name for part in ast.walk(node) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}


def _changed_bases(node: FunctionNode) -> set[str]:
    """Names from outside the function of which a part is assigned or deleted: `os` of `os.sep = ''`."""
    own = names_bound(node) - _declared(node)
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
            base: ast.AST = part
            while isinstance(base, ast.Attribute | ast.Subscript | ast.Call):
                base = base.func if isinstance(base, ast.Call) else base.value
            if isinstance(base, ast.Name) and base.id not in own:
                found.add(base.id)
    return found


def _unknown(place: Place, node: FunctionNode) -> Iterator[Finding]:
    """Names that nothing binds: such a bug is found by any linter."""
    module = parsed(place.text)
    if module is None:
        return
    stars = any(found.name == "*" for part in ast.walk(module) for found in imports_of(part))
    known = names_bound(module) | names_bound(node) | names_read(place.node) | _ALWAYS
    for name in sorted(names_read(node) - known):
        if not stars:
            yield Finding(rule="unknown_name", message=f"`{name}` is not defined anywhere")


def _telling(place: Place, node: FunctionNode) -> Iterator[Finding]:
    """New names and texts that say what was done."""
    new = _spoken(node) - _spoken(place.node)
    for text in sorted(new):
        found = _words().telling.search(_apart(text))
        if found is not None:
            yield Finding(rule="tells_the_bug", message=f"{text[:80]!r} says {found[0]!r}")


def _spoken(node: ast.AST) -> set[str]:
    """Names that code binds, and its texts."""
    said = names_bound(node)
    said |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return said | _texts(node)


def _apart(text: str) -> str:
    """A name's words with underscores between them, in lower case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()


def _too_different(place: Place, node: FunctionNode) -> Iterator[Finding]:
    old = [line for part in body_without_docstring(place.node) for line in ast.unparse(part).splitlines()]
    new = [line for part in body_without_docstring(node) for line in ast.unparse(part).splitlines()]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if len(old) >= _LEAST_SHARED and matcher.ratio() < _KEPT:
        shared = sum(block.size for block in matcher.get_matching_blocks())
        yield Finding(rule="too_different", message=f"only {shared} of {len(old)} lines are as they were")


@cache
def _words() -> _Words:
    table = tomllib.loads((resources.files(__package__) / "words" / "out_of_place.toml").read_text("utf-8"))
    telling = "|".join(map(re.escape, table["telling"]))
    return _Words(
        frozenset(table["names"]), frozenset(table["attributes"]), re.compile(rf"(?<![a-z])(?:{telling})(?![a-z])")
    )
