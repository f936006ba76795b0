"""What a path is to a solution, and which paths are taken from an episode at all."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from .contract import JSON
from .trees import Manifest, word_table

GUARDED = ("test", "config")
"""Roles that are never taken from an episode."""
_IMPORTABLE = (".py", ".pyw", ".so", ".pyd")
_COLLECTED = re.compile(r"test_|.*_test\.py$|(conftest|tests|__init__)\.py$")
"""Names of modules that a runner loads by their path."""


class Roles:
    """A task's role rules: the first pattern found in a path decides; none: `other`."""

    def __init__(self, rules: JSON) -> None:
        self._rules = [(re.compile(rule["pattern"]), str(rule["role"])) for rule in rules]

    def role(self, path: str) -> str:
        """`source`, `test`, `config` or `other`."""
        for pattern, role in self._rules:
            if pattern.search(path):
                return role
        return "other"

    def guarded(self, path: str) -> bool:
        """Whether a file of the task's own tree belongs to the tests or the configuration."""
        return self.role(path) in GUARDED

    def looks_guarded(self, path: str) -> bool:
        """Whether a new file would, in any spelling of its letters."""
        return any(self.role(form) in GUARDED for form in (path, path.lower(), path.casefold()))


def pristine_manifest(start: Manifest, hidden: Manifest, roles: Roles, allowed: Iterable[str]) -> Manifest:
    """The base for grading: the start tree with its tests and configuration replaced by the hidden ones.

    A path in `allowed` stays as the agent found it: the hidden copy would hold the solution's.
    """
    free = frozenset(allowed)
    base = {path: entry for path, entry in start.items() if path in free or not roles.guarded(path)}
    base.update({path: entry for path, entry in hidden.items() if path not in free})
    return base


