"""What the failing tests import, call or name that does not exist at the start."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import NamedTuple

from envsynth.generators.repository.excerpt import Excerpt
from envsynth.generators.repository.testcode import Imported

_MAX_CALLS = 3
_MAX_CALL = 120
"""Characters of a call that is shown."""


class Demand(NamedTuple):
    """One thing that has to exist."""

    kind: str
    """`module`, `name`, `member` or `parameter`."""
    name: str
    owner: str
    """The module of a name, the function of a parameter."""
    calls: tuple[str, ...]
    """How the tests use it."""


class Project:
    """The start tree's importable code, by module name."""

    def __init__(self, sources: Mapping[str, str], roots: Iterable[str]) -> None:
        self._texts: dict[str, str] = {}
        self._names: dict[str, set[str] | None] = {}
        self.words = set(re.findall(r"[^\W\d]\w*", "\n".join(sources.values())))
        prefixes = sorted((root.strip("./") for root in roots), key=len, reverse=True)
        for path, text in sources.items():
            if path.endswith(".py"):
                self._texts[_module_name(path, prefixes)] = text
        self._packages = {name.rpartition(".")[0] for name in self._texts if "." in name} | set(self._texts)
        self._top = {name.split(".")[0] for name in self._texts}

    def owns(self, module: str) -> bool:
        """Whether a module is, or would be, the project's."""
        return module.partition(".")[0] in self._top

    def has_module(self, module: str) -> bool:
        """Whether a module exists; a folder without `__init__` counts."""
        return module in self._texts or any(name.startswith(module + ".") for name in self._packages)

    def has_name(self, module: str, name: str) -> bool:
        """Whether a module has a name: what every module has, and submodules, included."""
        if hasattr(ModuleType(module), name) or name == "__file__":
            return True
        if self.has_module(f"{module}.{name}"):
            return True
        if module not in self._texts:
            return self.has_module(module)
        if module not in self._names:
            self._names[module] = _top_names(self._texts[module])
        names = self._names[module]
        # A module that makes names at run time can only make names that are written somewhere.
        return name in self.words if names is None else name in names


def demands(
    excerpts: Iterable[Excerpt], project: Project, defined: frozenset[str], said: Iterable[str]
) -> list[Demand]:
    """Everything new that the excerpts need, each once, in the order of use.

    Args:
        excerpts: the failing tests.
        project: the start tree's code.
        defined: names that the solution defines; a member or parameter is only the project's when it is one.
        said: messages of the failures, which name what could not be imported.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for message in said:
        for name, module in re.findall(r"cannot import name '(\w+)' from '([\w.]+)'", message):
            if project.owns(module):
                found.setdefault(("name", name, module), [])
    for excerpt in excerpts:
        imports = {imported.alias: imported for imported in excerpt.imports}
        for node in excerpt.nodes:
            for part in ast.walk(node):
                for key, call in _new_in(part, imports, project):
                    if key[0] in ("member", "parameter") and key[1] not in defined:
                        continue
                    calls = found.setdefault(key, [])
                    if call and call not in calls and len(calls) < _MAX_CALLS:
                        calls.append(call)
    kept = {key: calls for key, calls in found.items() if key[0] != "member" or not _named_elsewhere(key[1], found)}
    return [Demand(kind, name, owner, _shortest(calls)) for (kind, name, owner), calls in kept.items()]


def _shortest(calls: list[str]) -> tuple[str, ...]:
    """Without those that another one says too."""
    return tuple(call for call in calls if not any(other != call and other.startswith(call) for other in calls))


def defined_names(sources: Iterable[str]) -> frozenset[str]:
    """Names that code defines: functions, classes, parameters, attributes, keys of keyword arguments."""
    names: set[str] = set()
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                names.add(node.value)
    return frozenset(names)


def _new_in(part: ast.AST, imports: Mapping[str, Imported], project: Project) -> list[tuple[tuple[str, str, str], str]]:
    new: list[tuple[tuple[str, str, str], str]] = []
    if isinstance(part, ast.Name) and part.id in imports:
        missing = _missing(imports[part.id], project)
        if missing:
            new.append((missing, ""))
    elif isinstance(part, ast.Attribute):
        dotted = _dotted(part.value)
        module = _module_of(dotted, imports, project)
        if module and not project.has_name(module, part.attr):
            new.append((("name", part.attr, module), ""))
        elif not module and part.attr not in project.words and not _foreign(dotted, imports, project):
            new.append((("member", part.attr, ""), _shown(part)))
    if isinstance(part, ast.Call):
        new += _new_of_call(part, imports, project)
    return new


def _new_of_call(
    part: ast.Call, imports: Mapping[str, Imported], project: Project
) -> list[tuple[tuple[str, str, str], str]]:
    new: list[tuple[tuple[str, str, str], str]] = []
    dotted = _dotted(part.func)
    if dotted and _foreign(dotted, imports, project):
        return new
    function = part.func.attr if isinstance(part.func, ast.Attribute) else dotted
    for argument in part.keywords:
        if argument.arg and argument.arg not in project.words:
            new.append((("parameter", argument.arg, function), _shown(part)))
    if isinstance(part.func, ast.Name) and part.func.id in imports:
        missing = _missing(imports[part.func.id], project)
        if missing:
            new.append((missing, _shown(part)))
    elif isinstance(part.func, ast.Attribute):
        module = _module_of(_dotted(part.func.value), imports, project)
        if module and not project.has_name(module, part.func.attr):
            new.append((("name", part.func.attr, module), _shown(part)))
        elif not module and part.func.attr not in project.words:
            new.append((("member", part.func.attr, ""), _shown(part)))
    return new


def _missing(imported: Imported, project: Project) -> tuple[str, str, str] | None:
    if imported.module.startswith(".") or not project.owns(imported.module):
        return None
    if not project.has_module(imported.module):
        return ("name", imported.name, imported.module) if imported.name else ("module", imported.module, "")
    if imported.name and not project.has_name(imported.module, imported.name):
        return "name", imported.name, imported.module
    return None


def _module_of(dotted: str, imports: Mapping[str, Imported], project: Project) -> str:
    """The project's module that a dotted expression names, or nothing."""
    first, _, rest = dotted.partition(".")
    imported = imports.get(first)
    if imported is None or imported.module.startswith("."):
        return ""
    if imported.name:
        full = f"{imported.module}.{imported.name}"
    else:
        full = imported.module if imported.alias != imported.module.split(".")[0] else imported.alias
    full = f"{full}.{rest}" if rest else full
    return full if project.owns(full) and project.has_module(full) else ""


def _foreign(dotted: str, imports: Mapping[str, Imported], project: Project) -> bool:
    """Whether an expression starts at something that another package, or the standard library, provides."""
    imported = imports.get(dotted.partition(".")[0])
    return imported is not None and not imported.module.startswith(".") and not project.owns(imported.module)


def _named_elsewhere(name: str, found: Mapping[tuple[str, str, str], object]) -> bool:
    return any(kind in ("name", "module") and other == name for kind, other, _ in found)


def _top_names(text: str) -> set[str] | None:
    """Names that a module binds; None where it may bind more."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return None
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    dynamic = "__getattr__" in names or "globals()" in text or "sys.modules[" in text or "setattr(" in text
    return None if dynamic else names


def _module_name(path: str, prefixes: list[str]) -> str:
    for prefix in prefixes:
        if prefix and path.startswith(prefix + "/"):
            path = path[len(prefix) + 1 :]
            break
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _dotted(node: ast.AST) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _MAX_CALL and "\n" not in text else ""
