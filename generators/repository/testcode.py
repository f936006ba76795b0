"""Reading test modules: which tests there are, what they need, and what a commit changed in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Marked = FunctionNode | ast.ClassDef


class Imported(NamedTuple):
    """A name that a module imports."""

    module: str
    """With leading dots for a relative import; the module itself for `import x`."""
    name: str
    """Name inside the module; empty for `import x`."""
    alias: str
    """The local name."""

    def statement(self) -> str:
        """As it is written."""
        suffix = f" as {self.alias}" if self.alias != (self.name or self.module.split(".")[0]) else ""
        return f"from {self.module} import {self.name}{suffix}" if self.name else f"import {self.module}{suffix}"


class TestModule:
    """A parsed test module."""

    __test__ = False

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.lines = text.splitlines()
        self.tree = ast.parse(text)

    @cached_property
    def imports(self) -> dict[str, Imported]:
        """Imports by local name, of the whole module, those inside functions excepted."""
        found: dict[str, Imported] = {}
        for node in _module_level(self.tree.body):
            for imported in imports_of(node):
                found.setdefault(imported.alias, imported)
        return found

    @cached_property
    def open_ended(self) -> bool:
        """Whether names come from `import *`."""
        return "*" in self.imports

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Functions and classes of the module by name."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {node.name: node for node in _module_level(self.tree.body) if isinstance(node, kinds)}

    @cached_property
    def constants(self) -> dict[str, ast.stmt]:
        """Assignments of the module by name."""
        found: dict[str, ast.stmt] = {}
        for node in _module_level(self.tree.body):
            if isinstance(node, ast.With | ast.For):
                found |= {name: node for name in names_bound(node) if name not in found}
                continue
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            for name in (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)):
                found.setdefault(name, node)
        return found

    def find(self, names: tuple[str, ...]) -> tuple[ast.ClassDef | None, FunctionNode] | None:
        """The class and the function of a test, base classes of the same module included."""
        owner: ast.ClassDef | None = None
        body: list[ast.stmt] = list(self.definitions.values())
        for name in names[:-1]:
            owner = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == name), None)
            if owner is None:
                return None
            body = owner.body
        function = _function(body, names[-1])
        if function is None and owner is not None:
            function = next((found for base in self._bases(owner) if (found := _function(base.body, names[-1]))), None)
        return (owner, function) if function is not None else None

    def segment(self, node: ast.AST) -> str:
        """Source of a statement with its decorators and the comments right above it, dedented."""
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
        last = node.end_lineno  # type: ignore[attr-defined]
        column = node.col_offset  # type: ignore[attr-defined]
        while first > 1 and self.lines[first - 2].strip().startswith("#") and _indent(self.lines[first - 2]) == column:
            first -= 1
        if self.lines[first - 1][:column].strip():
            return ast.unparse(node)
        lines = self.lines[first - 1 : last]
        return "\n".join(line[column:] if not line[:column].strip() else line for line in lines).rstrip()

    def _bases(self, owner: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in owner.bases:
            node = self.definitions.get(base.id) if isinstance(base, ast.Name) else None
            if isinstance(node, ast.ClassDef) and node is not owner:
                yield node
                yield from self._bases(node)


def parse_module(path: str, text: str | None) -> TestModule | None:
    """A test module, or None where the text is no Python that this interpreter reads."""
    if text is None:
        return None
    try:
        return TestModule(path, text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def imports_of(node: ast.AST) -> Iterator[Imported]:
    """What an import statement binds."""
    if isinstance(node, ast.Import):
        for name in node.names:
            yield Imported(name.name, "", name.asname or name.name.split(".")[0])
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for name in node.names:
            yield Imported(module, name.name, name.asname or name.name)


def names_read(*nodes: ast.AST) -> set[str]:
    """Names that code reads."""
    return {
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def names_bound(*nodes: ast.AST) -> set[str]:
    """Names that code binds: assignments, definitions, imports, loop variables."""
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store | ast.Del):
                found.add(part.id)
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
                found |= {part.name} if part.name else set()
            elif isinstance(part, ast.arg):
                found.add(part.arg)
            else:
                found |= {imported.alias for imported in imports_of(part)}
    return found


def names_changed(node: ast.stmt) -> set[str]:
    """Names that a statement binds, or may change in place: the base of a call or of an assigned part."""
    found = names_bound(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            for candidate in (part.func, *part.args):
                base = _base(candidate)
                if base is not None and not (candidate is part.func and isinstance(candidate, ast.Name)):
                    found.add(base)
        elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
            base = _base(part)
            if base is not None:
                found.add(base)
    return found


def body_without_docstring(node: FunctionNode) -> list[ast.stmt]:
    """The statements that do something."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else list(node.body)


def same(left: ast.AST | None, right: ast.AST | None) -> bool:
    """Whether two pieces of code mean the same."""
    return left is not None and right is not None and ast.dump(left) == ast.dump(right)


def _base(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _function(body: list[ast.stmt], name: str) -> FunctionNode | None:
    found = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name]
    return found[-1] if found else None


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, with those inside `if` and `try`."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _module_level([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            inside = [part for handler in node.handlers for part in handler.body]
            yield from _module_level([*node.body, *inside, *node.orelse, *node.finalbody])
        else:
            yield node


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
