"""What decorators do to a test: parameters as loops over the rows that matter, patches and clocks as blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from envsynth.generators.repository.testcode import FunctionNode, Marked, TestModule, same

_BLOCK = re.compile(r"(^|\.)(freeze_time|travel|patch(\.object|\.dict)?|override_settings|catch_warnings|warns)$")
_INERT = re.compile(
    r"^(pytest\.)?mark\.|^(unittest\.)?(skip|expectedFailure)|^(staticmethod|classmethod|pytest\.fixture)"
)


class Patch(NamedTuple):
    """A decorator that changes what a test runs under."""

    source: str
    alias: str
    """The argument it gives to the test, or nothing."""
    block: bool
    """Whether it can be written as a `with` block."""


def patched(function: FunctionNode, owner: ast.ClassDef | None) -> list[Patch]:
    """The decorators of a test that are no marks, the innermost first."""
    names = [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls")]
    found = []
    nodes = [*reversed(function.decorator_list), *reversed(owner.decorator_list if owner is not None else [])]
    for node in nodes:
        source = ast.unparse(node)
        if _INERT.match(source):
            continue
        called = node.func if isinstance(node, ast.Call) else node
        block = isinstance(node, ast.Call) and _BLOCK.search(ast.unparse(called)) is not None
        gives = block and "patch" in ast.unparse(called) and _gives_argument(node)
        found.append(Patch(source, names.pop(0) if gives and names else "", block))
    return found


def inside(text: str, patch: Patch) -> str:
    """The code under a patch."""
    if not patch.block:
        return f"# decorated with @{patch.source}\n{text}"
    alias = f" as {patch.alias}" if patch.alias else ""
    return f"with {patch.source}{alias}:\n" + "\n".join(f"    {line}" if line else line for line in text.splitlines())


def _gives_argument(node: ast.expr) -> bool:
    """Whether a patch without a replacement hands its mock to the test."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).endswith("dict"):
        return False
    places = 2 if ast.unparse(node.func).endswith("object") else 1
    return len(node.args) <= places and not any(word.arg in ("new", "new_callable") for word in node.keywords)


def parametrised(function: FunctionNode, owner: ast.ClassDef | None) -> list[ast.Call]:
    """The parametrize marks of a test, its own first, then its class's."""
    marked: list[Marked] = [function] if owner is None else [function, owner]
    return [
        mark
        for node in marked
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize") and len(mark.args) >= 2
    ]


def parameter_names(mark: ast.Call) -> list[str]:
    """Names that a mark binds."""
    names = mark.args[0]
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return [part.strip() for part in names.value.split(",") if part.strip()]
    if isinstance(names, ast.List | ast.Tuple):
        return [str(part.value) for part in names.elts if isinstance(part, ast.Constant)]
    return []


def old_mark(mark: ast.Call, old: tuple[ast.ClassDef | None, FunctionNode] | None) -> ast.Call | None:
    """The mark of the same names at the start."""
    if old is None:
        return None
    return next((other for other in parametrised(old[1], old[0]) if same(other.args[0], mark.args[0])), None)


def looped(text: str, mark: ast.Call, module: TestModule, old: ast.Call | None, cases: Sequence[str]) -> str:
    """The code in a loop over the rows that fail; where they cannot be told apart, over the new ones, else all."""
    names, rows = parameter_names(mark), mark.args[1]
    indented = "\n".join(f"    {line}" if line else line for line in text.splitlines())
    if not isinstance(rows, ast.List | ast.Tuple):
        return f"for {', '.join(names)} in {ast.unparse(rows)}:\n{indented}"
    kept = _rows(rows.elts, old.args[1] if old else None, cases)
    shown = [_row(row, module) for row in kept]
    if len(shown) == 1 and len(names) >= 1 and "\n" not in shown[0]:
        return f"{', '.join(names)} = {shown[0]}\n{text}"
    listed = "\n".join(f"    {row}," for row in shown)
    return f"for {', '.join(names)} in [\n{listed}\n]:\n{indented}"


def _rows(rows: list[ast.expr], old: ast.expr | None, cases: Sequence[str]) -> list[ast.expr]:
    by_id = {_row_id(row): row for row in rows}
    if cases and None not in by_id and all(case in by_id for case in cases):
        return [row for row in rows if _row_id(row) in cases]
    if isinstance(old, ast.List | ast.Tuple):
        known = {ast.dump(row) for row in old.elts}
        return [row for row in rows if ast.dump(row) not in known] or rows
    return rows


def _row_id(row: ast.expr) -> str | None:
    """The id that pytest gives a row of plain values."""
    parts = row.elts if isinstance(row, ast.Tuple) else [row]
    texts = []
    for part in parts:
        value = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) else part
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str | int | float | bool | type(None)):
            return None
        texts.append(("-" if value is not part else "") + str(value.value))
    return "-".join(texts)


def _row(row: ast.expr, module: TestModule) -> str:
    if isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param"):
        parts = [ast.unparse(part) for part in row.args]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    source = ast.get_source_segment(module.text, row)
    return source if source and "\n" not in source else ast.unparse(row)
