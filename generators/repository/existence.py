"""Whether what a text names exists: files, modules, functions, members; in the start tree, or demanded by the tests."""

from __future__ import annotations

import ast
import builtins
import keyword
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from envsynth.generators.repository.interface import Demand, Project
from envsynth.generators.repository.stated import parsed
from envsynth.generators.repository.testcode import imports_of, names_bound
from envsynth.models import Finding

__all__ = ["Names"]

_SPAN = re.compile(r"```([\w-]*)\n(.*?)(?:```|\Z)|`([^`\n]+)`", re.S)
_PATH = re.compile(r"^[\w.@-]+(?:/[\w.@-]+)+/?$|^[\w-]+\.(?:py|pyi|md|rst|txt|toml|cfg|ini|json|ya?ml|sh|c|js|html)$")
_DOTTED = re.compile(r"^[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\(\))?$")
_SNAKE = re.compile(r"(?<![\w./-])(_{0,2}[^\W\d_]\w*_\w+)(?![\w/-])")
_CALLED = re.compile(r"(?<![\w.`])([^\W\d]\w*(?:\.[^\W\d]\w*)*)\((?=[^)\s]*\))")
_TYPES = (str, bytes, int, float, complex, list, tuple, dict, set, frozenset, object, type, BaseException, type(len))
_COMMON = frozenset(name for kind in _TYPES for name in dir(kind))
_FOREIGN = frozenset(sys.stdlib_module_names) | {"pytest", "numpy", "np", "pandas", "pd"}
_SPECIAL = re.compile(r"__[a-z]+__$")
"""Methods that the language itself calls; a class has them or not."""
_MAX_SHOWN = 5