class Admission:
    """Decides which changed paths a solution may hand in."""

    def __init__(
        self, roles: Roles, allowed: Sequence[str], roots: Sequence[str], start: Manifest, hidden: Manifest
    ) -> None:
        self._roles = roles
        self._allowed = frozenset(allowed)
        self._roots = roots
        self._start = start
        self._hidden = hidden
        self._pristine = pristine_manifest(start, hidden, roles, allowed)
        self._never = [re.compile(pattern, re.IGNORECASE) for pattern in word_table("never_taken.txt")]

    def refusal(self, path: str, *, added: bool, reserved: frozenset[str], link: bool = False) -> str:
        """Why a path is not taken; empty when it may be.

        Args:
            path: relative POSIX path that was added, modified or removed.
            added: whether the start tree has no such file.
            reserved: import names of the standard library and the environment.
            link: whether it is a symbolic link, which may lead to a package.
        """
        if path in self._allowed:
            return ""
        if path in self._hidden or self._roles.guarded(path) or (added and self._roles.looks_guarded(path)):
            return "tests and configuration come from the task"
        if any(pattern.search(path) for pattern in self._never):
            return "start-up hooks and configuration come from the task"
        if added and self._replaces(path):
            return "it would be imported in place of a module of the task's tests"
        if added and (link or path.endswith(_IMPORTABLE)):
            if self._shadows(path, reserved):
                return "it would shadow a module of the standard library or of the environment"
            if self._shadows(path, self._test_modules):
                return "it would shadow a module of the task's tests"
        return ""

    def _replaces(self, path: str) -> bool:
        """Whether a package, module or link would stand beside a guarded module or package of the same name."""
        # A regular package comes before the module beside it, whichever of its files makes it one, and a link may
        # lead to a package.
        if any(f"{place}.py" in self._guarded for place in (path, *_folders_of(path))):
            return True
        if not path.endswith(_IMPORTABLE):
            return False
        folder, name = posixpath.split(path)
        stem = posixpath.join(folder, name.split(".")[0])
        return f"{stem}.py" in self._guarded or stem in self._guarded_packages

    @cached_property
    def _guarded(self) -> frozenset[str]:
        """Paths of the base for grading that an episode cannot change."""
        own = {path for path in self._pristine if self._roles.guarded(path)}
        return frozenset(own | self._hidden.keys()) - self._allowed

    @cached_property
    def _guarded_packages(self) -> frozenset[str]:
        """Folders above guarded modules, which can be imported with or without an `__init__.py`."""
        return frozenset(folder for path in self._guarded if path.endswith(".py") for folder in _folders_of(path))

    def _shadows(self, path: str, reserved: frozenset[str]) -> bool:
        for folder in self._import_folders:
            prefix = f"{folder}/" if folder else ""
            if not path.startswith(prefix):
                continue
            name = re.split(r"[/.]", path[len(prefix) :], maxsplit=1)[0]
            if name in reserved and f"{prefix}{name}" not in self._owned:
                return True
        return False

    @cached_property
    def _test_modules(self) -> frozenset[str]:
        """Top-level names that tests may import guarded modules by, from folders they put on the import path."""
        names = set()
        for path in self._guarded:
            if not path.endswith(".py"):
                continue
            folder, name = posixpath.split(path)
            if f"{folder}/__init__.py" in self._pristine:
                names.add(posixpath.basename(self._top_package(folder)))
            else:
                names.add(name.split(".")[0])
                # Without an `__init__.py` the folder of a helper may be a namespace package; one that holds nothing
                # but tests is often called as the package that they test.
                if not _COLLECTED.match(name):
                    names.add(posixpath.basename(folder))
        return frozenset(names - {""})

    def _top_package(self, folder: str) -> str:
        while f"{posixpath.dirname(folder)}/__init__.py" in self._pristine:
            folder = posixpath.dirname(folder)
        return folder

    @cached_property
    def _import_folders(self) -> frozenset[str]:
        """Folders that stand on the import path when tests run: the roots, and what pytest prepends for a test."""
        folders = {"" if root in (".", "") else posixpath.normpath(root) for root in (".", *self._roots)}
        for path in self._pristine:
            if path.endswith(".py") and self._roles.role(path) == "test":
                folder = posixpath.dirname(path)
                while folder and f"{folder}/__init__.py" in self._pristine:
                    folder = posixpath.dirname(folder)
                folders.add(folder)
        return frozenset(folders)

    @cached_property
    def _owned(self) -> frozenset[str]:
        """Modules and folders of the start tree, without suffix: what the project itself has may be extended."""
        owned = set()
        for path in self._start:
            folder, name = posixpath.split(path)
            if name.endswith(_IMPORTABLE):
                owned.add(posixpath.join(folder, name.split(".")[0]))
                while folder:
                    owned.add(folder)
                    folder = posixpath.dirname(folder)
        return frozenset(owned)


def _folders_of(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def reserved_names(environment: Path) -> frozenset[str]:
    """Import names of the environment's standard library and of everything installed in it."""
    folders = list(environment.glob("lib*/python*/site-packages"))
    for library in _standard_libraries(environment):
        folders += [library, library / "lib-dynload"]
    names = set()
    for folder in folders:
        for child in folder.iterdir() if folder.is_dir() else ():
            if child.suffix in (".dist-info", ".egg-info", ".pth") or child.name == "__pycache__":
                continue
            if child.is_dir() or child.name.endswith(_IMPORTABLE):
                names.add(child.name.split(".")[0])
    return frozenset(names | _own_library(environment))


def _standard_libraries(environment: Path) -> list[Path]:
    """Where the environment's interpreter keeps its library: beside the real executable."""
    prefix = (environment / "bin" / "python").resolve().parent.parent
    return [prefix / "lib" / folder.name for folder in environment.glob("lib/python*")]


def _own_library(environment: Path) -> frozenset[str]:
    # Where the library is not found (a zipped one, another layout) the running interpreter's list stands in for it.
    found = any((library / "os.py").is_file() for library in _standard_libraries(environment))
    return frozenset() if found else sys.stdlib_module_names
