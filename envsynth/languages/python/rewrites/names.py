"""Locals under other names; proven by equal bytecode."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import Function, ScopeNode, parse
from envsynth.languages.python.mutants.equivalence import compiled, same_bytecode
from envsynth.languages.python.pieces import differing_pieces

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def rename_locals(function: Function, text: str) -> str | None:
    """The module with every local of a function that may be renamed under another name; None where there is none."""
    names = {name: new for name in sorted(renamable(function.node)) if (new := fresh(name, "local", text))}
    if not names:
        return None
    lines = lines_of(text)
    places = [
        (node.lineno - 1, node.col_offset, node.id)
        for node in ast.walk(function.node) if isinstance(node, ast.Name) and node.id in names
    ]  # fmt: skip
    for row, column, name in sorted(places, reverse=True):
        # `ast` counts columns in bytes of UTF-8.
        line = lines[row].encode()
        if line[column : column + len(name.encode())] != name.encode():
            return None
        lines[row] = (line[:column] + names[name].encode() + line[column + len(name.encode()) :]).decode()
    new = "".join(lines)
    return new if _same(text, new, names) else None


def renamable(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that a function binds, and that nothing but plain uses in itself and its comprehensions spells."""
    barred = set(_arguments(function))
    stored = set[str]()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        barred.update(_spelled_otherwise(node))
        if isinstance(node, ScopeNode) and node is not function and not isinstance(node, _COMPREHENSIONS):
            barred.update(_names_in(node))
    return {name for name in stored - barred if not name.startswith("_")}


def _spelled_otherwise(node: ast.AST) -> Iterable[str]:
    """Names that a node spells by anything but a `Name`, or where renaming would mean more than a local."""
    match node:
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)) | ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.alias():
            return ((node.asname or node.name).split(".")[0],)
        # Names inside have no dependable place before Python 3.12.
        case ast.JoinedStr():
            return _names_in(node)
        case ast.comprehension(target=target):
            return _names_in(target)
    return ()


def _names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def fresh(name: str, suffix: str, text: str) -> str:
    """A name that the text does not spell; empty where none was found."""
    candidates = (f"{name}_{suffix}", f"{name}_{suffix}_2", f"{name}_{suffix}_3")
    return next((one for one in candidates if one not in text), "")


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    one = function.args
    for argument in (*one.posonlyargs, *one.args, *one.kwonlyargs, one.vararg, one.kwarg):
        if argument is not None:
            yield argument.arg


def _same(text: str, new: str, names: dict[str, str]) -> bool:
    pieces = differing_pieces(text, new)
    modules = [parse(piece) for piece in pieces or ()]
    codes = [compiled(module) for module in modules if module is not None]
    if len(codes) != 2 or codes[0] is None or codes[1] is None:
        return False
    return same_bytecode(codes[0], codes[1], names)
