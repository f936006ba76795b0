"""Proof that two texts of a module behave alike, where that can be shown without running them."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType

from envsynth.languages.python.functions import parse
from envsynth.languages.python.pieces import differing_pieces

_READS_DOCS = re.compile(r"__doc__|getdoc|doctest|docopt|\.help\b")
_READS_MODULE_DOC = re.compile(r"(?<![\w.])__doc__|getdoc|doctest|docopt|sys\.modules")
_VERSIONS = ("__version__", "__version_info__", "version_info", "VERSION")
_LEAVING = ast.Return | ast.Raise | ast.Break | ast.Continue
_PLAIN = ast.Expr | ast.Pass | _LEAVING


def why_equivalent(reference: str, text: str, elsewhere: str = "") -> str:
    """Why a module's new text behaves as the reference's does; empty where that is not proven.

    Line numbers of errors are not behaviour, and documentation is none where nothing reads it.

    Args:
        reference: the module of the reference.
        text: the module of the variant.
        elsewhere: other files of the reference, which may read what this module offers.
    """
    pieces = differing_pieces(reference, text)
    left, right = (parse(piece) for piece in pieces or ("(", "("))
    if left is None or right is None:
        return ""
    if ast.dump(left) == ast.dump(right):
        return "only comments, blank lines or spelling differ"
    if not _reads_docs(reference, _READS_MODULE_DOC):
        # Where it begins further down, a piece's first statement is no docstring and nothing reads it.
        left, right = (_without_first_text(module) for module in (left, right))
    if not _reads_docs(reference, _READS_DOCS):
        left, right = _without_docs(left), _without_docs(right)
    if ast.dump(left) == ast.dump(right):
        return "only documentation strings differ, and nothing in the file reads them"
    left, right = (_Asleep().visit(module) for module in (left, right))
    if ast.dump(left) == ast.dump(right):
        return "only what never runs differs: dead code, type-checking blocks, overloads or annotations of locals"
    if _same_code(left, right):
        return "compiles to the same bytecode"
    if not any(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign) for node in (*left.body, *right.body)):
        return ""
    texts = (reference, text, elsewhere)
    left, right = (_without_unused_imports(module, texts) for module in (left, right))
    if _same_code(left, right):
        return "only unused imports of the standard library differ"
    left, right = (_without_versions(module, texts) for module in (left, right))
    return "only the version number differs" if _same_code(left, right) else ""


@lru_cache(maxsize=32)
def _reads_docs(text: str, how: re.Pattern[str]) -> bool:
    return bool(how.search(text))


def same_bytecode(left: CodeType, right: CodeType, names: dict[str, str] | None = None) -> bool:
    """Whether two code objects do the same, line numbers aside.

    Args:
        left: code.
        right: code.
        names: what locals of `left` are called in `right`.
    """
    renamed = names or {}

    def called(variables: Sequence[str]) -> tuple[str, ...]:
        return tuple(renamed.get(name, name) for name in variables)

    return (
        left.co_code == right.co_code
        and left.co_names == right.co_names
        and called(left.co_varnames) == right.co_varnames
        and called(left.co_freevars) == right.co_freevars
        and called(left.co_cellvars) == right.co_cellvars
        and (left.co_name, left.co_flags) == (right.co_name, right.co_flags)
        and (left.co_argcount, left.co_posonlyargcount, left.co_kwonlyargcount)
        == (right.co_argcount, right.co_posonlyargcount, right.co_kwonlyargcount)
        and getattr(left, "co_exceptiontable", b"") == getattr(right, "co_exceptiontable", b"")
        and _same_constants(left.co_consts, right.co_consts, renamed)
    )


def _same_constants(left: Sequence[object], right: Sequence[object], names: dict[str, str]) -> bool:
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if isinstance(one, CodeType) and isinstance(other, CodeType):
            if not same_bytecode(one, other, names):
                return False
        elif isinstance(one, tuple) and isinstance(other, tuple):
            if not _same_constants(one, other, names):
                return False
        elif isinstance(one, frozenset) and isinstance(other, frozenset):
            if sorted(map(repr, one)) != sorted(map(repr, other)):
                return False
        # `repr` tells -0.0 from 0.0 and 1 from True, which are equal.
        elif type(one) is not type(other) or repr(one) != repr(other):
            return False
    return True


def compiled(module: ast.Module) -> CodeType | None:
    """The module's code, or None where it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(ast.fix_missing_locations(module), "module", "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _same_code(left: ast.Module, right: ast.Module) -> bool:
    codes = compiled(left), compiled(right)
    return codes[0] is not None and codes[1] is not None and same_bytecode(codes[0], codes[1])


