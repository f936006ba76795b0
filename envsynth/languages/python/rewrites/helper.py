"""A returned expression, moved into a private function of the module."""

from __future__ import annotations

import ast
import builtins
import symtable

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import Function, ScopeNode, parse

_MIN_NODES = 4
"""Of the expression's tree; less would be a helper for a name or a literal."""
_FORBIDDEN = (
    ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr | ast.Lambda | ast.GeneratorExp | ast.Starred | ast.JoinedStr
)


def extract_helper(function: Function, text: str, changed: frozenset[int]) -> tuple[int, str] | None:
    """Line and whole text with `return f(x)` as `return _helper(x)`; None where nothing is sure to stay the same.

    Names of the expression must be parameters that are always bound, or globals and builtins; the frame that the helper
    adds is the one thing that code could notice.
    """
    if isinstance(function.node, ast.AsyncFunctionDef) or function.node.name in _names(function.node, ast.Load):
        return None
    parameters = _steady_parameters(function.node)
    local = _local_names(function, text)
    for node in sorted(_returns(function.node), key=lambda one: (one.lineno not in changed, one.lineno)):
        value = node.value
        if value is None or value.lineno != value.end_lineno or sum(1 for _ in ast.walk(value)) < _MIN_NODES:
            continue
        if any(isinstance(one, _FORBIDDEN) for one in ast.walk(value)):
            continue
        read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
        bound = {one.id for one in ast.walk(value) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        spelled = read | {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)}
        if "super" in read or bound & local or any(_mangled(name) for name in spelled):
            continue
        free = read - bound
        if (free & local) - parameters or any(hasattr(builtins, name) for name in free & parameters):
            continue
        return node.lineno, _moved(function, node, value, sorted(free & parameters), text)
    return None


def _moved(function: Function, node: ast.Return, value: ast.expr, arguments: list[str], text: str) -> str:
    lines = lines_of(text)
    row = value.lineno - 1
    line = lines[row].encode()
    expression = line[value.col_offset : value.end_col_offset].decode()
    name = f"_{function.node.name.strip('_')}_returned_{node.lineno}"
    call = f"{name}({', '.join(arguments)})"
    lines[row] = line[: value.col_offset].decode() + call + line[value.end_col_offset :].decode()
    helper = f"def {name}({', '.join(arguments)}):\n    return ({expression})\n\n\n"
    if lines[0].endswith("\r\n"):
        helper = helper.replace("\n", "\r\n")
    top = _top_line(function, text)
    return "".join([*lines[: top - 1], helper, *lines[top - 1 :]])


def _top_line(function: Function, text: str) -> int:
    """1-based first line of the top-level statement that holds the function."""
    module = parse(text)
    assert module is not None
    for node in module.body:
        if node.lineno <= function.node.lineno <= (node.end_lineno or node.lineno):
            decorators = node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
            return min([node.lineno, *(one.lineno for one in decorators)])
    return function.first


def _returns(node: ast.AST) -> list[ast.Return]:
    """Return statements of the function itself, not of functions inside it."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, ScopeNode):
            found += _returns(child)
    return found


def _steady_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters that are never deleted, nor shared with a function inside."""
    one = node.args
    arguments = [*one.posonlyargs, *one.args, *one.kwonlyargs, one.vararg, one.kwarg]
    names = {argument.arg for argument in arguments if argument is not None}
    handlers = {child.name for child in ast.walk(node) if isinstance(child, ast.ExceptHandler) and child.name}
    shared = {name for child in ast.walk(node) if isinstance(child, ast.Nonlocal | ast.Global) for name in child.names}
    return names - _names(node, ast.Del) - handlers - shared


def _local_names(function: Function, text: str) -> set[str]:
    """Names that do not mean a global or builtin inside the function."""
    table = symtable.symtable(text, "module", "exec")
    found = {symbol.get_name() for symbol in _table(table, function).get_symbols() if not symbol.is_global()}
    return found | {"__class__"}


def _table(table: symtable.SymbolTable, function: Function) -> symtable.SymbolTable:
    line = function.node.lineno
    todo = [table]
    for one in todo:
        if one.get_type() == "function" and one.get_name() == function.node.name and one.get_lineno() in (
            line, function.first
        ):  # fmt: skip
            return one
        todo += one.get_children()
    return table


def _mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}
    return found | {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, context)
    }
