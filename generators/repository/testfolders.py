"""Folders and files that belong to a project's tests although no rule of the language knows their names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from envsynth.generators.repository.roles import RoleBook
from envsynth.models import Role, RoleRule

_TEST_MODULE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_SOURCE_FOLDERS = frozenset({"src", "lib", "python", "source"})
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t](?:[^\n#(]*\([^)]*\)|[^\n#]*)", re.M)


def rules_of_test_folders(
    paths: Sequence[str], changed: Sequence[str], text: Callable[[str], str], role: RoleBook
) -> tuple[RoleRule, ...]:
    """Rules for the folders of one commit's project that are the tests' as a whole; they go before the language's.

    A folder is the tests' when test modules lie in it, or its name says so, and it is no part of the source. In
    doubt it is source: guarding source would take the task away.

    Args:
        paths: every file of the commit and of its parent.
        changed: those that the commit changes.
        text: the content of a path.
        role: the language's own rules.
    """
    project = _Project(tuple(paths), tuple(changed), text, role)
    found: list[str] = []
    for folder in sorted(project.candidates, key=lambda folder: (folder.count("/"), folder)):
        if not any(folder.startswith(f"{taken}/") for taken in found) and not project.is_source(folder):
            found.append(folder)
    return tuple(RoleRule(pattern=f"^{re.escape(folder)}/", role=Role.TEST) for folder in found)


def rules_of_data(paths: Sequence[str], changed: Sequence[str], role: RoleBook) -> tuple[RoleRule, ...]:
    """A rule for what a commit changes beside the source: neither source nor data of a package, such as golden files.

    A solver cannot know their new content, so they are the grader's.

    Args:
        paths: every file of the commit and of its parent.
        changed: those that the commit changes and that tests might need.
        role: the rules that are known so far.
    """
    packages = {posixpath.dirname(path) for path in paths if _is_package(path, role)}
    data = [
        path
        for path in changed
        if role(path) is Role.OTHER and not any(above in packages for above in _folders_of(path))
    ]
    if not data:
        return ()
    return (RoleRule(pattern=f"^(?:{'|'.join(map(re.escape, sorted(data)))})$", role=Role.TEST),)


def _is_package(path: str, role: RoleBook) -> bool:
    return posixpath.basename(path) == "__init__.py" and role(path) is Role.SOURCE


@dataclass(frozen=True)
class _Project:
    paths: tuple[str, ...]
    changed: tuple[str, ...]
    text: Callable[[str], str]
    role: RoleBook

    @cached_property
    def candidates(self) -> frozenset[str]:
        """Folders that hold test modules or are called like a test's, and that no rule guards yet."""
        found = set()
        for path in self.paths:
            found |= {folder for folder in _folders_of(path) if _named(folder)}
            if _TEST_MODULE.search(path):
                found.add(posixpath.dirname(path))
        return frozenset(folder for folder in found if folder and not self.role.graded(f"{folder}/any.txt"))

    def is_source(self, folder: str) -> bool:
        """Whether a folder is, or may be, part of what the project offers."""
        below = [path for path in self.paths if path.startswith(f"{folder}/")]
        tests = [path for path in below if _TEST_MODULE.search(path)]
        modules = [path for path in below if self._is_module(path)]
        if self._inside_package(folder) or self.role(f"{folder}/any.txt") is Role.SOURCE:
            helpers = [path for path in modules if posixpath.basename(path) != "__init__.py"]
            # Without tests it is data of the package.
            return not tests or (bool(helpers) and (not _named(folder) or self._imported(folder, modules)))
        if not modules:
            return False
        if folder in _SOURCE_FOLDERS or self._is_all(folder) or self._imported(folder, modules):
            return True
        return not _named(folder) and (len(tests) < len(modules) or _side_by_side(tests, modules))

    def _is_module(self, path: str) -> bool:
        return path.endswith(".py") and self.role(path) is Role.SOURCE

    def _inside_package(self, folder: str) -> bool:
        return any(
            f"{above}/__init__.py" in self._known and self._is_module(f"{above}/__init__.py")
            for above in _folders_of(folder)
        )

    def _is_all(self, folder: str) -> bool:
        """Whether no source would be left, in the project or of what the commit changes."""
        return any(
            all(path.startswith(f"{folder}/") for path in paths if self._is_module(path))
            for paths in (self.paths, self.changed)
        )

    def _imported(self, folder: str, modules: Sequence[str]) -> bool:
        """Whether source outside a folder imports it or a module of it."""
        names = {posixpath.basename(folder)}
        if f"{folder}/__init__.py" not in self._known:
            names |= {posixpath.basename(path).removesuffix(".py") for path in modules} - {"__init__", "__main__"}
        called = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        return any(
            called.search(statement[0])
            for path in self._modules
            if not path.startswith(f"{folder}/")
            for statement in _IMPORT.finditer(self.text(path))
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def _modules(self) -> tuple[str, ...]:
        return tuple(path for path in self.paths if self._is_module(path))


def _side_by_side(tests: Sequence[str], modules: Sequence[str]) -> bool:
    """Whether a test lies beside the module it is called after."""
    known = set(modules)
    for path in tests:
        folder, name = posixpath.split(path)
        stem = name.removesuffix(".py")
        tested = stem.removeprefix("test_") if stem.startswith("test_") else stem.removesuffix("_test")
        if posixpath.join(folder, f"{tested}.py") in known:
            return True
    return False


def _named(folder: str) -> bool:
    return _names().fullmatch(posixpath.basename(folder)) is not None


@cache
def _names() -> re.Pattern[str]:
    lines = (resources.files(__package__) / "words" / "test_folders.txt").read_text("utf-8").splitlines()
    return re.compile("|".join(f"(?:{line})" for line in lines if line and not line.startswith("#")), re.I)


def _folders_of(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path