def _without_first_text(module: ast.Module) -> ast.Module:
    """A module without its docstring."""
    if module.body and _is_text(module.body[0]):
        module.body = module.body[1:]
    return module


def _without_docs(module: ast.Module) -> ast.Module:
    """Docstrings and strings that stand as statements, emptied or gone."""
    module = _Undocumented().visit(module)
    return ast.fix_missing_locations(module)


class _Undocumented(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                kept = [one for one in block if not _is_text(one)]
                setattr(node, field, kept if kept or not block or field != "body" else [ast.Pass()])
        return node


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class _Asleep(ast.NodeTransformer):
    """Removes what never runs: dead code, type-checking blocks, overloads, and annotations of a function's locals."""

    def __init__(self) -> None:
        self._inside = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, _until_it_leaves(block))
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return node
        return node.orelse or [ast.Pass()]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if any(ast.unparse(one) in ("overload", "typing.overload", "t.overload") for one in node.decorator_list):
            return ast.Pass()
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        inside, self._inside = self._inside, 0
        self.generic_visit(node)
        self._inside = inside
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        # An annotation makes the name local, so it only goes where the assignment does the same.
        if not self._inside or node.value is None or not isinstance(node.target, ast.Name):
            return node
        return ast.Assign(targets=[node.target], value=node.value)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._inside += 1
        self.generic_visit(node)
        self._inside -= 1
        return node


def _until_it_leaves(block: list[ast.stmt]) -> list[ast.stmt]:
    """A block without plain statements after one that leaves it; what binds a name or yields has a say unrun."""
    ends = (number for number, one in enumerate(block) if isinstance(one, _LEAVING))
    end = next(ends, len(block))
    inert = all(isinstance(one, _PLAIN) and not _has_a_say(one) for one in block[end + 1 :])
    return block[: end + 1] if inert else block


def _has_a_say(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr) for one in ast.walk(node))


def _unread(name: str, texts: tuple[str, str, str]) -> bool:
    """Whether a name is spelled in no text but where it is made."""
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    reference, text, elsewhere = (len(pattern.findall(one)) for one in texts)
    return reference <= 1 and text <= 1 and not elsewhere


def _without_unused_imports(module: ast.Module, texts: tuple[str, str, str]) -> ast.Module:
    """Without top-level imports of the standard library whose name is not spelled anywhere else."""

    def unused(alias: ast.alias, where: str) -> bool:
        top = (where or alias.name).split(".")[0]
        name = alias.asname or alias.name
        return (
            top in sys.stdlib_module_names and top not in ("__future__", "antigravity", "this") and "." not in name
            and _unread(name, texts)
        )  # fmt: skip

    body: list[ast.stmt] = []
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not (isinstance(node, ast.ImportFrom) and node.level):
            where = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            node.names = [alias for alias in node.names if not unused(alias, where)]
            if not node.names:
                continue
        body.append(node)
    module.body = body
    return module


def _without_versions(module: ast.Module, texts: tuple[str, str, str]) -> ast.Module:
    """Without assignments of the version that the file itself never reads."""

    def version(node: ast.stmt) -> bool:
        return (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in _VERSIONS
            and _unread(node.targets[0].id, texts)
        )  # fmt: skip

    module.body = [node for node in module.body if not version(node)]
    return module
