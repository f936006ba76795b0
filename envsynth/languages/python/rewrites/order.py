"""Adjacent assignments in the other order, where neither can notice the other."""

from __future__ import annotations

import ast
from itertools import pairwise

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import Function


def reorder(function: Function, text: str) -> str | None:
    """The module with one pair of neighbouring assignments swapped; None where no pair is sure to be independent."""
    arguments = function.node.args
    parameters = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    deleted = {
        node.id for node in ast.walk(function.node) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)
    }
    elsewhere = {
        name for node in ast.walk(function.node) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names
    }
    for block in _blocks(function.node):
        for left, right in pairwise(block):
            names = _target(left), _target(right)
            if "" in names or names[0] == names[1] or elsewhere & set(names):
                continue
            if all(_plain(one, (parameters - deleted) - set(names)) for one in (left, right)):
                swapped = _swap(left, right, text)
                if swapped is not None:
                    return swapped
    return None


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    found = []
    for one in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(one, field, None)
            if isinstance(block, list) and not isinstance(one, ast.ClassDef):
                found.append(block)
    return found


def _target(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


def _plain(node: ast.stmt, readable: set[str]) -> bool:
    """Whether an assignment's value cannot raise, run code or be seen by its neighbour: literals and parameters."""
    if not isinstance(node, ast.Assign):
        return False
    for one in ast.walk(node.value):
        if isinstance(one, ast.Name):
            if one.id not in readable:
                return False
        elif isinstance(one, ast.Dict):
            if not all(isinstance(key, ast.Constant) for key in one.keys):
                return False
        elif isinstance(one, ast.Compare):
            if not all(isinstance(operator, ast.Is | ast.IsNot) for operator in one.ops):
                return False
        elif not isinstance(one, ast.Constant | ast.List | ast.Tuple | ast.Load | ast.Is | ast.IsNot):
            return False
    return True


def _swap(left: ast.stmt, right: ast.stmt, text: str) -> str | None:
    """The text with two statements swapped that have whole lines of their own, one below the other."""
    lines = lines_of(text)
    if left.end_lineno is None or right.end_lineno is None or left.end_lineno + 1 != right.lineno:
        return None
    first, second = lines[left.lineno - 1 : left.end_lineno], lines[right.lineno - 1 : right.end_lineno]
    if any(lines[one.lineno - 1][: one.col_offset].strip() for one in (left, right)) or not second[-1].endswith("\n"):
        return None
    if any(";" in line for line in (*first, *second)):
        return None
    return "".join([*lines[: left.lineno - 1], *second, *first, *lines[right.end_lineno :]])
