"""Where a project keeps its source and its tests, and how the tests are run."""

from __future__ import annotations

import ast
import json
import posixpath
import re
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from envsynth.languages.python.project import Project, ini_lines, parse_ini, strings
from envsynth.languages.python.roles import is_test_file

_TEST_FOLDER = re.compile(r"^(_?tests?|testing|test[_-]?suite|[\w-]+[_-]tests)$")
_ASIDE = re.compile(r"^(?:docs?|bench(?:marks?)?|asv_bench|perf|examples?|build|\.[^/]*)/")
_SOURCE_FOLDERS = ("src", "lib", "python", "source")


def files_with_tests(project: Project) -> list[str]:
    """Files that a runner collects by name, those of documentation and benchmarks left out."""
    return [path for path in project.paths if is_test_file(path) and not _ASIDE.match(path)]


def collection_targets(project: Project) -> tuple[str, ...]:
    """Relative paths to collect from: what the project's configuration names, else the folders of its test files."""
    named = [path.rstrip("/").removeprefix("./") or "." for path in _testpaths(project)]
    if named and all(project.has(path) or project.has_folder(path) for path in named):
        return tuple(dict.fromkeys(named))
    targets: list[str] = []
    for path in files_with_tests(project):
        folders = path.split("/")[:-1]
        place = next((depth for depth, name in enumerate(folders) if _TEST_FOLDER.match(name)), None)
        target = "/".join(folders[: place + 1]) if place is not None else path
        if target not in targets:
            targets.append(target)
    return tuple(targets)


def _testpaths(project: Project) -> list[str]:
    for name in ("pytest.toml", ".pytest.toml"):
        if project.has(name):
            return []
    for name in ("pytest.ini", ".pytest.ini"):
        if project.has(name):
            return _words(ini_lines(parse_ini(project.text(name)), "pytest", "testpaths"))
    for table in (project.tool("pytest", "ini_options"), project.tool("pytest")):
        if table:
            value = table.get("testpaths")
            return value.split() if isinstance(value, str) else strings(value)
    found = ini_lines(parse_ini(project.text("tox.ini")), "pytest", "testpaths")
    return _words(found or ini_lines(project.setup_cfg, "tool:pytest", "testpaths"))


def _words(lines: Iterable[str]) -> list[str]:
    return [word for line in lines for word in line.split()]


def choose_runner(project: Project) -> str:
    """`unittest` where the project never mentions pytest and its tests are unittest's; else `pytest`."""
    texts = [
        project.text(path)
        for path in project.paths
        if re.search(
            r"^(pyproject\.toml|setup\.(py|cfg)|tox\.(ini|toml)|noxfile\.py|Makefile|\.github/workflows/[^/]+|"
            r"\.travis\.yml|pytest\.ini|[^/]*requirements[^/]*|requirements/[^/]+)$|(^|/)conftest\.py$", path,
        )
    ]  # fmt: skip
    tests = [project.text(path) for path in files_with_tests(project)]
    if any("pytest" in text for text in texts) or any(re.search(r"^\s*(import|from) pytest\b", t, re.M) for t in tests):
        return "pytest"
    return "unittest" if any(re.search(r"\bunittest\b", text) for text in tests) else "pytest"


def source_roots(project: Project, names: Iterable[str]) -> tuple[str, ...]:
    """Folders from which the project's top-level names are imported, in the order of the import path.

    Args:
        project: the tree.
        names: top-level import names of the built project; empty where it was not built.
    """
    roots: list[str] = []
    for name in names:
        root = _root_of(project, name)
        if root is not None and root not in roots:
            roots.append(root)
    if not roots:
        roots = [folder for folder in _SOURCE_FOLDERS if _importable(project, folder)][:1]
    if not roots:
        roots = ["."]
    return tuple(roots)


def _root_of(project: Project, name: str) -> str | None:
    pattern = re.compile(rf"(?:^|/){re.escape(name)}(?:\.py$|\.pyx$|/)")
    found = set()
    for path in project.paths:
        match = pattern.search(path)
        if match and path.endswith((".py", ".pyx", ".pyi")) and not path.startswith((".", "build/")):
            folder = path[: match.start()]
            # A folder that is itself a package, or holds tests, is no import root.
            if not project.has(f"{folder}/__init__.py" if folder else "__init__.py") and "test" not in folder:
                found.add(folder or ".")
    return min(found, key=lambda folder: (folder != ".", folder.count("/"), folder)) if found else None


def _importable(project: Project, folder: str) -> bool:
    return any(re.match(rf"{folder}/(?:[^/]+\.py$|[^/]+/__init__\.py$)", path) for path in project.paths)


def own_modules(project: Project, roots: Iterable[str], environment: Path) -> tuple[str, ...]:
    """Top-level names that exist both in the tree's import folders and in the environment or standard library."""
    folders = {"" if root == "." else f"{root}/" for root in (*roots, ".")}
    for path in files_with_tests(project):
        folder = posixpath.dirname(path)
        while folder and project.has(f"{folder}/__init__.py"):
            folder = posixpath.dirname(folder)
        folders.add(f"{folder}/" if folder else "")
    names = set()
    for path in project.paths:
        for folder in folders:
            # A folder without `__init__.py` is a namespace package: any regular one of that name comes first anyway.
            match = re.fullmatch(r"([^/.]+)(?:\.py|/__init__\.py)", path[len(folder) :])
            if match and path.startswith(folder):
                names.add(match[1])
    return tuple(sorted(names & environment_names(environment)))


def environment_names(environment: Path) -> frozenset[str]:
    """Top-level import names that an environment or the standard library provides."""
    found = set(sys.stdlib_module_names)
    found.add("test")  # a package of the standard library that the list of its names leaves out
    for site in environment.glob("lib/python3*/site-packages"):
        for child in site.iterdir():
            if child.suffix in (".py", ".so") or (child.is_dir() and "." not in child.name):
                found.add(child.name.split(".")[0])
    return frozenset(found)


def known_imports(project: Project, names: Iterable[str]) -> tuple[str, ...]:
    """Requirements for what test files import from a short list of well-known distributions."""
    table: dict[str, str] = json.loads(files(__package__).joinpath("well_known_imports.json").read_text("utf-8"))
    own = set(names)
    wanted = set()
    for path in [*files_with_tests(project), *(path for path in project.paths if path.endswith("conftest.py"))]:
        wanted |= {name for name in _imports(project.text(path)) if name in table and name not in own}
    return tuple(sorted(table[name] for name in wanted))


def _imports(text: str) -> set[str]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found
