"""What a project declares about its dependencies, from its built metadata where there is one, else from its files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.message import Message
from email.parser import HeaderParser
from typing import Any, NamedTuple

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envsynth.languages.python.project import Project, ini_lines, strings
from envsynth.languages.python.requirement_files import (
    DEV_FILE,
    TEST_FILE,
    ToxEnvironment,
    clean,
    file_requirements,
    matching_files,
    nox_requirements,
    poetry_requirements,
    standard_constraint,
)

TEST_NAMES = ("test", "tests", "testing", "unittest", "unit-tests", "ci")
DEV_NAMES = ("dev", "develop", "development", "all")


class Declared(NamedTuple):
    """Requirement lines, each list without repetition, in the order found."""

    name: str
    """Normalised; empty where nothing says it."""
    runtime: tuple[str, ...]
    test: tuple[str, ...]
    """Named for tests: extras, groups, requirement files, tox."""
    dev: tuple[str, ...]
    """Everything else that developers install."""


def requires_python(project: Project) -> str:
    """The version specifier of the interpreter; empty where the project makes no demand."""
    poetry = project.tool("poetry", "dependencies").get("python")
    found = (
        project.metadata.get("requires-python")
        or (standard_constraint(poetry) if isinstance(poetry, str) else "")
        or project.tool("flit", "metadata").get("requires-python")
        or project.setup_cfg.get("options", "python_requires", fallback="")
        or project.setup_py.get("python_requires")
    )
    return found if isinstance(found, str) else ""


def highest_classifier(project: Project) -> str:
    """The highest `3.x` among the project's classifiers; empty where there is none."""
    sources = [
        *strings(project.metadata.get("classifiers")), *strings(project.tool("poetry").get("classifiers")),
        *strings(project.tool("flit", "metadata").get("classifiers")),
        *ini_lines(project.setup_cfg, "metadata", "classifiers"), *strings(project.setup_py.get("classifiers")),
    ]  # fmt: skip
    minors = [int(match[1]) for line in sources if (match := re.search(r"Python :: 3\.(\d+)\s*$", line))]
    return f"3.{max(minors)}" if minors else ""


def declared(project: Project, metadata: str, version: str) -> Declared:
    """Collect what the project declares.

    Args:
        project: the tree.
        metadata: text of the built `METADATA`; empty where the project was not built.
        version: interpreter's major and minor, for environment markers.
    """
    runtime, extras, name = _built(metadata, version) if metadata else _static(project)
    groups = _groups(project)
    tox = ToxEnvironment(project)
    chosen = {_plain(one) for one in (*TEST_NAMES, *tox.extras, *tox.groups) if one}
    test: list[str] = []
    dev: list[str] = []
    for table in (extras, groups):
        for key, lines in table.items():
            if _plain(key) in chosen:
                test += lines
            elif _plain(key) in DEV_NAMES:
                dev += lines
    test += strings(project.setup_py.get("tests_require")) + ini_lines(project.setup_cfg, "options", "tests_require")
    test += [line for path in matching_files(project, TEST_FILE) for line in file_requirements(project, path)]
    test += tox.requirements
    dev += [line for path in matching_files(project, DEV_FILE) for line in file_requirements(project, path)]
    dev += nox_requirements(project)
    dev += file_requirements(project, "requirements.txt")
    return Declared(
        name=name,
        runtime=_unique(runtime),
        test=_unique(_expand(test, name, extras)),
        dev=_unique(_expand(dev, name, extras)),
    )


def header(metadata: str) -> Message:
    """The headers of a `METADATA` text."""
    return HeaderParser().parsestr(metadata)


def _built(metadata: str, version: str) -> tuple[list[str], dict[str, list[str]], str]:
    """Runtime requirements, extras and the name, from built metadata."""
    headers = header(metadata)
    extras: dict[str, list[str]] = {_plain(name): [] for name in headers.get_all("Provides-Extra") or ()}
    runtime: list[str] = []
    for line in headers.get_all("Requires-Dist") or ():
        try:
            requirement = Requirement(str(line))
        except InvalidRequirement:
            continue
        bare = str(requirement).partition(";")[0].strip()
        if requirement.url is not None:
            continue
        if _applies(requirement, version, ""):
            runtime.append(bare)
            continue
        for name, lines in extras.items():
            if _applies(requirement, version, name):
                lines.append(bare)
    return runtime, extras, canonicalize_name(str(headers.get("Name") or ""))