class Names:
    """What may be named.

    Args:
        project: the start tree's code.
        paths: every path of the start tree, files and folders.
        told: text of the failing tests, and what they demand: what they name may be named.
        demands: names that have to exist.
    """

    def __init__(self, project: Project, paths: Iterable[str], told: str, demands: Sequence[Demand]) -> None:
        self._project = project
        self._paths = frozenset(paths)
        self._told = told
        self._new = {f"{demand.owner}.{demand.name}".lstrip(".") for demand in demands}
        self._modules = {demand.name for demand in demands if demand.kind == "module"}

    @cached_property
    def _words(self) -> frozenset[str]:
        told = re.findall(r"[^\W\d]\w*", self._told)
        return frozenset({*self._project.words, *told, *dir(builtins), *keyword.kwlist, *_COMMON, *_FOREIGN})

    @cached_property
    def _folders(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self._paths:
            while path := posixpath.dirname(path):
                found.add(path)
        return frozenset(found)

    def invented(self, text: str) -> list[Finding]:
        """What a text names and nothing has: in code, as a path, or in prose where it is shaped like code."""
        found: dict[str, None] = {}
        prose: list[str] = []
        end = 0
        bound = self._bound_in(text)
        for span in _SPAN.finditer(text):
            prose.append(text[end : span.start()])
            end = span.end()
            code = span[3] if span[3] is not None else span[2]
            if span[3] is not None or span[1] in ("", "python", "py", "pycon", "python3"):
                found |= dict.fromkeys(self._missing(code, bound, inline=span[3] is not None))
        prose.append(text[end:])
        plain = " ".join(prose)
        for name in (*_SNAKE.findall(plain), *_CALLED.findall(plain)):
            found |= dict.fromkeys(self._missing_dotted(name, bound))
        shown = [name for name in found if name]
        if not shown:
            return []
        more = f" and {len(shown) - _MAX_SHOWN} more" if len(shown) > _MAX_SHOWN else ""
        message = (
            f"these exist nowhere, and no behaviour asks for them: {', '.join(map(repr, shown[:_MAX_SHOWN]))}{more}"
        )
        return [Finding(rule="invented_name", message=message)]

    def has_path(self, path: str) -> bool:
        """Whether a file or folder exists, named from the root or by its last parts."""
        bare = path.strip("/").removeprefix("./")
        return any(known == bare or known.endswith(f"/{bare}") for known in (*self._paths, *self._folders))

    def has(self, name: str) -> bool:
        """Whether a name, dotted or not, exists."""
        return not [*self._missing_dotted(name.removesuffix("()"), frozenset())]

    def _missing(self, code: str, bound: frozenset[str], *, inline: bool) -> Iterator[str]:
        code = code.strip()
        if inline and _PATH.match(code) and not self._is_dotted_name(code):
            if not self.has_path(code) and code not in self._told:
                yield code
            return
        if inline and _DOTTED.match(code):
            yield from self._missing_dotted(code.removesuffix("()"), bound)
            return
        tree = parsed(_prompted(code))
        if tree is None:
            # A shell command, a statement of SQL, an output: only what is called can be looked up.
            for name in _CALLED.findall(code):
                if self._project.owns(name):
                    yield from self._missing_dotted(name, bound)
            return
        yield from self._missing_in(tree, bound)

    def _missing_in(self, tree: ast.AST, bound: frozenset[str]) -> Iterator[str]:
        for part in ast.walk(tree):
            for imported in imports_of(part):
                if self._project.owns(imported.module):
                    full = f"{imported.module}.{imported.name}" if imported.name else imported.module
                    yield from self._missing_dotted(full, bound)
            if isinstance(part, ast.Attribute):
                dotted = _dotted(part)
                yield from self._missing_dotted(dotted, bound) if dotted else self._missing_word(part.attr, bound)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                yield from self._missing_word(part.id, bound)
            elif isinstance(part, ast.keyword) and part.arg:
                yield from self._missing_word(part.arg, bound)

    def _missing_dotted(self, dotted: str, bound: frozenset[str]) -> Iterator[str]:
        """A dotted name, if its project's module has no such name, or no code anywhere has one of its words."""
        first, *rest = dotted.split(".")
        if dotted in self._new or dotted in self._modules or dotted in self._told:
            return
        if rest and self._project.owns(first) and first not in bound:
            yield from self._missing_path(dotted)
            return
        if rest and first in _FOREIGN:
            return
        for word in (first, *rest):
            yield from self._missing_word(word, bound)

    def _missing_path(self, dotted: str) -> Iterator[str]:
        module, _, rest = dotted, "", ""
        while module and not self._project.has_module(module):
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}".strip(".")
        if not rest:
            return
        name, *members = rest.split(".")
        new = any(known == f"{module}.{name}" or known.endswith(f".{name}") or known == name for known in self._new)
        if not new and not self._project.has_name(module, name) and f"{module}.{name}" not in self._modules:
            yield dotted
            return
        for member in members:
            if [*self._missing_word(member, frozenset())]:
                yield dotted

    def _missing_word(self, word: str, bound: frozenset[str]) -> Iterator[str]:
        if word not in self._words and word not in bound and len(word) > 1 and not _SPECIAL.match(word):
            yield word

    def _is_dotted_name(self, code: str) -> bool:
        """Whether what looks like a file's name is a name of code, such as `os.path` or `pkg.js`."""
        return "/" not in code and not self.has_path(code) and self._project.owns(code.partition(".")[0])

    def _bound_in(self, text: str) -> frozenset[str]:
        """Names that the text's own code binds."""
        found: set[str] = set()
        for span in _SPAN.finditer(text):
            tree = parsed(_prompted((span[3] or span[2] or "").strip()))
            if tree is not None:
                found |= names_bound(tree)
        # An import binds what it names; whether that exists is asked where it stands.
        return frozenset(found)


def _prompted(code: str) -> str:
    """Code without the prompts and the results of an interactive session."""
    lines = code.splitlines()
    if any(line.lstrip().startswith(">>>") for line in lines):
        kept = [line.lstrip() for line in lines if line.lstrip().startswith((">>>", "..."))]
        return "\n".join(line[4:] for line in kept)
    return code


def _dotted(node: ast.AST) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
