"""The functions of a module, and those that differ between two versions of it."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode = FunctionNode | ast.Lambda | ast.ClassDef | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Function(NamedTuple):
    """A function or method, not one inside another function."""

    name: str
    """Qualified, such as `Parser.parse`; further ones of the name get `#2` and so on."""
    node: FunctionNode
    first: int
    """1-based first line, decorators included."""
    last: int
    depth: int
    """How many classes and blocks stand around it."""


def parse(text: str) -> ast.Module | None:
    """The module, or None where this interpreter cannot read it."""
    if "\r" in text.replace("\r\n", ""):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def functions(module: ast.Module) -> dict[str, Function]:
    """The functions of a module by qualified name, in the order of the text."""
    seen: Counter[str] = Counter()
    found: dict[str, Function] = {}
    for prefix, node, depth in _functions(module, "", 0):
        name = f"{prefix}{node.name}"
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}#{seen[name]}"
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        found[name] = Function(name, node, first, node.end_lineno or node.lineno, depth)
    return found


def changed_functions(before: ast.Module | None, after: ast.Module) -> list[Function]:
    """Functions of `after` that `before` lacks or has otherwise."""
    old = functions(before) if before is not None else {}
    return [
        function for name, function in functions(after).items()
        if name not in old or ast.dump(old[name].node) != ast.dump(function.node)
    ]  # fmt: skip


def _functions(parent: ast.AST, prefix: str, depth: int) -> Iterator[tuple[str, FunctionNode, int]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix, node, depth
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.", depth + 1)
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _functions(node, prefix, depth + 1)
