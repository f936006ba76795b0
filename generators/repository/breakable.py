"""Functions of a revision that are worth breaking: long enough, with logic in them, and named by tests."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsynth.generators.repository.gitdir import GitDir
from envsynth.generators.repository.roles import RoleBook
from envsynth.generators.repository.split import text_of
from envsynth.generators.repository.testcode import FunctionNode, body_without_docstring
from envsynth.generators.repository.testfolders import rules_of_test_folders
from envsynth.models import Role, RoleRule
from envsynth.seeds import stream

MIN_LINES = 5
MAX_LINES = 120
_MAX_FILE = 400_000
"""Bytes; a larger module is a table or generated."""
_LOGIC = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.IfExp, ast.BoolOp, ast.Match, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_WORD = re.compile(r"[^\W\d]\w*")
_DOUBLE = re.compile(r"__\w+__")


class Function(NamedTuple):
    """A function or method of a module: not one inside another function, and the only one of its name."""

    name: str
    """Qualified, such as `Parser.parse`."""
    node: FunctionNode
    first: int
    """1-based first line, decorators included."""
    last: int

    @property
    def lines(self) -> int:
        """How many lines it takes."""
        return self.last - self.first + 1


class Sources(NamedTuple):
    """The Python files of a revision."""

    source: Mapping[str, str]
    """Text of each module that a solution may change, by path."""
    tests: Mapping[str, str]
    """Text of each file of the tests."""


def python_files(git: GitDir, revision: str, rules: Sequence[RoleRule]) -> Sources:
    """The Python files of a revision that are text, by the language's rules and the project's own test folders."""
    entries = [entry for entry in git.entries(revision) if entry.mode.startswith("100")]
    paths = [entry.path.decode("utf-8", "replace") for entry in entries]
    texts: dict[str, str] = {}
    with git.reader() as reader:
        for entry, path in zip(entries, paths, strict=True):
            if path.endswith(".py") and "\N{REPLACEMENT CHARACTER}" not in path:
                content = reader.read(entry.oid)
                text = text_of(content) if len(content) <= _MAX_FILE else None
                if text is not None:
                    texts[path] = text
    role = role_book(paths, lambda path: texts.get(path, ""), rules)
    return Sources(
        {path: text for path, text in texts.items() if role(path) is Role.SOURCE},
        {path: text for path, text in texts.items() if role(path) in (Role.TEST, Role.CONFIG)},
    )


def role_book(paths: Sequence[str], text: Callable[[str], str], rules: Sequence[RoleRule]) -> RoleBook:
    """What each path of a revision is, the project's own test folders included."""
    known = RoleBook(rules)
    modules = [path for path in paths if path.endswith(".py") and known(path) is Role.SOURCE]
    own = rules_of_test_folders(paths, modules, text, known)
    return RoleBook((*own, *rules))


def functions_of(text: str) -> dict[str, Function]:
    """The functions of a module whose name stands for one of them only, by qualified name, in the order of the text."""
    module = parsed(text)
    return {} if module is None else functions_in(module)


def functions_in(module: ast.Module) -> dict[str, Function]:
    """As `functions_of`, of a module that was parsed."""
    found = list(_functions(module, ""))
    seen = Counter(function.name for function in found)
    return {function.name: function for function in found if seen[function.name] == 1}


def parsed(text: str) -> ast.Module | None:
    """A module, or None where this interpreter cannot read it."""
    if "\r" in text.replace("\r\n", "") or "\f" in text:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def worth_breaking(sources: Sources, seed: str) -> list[tuple[str, str]]:
    """Path and qualified name of each function worth breaking, in the order in which they are to be tried.

    Those come first that a test file names which also names their module. Files take turns, so that the first few
    functions are spread over the project.

    Args:
        sources: the revision's Python files.
        seed: decides the order.
    """
    named = [set(_WORD.findall(text)) for text in sources.tests.values()]
    chance = stream(seed, "functions worth breaking")
    near: list[list[tuple[str, str]]] = []
    far: list[list[tuple[str, str]]] = []
    for path in sorted(sources.source):
        module = [words for words in named if _module(path) in words]
        names = [name for name, function in functions_of(sources.source[path]).items() if has_logic(function)]
        chance.shuffle(names)
        near.append([(path, name) for name in names if _is_named(name, module)])
        far.append([(path, name) for name in names if _is_named(name, named) and not _is_named(name, module)])
    chance.shuffle(near)
    chance.shuffle(far)
    return [*_by_turns(near), *_by_turns(far)]


def _by_turns(queues: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[str, str]]:
    longest = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _module(path: str) -> str:
    """The last part of a module's name; of a package's, the package's."""
    name = path.removesuffix(".py").removesuffix("/__init__")
    return name.rpartition("/")[2]


def has_logic(function: Function) -> bool:
    """Whether a function is of a fit length and decides or repeats anything."""
    body = body_without_docstring(function.node)
    return MIN_LINES <= function.lines <= MAX_LINES and any(
        isinstance(part, _LOGIC) for statement in body for part in ast.walk(statement)
    )


def _is_named(name: str, files: Iterable[set[str]]) -> bool:
    """Whether one of some files names a function, or a method with its class."""
    owner, _, last = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    if not owner:
        return any(last in words for words in files)
    special = _DOUBLE.fullmatch(last) is not None
    return any(owner in words and (last in words or special) for words in files)


def _functions(parent: ast.AST, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            yield Function(f"{prefix}{node.name}", node, first, node.end_lineno or node.lineno)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _functions(node, prefix)