def _applies(requirement: Requirement, version: str, extra: str) -> bool:
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate(
            {"extra": extra, "python_version": version, "python_full_version": f"{version}.0"}
        )
    except UndefinedEnvironmentName:
        return False


def _static(project: Project) -> tuple[list[str], dict[str, list[str]], str]:
    """The same from `pyproject.toml`, `setup.cfg` and the literals of `setup.py`."""
    poetry, setup = project.tool("poetry"), project.setup_py
    name = (
        project.metadata.get("name") or poetry.get("name") or setup.get("name")
        or project.setup_cfg.get("metadata", "name", fallback="") or ""
    )  # fmt: skip
    runtime = [
        *strings(project.metadata.get("dependencies")), *poetry_requirements(project.tool("poetry", "dependencies")),
        *strings(project.tool("flit", "metadata").get("requires")),
        *ini_lines(project.setup_cfg, "options", "install_requires"), *strings(setup.get("install_requires")),
    ]  # fmt: skip
    extras: dict[str, list[str]] = {}
    for table in (
        project.metadata.get("optional-dependencies"), setup.get("extras_require"),
        project.tool("flit", "metadata", "requires-extra"),
    ):  # fmt: skip
        for key, lines in table.items() if isinstance(table, dict) else ():
            extras.setdefault(_plain(key), []).extend(clean(strings(lines)))
    if project.setup_cfg.has_section("options.extras_require"):
        for key in project.setup_cfg.options("options.extras_require"):
            lines = ini_lines(project.setup_cfg, "options.extras_require", key)
            extras.setdefault(_plain(key), []).extend(clean(lines))
    return list(clean(runtime)), extras, canonicalize_name(str(name))


def _groups(project: Project) -> dict[str, list[str]]:
    """Dependency groups of PEP 735 and of the tools that had them before."""
    tables: dict[str, list[str]] = {}
    standard = project.pyproject.get("dependency-groups")
    groups: dict[str, Any] = standard if isinstance(standard, dict) else {}
    for name in groups:
        tables.setdefault(_plain(name), []).extend(_group(groups, name, frozenset()))
    for name, table in project.tool("poetry", "group").items():
        if isinstance(table, dict) and isinstance(table.get("dependencies"), dict):
            tables.setdefault(_plain(name), []).extend(poetry_requirements(table["dependencies"]))
    tables.setdefault("dev", []).extend(poetry_requirements(project.tool("poetry", "dev-dependencies")))
    for name, lines in project.tool("pdm", "dev-dependencies").items():
        tables.setdefault(_plain(name), []).extend(clean(strings(lines)))
    tables["dev"].extend(clean(strings(project.tool("uv").get("dev-dependencies"))))
    for name, table in project.tool("hatch", "envs").items():
        if isinstance(table, dict):
            wanted = strings(table.get("dependencies")) + strings(table.get("extra-dependencies"))
            key = "test" if name in ("default", "hatch-test") else _plain(name)
            tables.setdefault(key, []).extend(clean(wanted))
    return tables


def _group(table: dict[str, Any], name: str, seen: frozenset[str]) -> list[str]:
    lines = table.get(name)
    found: list[str] = []
    for line in lines if isinstance(lines, list) and name not in seen else ():
        if isinstance(line, dict) and isinstance(line.get("include-group"), str):
            wanted = _plain(line["include-group"])
            for other in table:
                if _plain(other) == wanted:
                    found += _group(table, other, seen | {name})
        elif isinstance(line, str):
            found += clean([line])
    return found


def _expand(lines: Iterable[str], name: str, extras: dict[str, list[str]], depth: int = 0) -> list[str]:
    """Replace `project[extra]` by what the extra holds."""
    found: list[str] = []
    for line in clean(lines):
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != name or not name:
            found.append(line)
            continue
        for extra in sorted(requirement.extras):
            inner = extras.get(_plain(extra), [])
            found += _expand(inner, name, extras, depth + 1) if depth < 5 else []
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _unique(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(lines)))
