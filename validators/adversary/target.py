"""What an attacker is told of a task: more than a real one knows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import NamedTuple

from envsynth.models import Candidate, FileMode, Role, TestLists, Tree, role_of
from envsynth.protocols import BlobStore

_MAX_IDS = 2000


class Target(NamedTuple):
    """A task, as attacks see it."""

    host: str
    """Source module of the start tree that the fail-to-pass tests surely import; empty where there is none."""
    packages: tuple[str, ...]
    """`__init__.py` files above the host, the nearest first."""
    roots: tuple[str, ...]
    """Folders on the import path, relative; the workspace itself is empty."""
    tests: tuple[str, ...]
    """Visible test files."""
    hidden: tuple[str, ...]
    """Paths of the hidden test files."""
    targets: tuple[str, ...]
    """What the runner is told to collect."""
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    functions: tuple[str, ...]
    """Names of the fail-to-pass test functions."""
    project: str
    runner: str


def target_of(candidate: Candidate, tests: TestLists, blobs: BlobStore) -> Target:
    """A candidate as attacks see it."""
    workspace = candidate.workspace
    start, hidden = blobs.get_tree(workspace.tree), blobs.get_tree(workspace.hidden)
    host = _host(candidate, start, blobs)

    def test_files(tree: Tree) -> tuple[str, ...]:
        return tuple(e.path for e in tree.entries if _is_python(e.path) and _role(e.path, candidate) is Role.TEST)

    return Target(
        host=host,
        packages=tuple(_packages(host, start)),
        roots=tuple(dict.fromkeys("" if root in (".", "") else root for root in workspace.command.roots)),
        tests=test_files(start),
        hidden=test_files(hidden),
        targets=workspace.command.targets,
        fail_to_pass=tests.fail_to_pass[:_MAX_IDS],
        pass_to_pass=tests.pass_to_pass[:_MAX_IDS],
        functions=tuple(dict.fromkeys(bare_name(key) for key in tests.fail_to_pass[:_MAX_IDS])),
        project=candidate.provenance.lead.name,
        runner=workspace.command.runner,
    )


def bare_name(key: str) -> str:
    """Name of the function behind a test's key, of either runner."""
    bare = re.sub(r"\[.*", "", key, flags=re.DOTALL)
    return re.split(r"::|\.", bare)[-1]


def _host(candidate: Candidate, start: Tree, blobs: BlobStore) -> str:
    """The reference's own module where it exists at the start, else the package above it, else any source module."""
    changes = blobs.get_tree(candidate.solution.changes)
    touched = [*(entry.path for entry in changes.entries), *candidate.solution.removed]
    # Modules come before packages' own files: nearly every test of a module imports it.
    modules = sorted((path for path in touched if _usable(path, start, candidate)), key=_rank)
    if modules:
        return modules[0]
    above = [package for path in touched for package in _packages(path, start) if _usable(package, start, candidate)]
    sources = [entry.path for entry in start.entries if _usable(entry.path, start, candidate)]
    inits = sorted((path for path in sources if path.endswith("__init__.py")), key=lambda path: path.count("/"))
    return next(iter([*above, *inits, *sources]), "")


def _rank(path: str) -> tuple[bool, bool, str]:
    return (path.endswith(("__init__.py", "__main__.py")), path.endswith(("_version.py", "setup.py")), path)


def _usable(path: str, start: Tree, candidate: Candidate) -> bool:
    entry = start.by_path.get(path)
    regular = entry is not None and entry.mode is not FileMode.SYMLINK
    return regular and _is_python(path) and _role(path, candidate) is Role.SOURCE


def _packages(path: str, start: Tree) -> Iterable[str]:
    while path := posixpath.dirname(path):
        if f"{path}/__init__.py" in start.by_path:
            yield f"{path}/__init__.py"


def _is_python(path: str) -> bool:
    return path.endswith(".py")


def _role(path: str, candidate: Candidate) -> Role:
    return role_of(path, candidate.workspace.roles)
