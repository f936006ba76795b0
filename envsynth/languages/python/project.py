"""A tree read as a Python project: its packaging files, parsed leniently."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from envsynth.models import FileMode, Tree, digest_of

_PACKAGING = re.compile(
    r"^(?:[^/]*requirements[^/]*|requirements/[^/]+|pyproject\.toml|setup\.(?:py|cfg)|tox\.(?:ini|toml)|noxfile\.py|"
    r"Pipfile|MANIFEST\.in|pytest\.(?:ini|toml)|\.pytest\.ini|meson\.build|CMakeLists\.txt|Cargo\.toml)$"
    r"|\.(?:pyx|pxd|c|h|cc|cpp|hpp|rs)$"
)
"""Files that decide what the environment holds; equal ones mean an equal environment."""


class Project:
    """One tree, read on demand.

    Args:
        tree: the files.
        get: content by digest.
    """

    def __init__(self, tree: Tree, get: Callable[[str], bytes]) -> None:
        self.tree = tree
        self._get = get

    def text(self, path: str) -> str:
        """A regular file's text, undecodable bytes replaced; empty where there is none."""
        entry = self.tree.by_path.get(path)
        if entry is None or entry.mode is FileMode.SYMLINK:
            return ""
        return self._get(entry.blob).decode("utf-8", "replace").removeprefix("\ufeff")

    def has(self, path: str) -> bool:
        """Whether a file exists, or the path leads through a link: what stands behind it is the link's."""
        parts = path.split("/")
        return any("/".join(parts[:end]) in self.tree.by_path for end in range(1, len(parts) + 1))

    def has_folder(self, path: str) -> bool:
        """Whether any file lies below a folder; `.` always exists."""
        return path in (".", "") or any(entry.path.startswith(f"{path}/") for entry in self.tree.entries)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All paths."""
        return tuple(entry.path for entry in self.tree.entries)

    @cached_property
    def packaging_digest(self) -> str:
        """Digest of every file that decides what the environment holds."""
        return digest_of([[one.path, one.blob] for one in self.tree.entries if _PACKAGING.search(one.path)])

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """`pyproject.toml`, empty where it is missing or broken."""
        return parse_toml(self.text("pyproject.toml"))

    @cached_property
    def setup_cfg(self) -> configparser.ConfigParser:
        """`setup.cfg`."""
        return parse_ini(self.text("setup.cfg"))

    @cached_property
    def setup_py(self) -> dict[str, Any]:
        """Literal keyword arguments of the `setup(...)` call; what is computed is left out."""
        return _setup_arguments(self.text("setup.py"))

    def tool(self, *names: str) -> dict[str, Any]:
        """A table below `[tool]` of `pyproject.toml`; empty where it is missing."""
        table: Any = self.pyproject.get("tool", {})
        for name in names:
            table = table.get(name) if isinstance(table, dict) else None
        return table if isinstance(table, dict) else {}

    @property
    def metadata(self) -> dict[str, Any]:
        """The `[project]` table."""
        table = self.pyproject.get("project")
        return table if isinstance(table, dict) else {}


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document, empty where it is broken."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def parse_ini(text: str) -> configparser.ConfigParser:
    """An INI document without interpolation, empty where it is broken."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        parser.clear()
    return parser


def ini_lines(parser: configparser.ConfigParser, section: str, option: str) -> list[str]:
    """The non-empty lines of an option, comments removed."""
    value = parser.get(section, option, fallback="") or ""
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in value.splitlines())
    return [line for line in lines if line]


def strings(value: Any) -> list[str]:
    """The strings of a list, or of one string's lines; empty for anything else."""
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list | tuple) else []


def _setup_arguments(text: str) -> dict[str, Any]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    names: dict[str, Any] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = _literal(node.value, names)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _called(node.func) == "setup":
            found = {word.arg: _literal(word.value, names) for word in node.keywords if word.arg}
            return {name: value for name, value in found.items() if value is not None}
    return {}


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _literal(node: ast.expr, names: dict[str, Any]) -> Any:
    """A literal's value, names resolved once; None for what is computed."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.List | ast.Tuple):
        return [value for value in (_literal(part, names) for part in node.elts) if value is not None]
    if isinstance(node, ast.Dict):
        parts = ((key, value) for key, value in zip(node.keys, node.values, strict=True) if key)
        pairs = ((_literal(key, names), _literal(value, names)) for key, value in parts)
        return {key: value for key, value in pairs if isinstance(key, str)}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, names), _literal(node.right, names)
        return left + right if type(left) is type(right) and isinstance(left, str | list) else left or right
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
