"""What a test function asserts, as its syntax tree shows it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from envsynth.languages.python.literals import is_literal


class Span(NamedTuple):
    """A piece of source: 1-based lines, columns in bytes, as in `ast`."""

    line: int
    column: int
    end_line: int
    end_column: int


def part_of(side: ast.expr) -> ast.expr | None:
    """A part of an expression that might stand in its place."""
    match side:
        case ast.BinOp():
            return side.left
        case ast.Subscript() | ast.Attribute():
            return side.value if not isinstance(side.value, ast.Name) else None
        case ast.Call(args=[only], keywords=[]) if not isinstance(only, ast.Starred):
            return only
    return None


def asks_unknown(side: ast.expr, known: Collection[str]) -> bool:
    """Whether an expression may hold a result of the code under test.

    Args:
        side: of a comparison.
        known: names that hold constants.
    """
    for part in ast.walk(side):
        if isinstance(part, ast.Attribute | ast.Await):
            return True
        if isinstance(part, ast.Name) and part.id not in known and not hasattr(builtins, part.id):
            return True
    return False


def literal_names(node: ast.AST) -> frozenset[str]:
    """Names that a function binds to literals and to nothing else."""
    bound: dict[str, int] = {}
    literal: dict[str, int] = {}
    for part in ast.walk(node):
        match part:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                bound[part.id] = bound.get(part.id, 0) + 1
            case ast.Assign(targets=[ast.Name(id=name)]) if is_literal(part.value):
                literal[name] = literal.get(name, 0) + 1
    return frozenset(name for name, times in literal.items() if bound[name] == times)


def is_text(node: ast.AST) -> bool:
    """Whether a node is a text or bytes that are not empty."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and bool(node.value)


def expects_error(call: ast.Call) -> bool:
    """Whether a call, as a context, demands an exception."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("raises", "assertRaises", "assertRaisesRegex")


def expected_errors(module: ast.Module) -> Iterator[ast.expr]:
    """Exceptions that a module's tests expect, by name."""
    for node in ast.walk(module):
        match node:
            case ast.Call(args=[ast.Name() | ast.Attribute() as error, *_]) if expects_error(node):
                yield error


def asserts(call: ast.Call) -> bool:
    """Whether a call is one of an assert method."""
    return isinstance(call.func, ast.Attribute) and call.func.attr.startswith("assert")


def span_of(node: ast.AST) -> Span:
    """Where a node stands."""
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def parameter_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Names that a table of cases gives values to."""
    names: set[str] = set()
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as text), *_]):
                names.update(name.strip() for name in text.split(","))
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Tuple() | ast.List() as several, *_]):
                names.update(str(one.value) for one in several.elts if isinstance(one, ast.Constant))
    return frozenset(name for name in names if name.isidentifier())


def statements_of(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a function in order, those of its blocks after it; not those of functions inside it."""
    inner: list[list[ast.stmt]] = []
    for statement in body:
        yield statement
        match statement:
            case ast.With() | ast.AsyncWith() | ast.For() | ast.AsyncFor() | ast.If() | ast.While() | ast.Try():
                inner.append(statement.body)
    for block in inner:
        yield from statements_of(block)


def literals_assigned_once(node: ast.AST) -> dict[str, ast.expr]:
    """Names that are bound once, to a literal, and read once."""
    bound: dict[str, list[ast.expr | None]] = {}
    read: dict[str, int] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if isinstance(part.ctx, ast.Load):
                read[part.id] = read.get(part.id, 0) + 1
            else:
                bound.setdefault(part.id, []).append(None)
        if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            bound.setdefault(part.targets[0].id, []).append(part.value)
    return {
        name: values[0] or values[1]  # type: ignore[misc]
        for name, values in bound.items()
        if len(values) == 2 and read.get(name) == 1 and any(value and is_literal(value) for value in values)
    }
