"""A function in the spelling that the syntax tree's printer gives it; proven by equal trees."""

from __future__ import annotations

import ast
import sys

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import Function, parse
from envsynth.languages.python.pieces import differing_pieces


def respell(function: Function, text: str) -> str | None:
    """The module with a function printed anew: comments, blank lines, quotes, brackets and line breaks change."""
    if any(_newer_when_printed(one) for one in ast.walk(function.node)):
        return None
    node: ast.stmt = function.node
    for _ in range(function.depth):
        node = ast.If(test=ast.Constant(value=True), body=[node], orelse=[])
    try:
        printed = ast.unparse(ast.fix_missing_locations(node)).split("\n")[function.depth :]
    except (ValueError, RecursionError):
        return None
    lines = lines_of(text)
    end = "\r\n" if lines[function.first - 1].endswith("\r\n") else "\n"
    body = [line + end for line in printed]
    new = "".join([*lines[: function.first - 1], *body, *lines[function.last :]])
    pieces = differing_pieces(text, new)
    modules = [parse(piece) for piece in pieces or ()]
    if len(modules) != 2 or modules[0] is None or modules[1] is None:
        return None
    return new if ast.dump(modules[0]) == ast.dump(modules[1]) else None


def _newer_when_printed(node: ast.AST) -> bool:
    """Whether the printer may choose a form that the project's own interpreter is too old for."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return any(isinstance(one, ast.Starred) for one in node.slice.elts)
    return isinstance(node, ast.JoinedStr) and sys.version_info >= (3, 12)
