"""Requirement lines: files with includes, tox and nox sections, poetry's constraints."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from envsynth.languages.python.project import Project, ini_lines, parse_ini, parse_toml, strings

TEST_FILE = re.compile(
    r"^(?:[^/]+/)?(?:requirements[-_.]?(?:tests?|testing)|(?:tests?|testing)[-_.]?requirements?|"
    r"requirements/(?:tests?|testing|ci)|tests?/requirements)[\w-]*\.(?:txt|in)$"
)
DEV_FILE = re.compile(
    r"^(?:[^/]+/)?(?:requirements[-_.]?(?:dev|develop|development|local|ci)|(?:dev|develop)[-_.]?requirements?|"
    r"requirements/(?:dev|develop|development|local|base|all))[\w-]*\.(?:txt|in)$"
)


def clean(lines: Iterable[str]) -> Iterator[str]:
    """PEP 508 requirements among the lines; paths, URLs, options and what does not parse are left out."""
    for line in lines:
        text = re.sub(r"(?:^|\s)#.*", "", line).split(" --hash", 1)[0].strip().rstrip("\\").strip()
        if not text or text.startswith(("-", ".", "/", "file:")):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.url is None:
            yield str(requirement)


def file_requirements(project: Project, path: str, seen: frozenset[str] = frozenset()) -> list[str]:
    """Requirements of a file and of the files that it includes."""
    if path in seen:
        return []
    found: list[str] = []
    for line in project.text(path).replace("\\\n", " ").splitlines():
        include = re.match(r"\s*(?:-r|--requirement)[\s=]*(\S+)", line)
        if include:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), include[1]))
            found += file_requirements(project, target, seen | {path})
        else:
            found += clean([line])
    return found


def matching_files(project: Project, pattern: re.Pattern[str]) -> list[str]:
    """Requirement files of a kind; an unpinned `.in` stands for the `.txt` that was compiled from it."""
    paths = [path for path in project.paths if pattern.match(path)]
    return [path for path in paths if path.endswith(".in") or f"{path[:-4]}.in" not in paths]


class ToxEnvironment:
    """What `tox` installs for its main environment."""

    def __init__(self, project: Project) -> None:
        self.requirements: list[str] = []
        self.extras: list[str] = []
        self.groups: list[str] = []
        self.variables: list[tuple[str, str]] = []
        self._project = project
        native = parse_toml(project.text("tox.toml")) or project.tool("tox")
        for table in (native.get("env_run_base"), *(_tables(native.get("env")))):
            if isinstance(table, dict):
                self._lines(strings(table.get("deps")))
                self.extras += strings(table.get("extras"))
                self.groups += strings(table.get("dependency_groups"))
        legacy = native.get("legacy_tox_ini")
        for text in (project.text("tox.ini"), legacy if isinstance(legacy, str) else "", _setup_cfg_tox(project)):
            self._ini(text)

    def _ini(self, text: str) -> None:
        parser = parse_ini(text)
        for section in parser.sections():
            if not re.fullmatch(r"testenv(:(py|test|\{py)[^:]*)?", section):
                continue
            self._lines(ini_lines(parser, section, "deps"))
            self.extras += re.split(r"[\s,]+", parser.get(section, "extras", fallback="") or "")
            self.groups += re.split(r"[\s,]+", parser.get(section, "dependency_groups", fallback="") or "")
            for line in ini_lines(parser, section, "setenv") + ini_lines(parser, section, "set_env"):
                name, equals, value = (part.strip() for part in line.partition("="))
                if equals and "{" not in line and re.fullmatch(r"[A-Za-z_]\w*", name):
                    self.variables.append((name, value))

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            text = line.replace("{toxinidir}/", "").replace("{tox_root}/", "")
            include = re.match(r"(?:[\w{},!.-]+:\s+)?-r\s*(\S+)", text)
            extras = re.match(r"(?:-e\s*)?\.?/?\.?\[([\w,\s-]+)\]$", text)
            if include:
                self.requirements += file_requirements(self._project, posixpath.normpath(include[1]))
            elif extras:
                self.extras += [name.strip() for name in extras[1].split(",")]
            elif not re.match(r"[\w{},!.-]+:\s", text):  # `factor: requirement` belongs to one variant only
                self.requirements += clean([text])


def _setup_cfg_tox(project: Project) -> str:
    return project.text("setup.cfg") if "[tox:tox]" in project.text("setup.cfg") else ""


def _tables(value: Any) -> list[Any]:
    return [table for name, table in value.items() if re.match(r"py|test", name)] if isinstance(value, dict) else []


def nox_requirements(project: Project) -> list[str]:
    """String arguments of `session.install` in the sessions whose name speaks of tests."""
    try:
        module = ast.parse(project.text("noxfile.py"))
    except (SyntaxError, ValueError):
        return []
    found: list[str] = []
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and "test" in node.name):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("install", "conda_install"):
                words = [part.value for part in call.args if isinstance(part, ast.Constant)]
                texts = [word for word in words if isinstance(word, str)]
                for flag, name in pairwise(texts):
                    if flag in ("-r", "--requirement"):
                        found += file_requirements(project, posixpath.normpath(name))
                found += clean(text for text in texts if not text.endswith(".txt"))
    return found


def poetry_requirements(table: dict[str, Any]) -> list[str]:
    """Requirements of a poetry dependency table, its caret and tilde constraints put in standard form."""
    found: list[str] = []
    for name, value in table.items():
        versions = value.get("version", "*") if isinstance(value, dict) else value
        optional = isinstance(value, dict) and ("git" in value or "path" in value or "url" in value)
        if name.lower() == "python" or optional or not isinstance(versions, str):
            continue
        found += clean([name + standard_constraint(versions)])
    return found


def standard_constraint(constraint: str) -> str:
    """A poetry constraint such as `^1.2` as a PEP 440 specifier; empty for any version."""
    parts = []
    for part in filter(None, (text.strip() for text in constraint.partition("||")[0].split(","))):
        caret = re.fullmatch(r"(\^|~)\s*(\d+(?:\.\d+)*)[\w.]*", part)
        if caret:
            numbers = [int(number) for number in caret[2].split(".")]
            parts.append(f">={caret[2]},<{_next(caret[1], numbers)}")
        elif re.match(r"\d", part):
            parts.append(f"=={part}")
        elif part != "*":
            parts.append(part)
    return ",".join(parts)


def _next(sign: str, numbers: list[int]) -> str:
    if sign == "~":
        kept = numbers[:2] if len(numbers) > 1 else numbers[:1]
    else:
        leading = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1)
        kept = numbers[: leading + 1]
    return ".".join(str(number) for number in [*kept[:-1], kept[-1] + 1])
