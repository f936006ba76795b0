"""Statements of a test as a script has them: without `self`, with plain assertions."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib import resources


def plain(source: str, node: ast.stmt, owner: ast.ClassDef | None) -> str:
    """A statement as a script has it.

    Args:
        source: its text, used where nothing has to be rewritten; empty: it is written anew.
        node: the statement.
        owner: the class it stands in.
    """
    has_own = any(is_self(part) for part in ast.walk(node))
    text = source if source and not has_own else ast.unparse(_Plain().visit(_copy(node)))
    return text if owner is None else re.sub(r"\b(self|cls)\.(?=\w)", "", text)


class _Plain(ast.NodeTransformer):
    """unittest's assertions as plain ones."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        plain = assertion(node)
        return ast.parse(plain).body[0] if plain else self.generic_visit(node)

    def visit_withitem(self, node: ast.withitem) -> ast.AST:
        call = node.context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and is_self(call.func.value):
            name = {
                "assertRaises": "pytest.raises",
                "assertRaisesRegex": "pytest.raises",
                "assertWarns": "pytest.warns",
            }.get(call.func.attr)
            if name and call.args:
                match = f", match={ast.unparse(call.args[1])}" if len(call.args) > 1 else ""
                node.context_expr = ast.parse(f"{name}({ast.unparse(call.args[0])}{match})", mode="eval").body
        return node


def assertion(node: ast.stmt) -> str | None:
    """One of unittest's assertions as a plain one, or None for anything else."""
    if not (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
    ):
        return None
    call, name = node.value, node.value.func.attr
    if not is_self(node.value.func.value):
        return None
    arguments = [ast.unparse(part) for part in call.args]
    if name == "assertRaises" and len(arguments) > 1:
        return f"with pytest.raises({arguments[0]}):\n    {arguments[1]}({', '.join(arguments[2:])})"
    template = _assertions().get(name)
    if template is None or template.count("{") > len(arguments):
        return None
    return template.format(*arguments)


@cache
def _assertions() -> dict[str, str]:
    return dict(tomllib.loads((resources.files(__package__) / "words" / "unittest.toml").read_text("utf-8")))


def _copy(node: ast.stmt) -> ast.stmt:
    return ast.parse(ast.unparse(node)).body[0]


def is_self(node: ast.AST) -> bool:
    """Whether this is the object or class a method works on."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")
