"""What PyDriller says of a commit that remained: changed functions, and whether the code means anything else now."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from envsynth.cache import Cache
from envsynth.errors import GeneratorError, boundary
from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.roles import RoleBook
from envsynth.models import Role

if TYPE_CHECKING:
    from pydriller.domain.commit import ModifiedFile


class Drilled(NamedTuple):
    """Facts about a commit's source files."""

    functions: tuple[str, ...]
    """Names of changed functions and methods, as `Class.method`, sorted."""
    same_code: bool
    """Whether only comments, docstrings and layout differ."""


def drill(git: GitDir, oid: str, role: RoleBook, cache: Cache) -> Drilled:
    """Look at one commit with PyDriller."""
    import pydriller.git

    functions: set[str] = set()
    same = True
    # PyDriller writes to the clone's configuration when it opens it.
    with cache.lock(f"drill-{git.path.name}"):
        opened = pydriller.git.Git(str(git.path))
        files = opened.get_commit(oid).modified_files
    for file in files:
        path = file.new_path or file.old_path or ""
        if role(PurePosixPath(path).as_posix()) is not Role.SOURCE or not path.endswith(".py"):
            continue
        same = same and same_code(_text(file.content_before), _text(file.content))
        functions |= _functions(file, oid)
    opened.clear()
    return Drilled(tuple(sorted(functions)), same)


def same_code(before: str | None, after: str | None) -> bool:
    """Whether two sources of a module differ in comments, docstrings and layout only."""
    if before is None or after is None:
        return False
    try:
        return ast.dump(_bare(before)) == ast.dump(_bare(after))
    except (SyntaxError, ValueError, RecursionError):
        return False


def _bare(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _functions(file: ModifiedFile, where: str) -> set[str]:
    try:
        with boundary(GeneratorError, "changed functions cannot be listed", where=where):
            return {method.name.replace("::", ".") for method in file.changed_methods}
    except GeneratorError:
        # Names are a nicety of the text; a file the analyser cannot read loses nothing else.
        return set()


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")
