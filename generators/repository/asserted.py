"""What failing tests demand: the values they compare with, the errors they expect, the calls that must give them.

Read from the tests' code alone. Comparisons by `==`, `is` and `in` count, `raises` and `warns` with their patterns,
calls of `assert…` functions and of the tests' own checking functions. Bounds (`<`), inequalities and `except` clauses
demand no value that could be told; only the arguments that they are about count.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envsynth.generators.repository.excerpt import BUILTIN_FIXTURES, TODAY, Excerpt
from envsynth.generators.repository.interface import Project
from envsynth.generators.repository.stated import SHORT, Literal
from envsynth.generators.repository.testcode import FunctionNode, body_without_docstring, imports_of

_BUILTINS = frozenset(dir(builtins))
_CHECKS = re.compile(r"^_?(assert|check|verify|expect|compare)", re.I)
_RAISES = frozenset(
    ("raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "assertWarnsRegex", "deprecated_call")
)
_ASKS = frozenset(("startswith", "endswith", "match", "search", "fullmatch"))
"""Methods whose literal argument is what is expected."""
_TRUE = ast.Constant(True)
_DEPTH = 4
"""How far names are followed to what they were bound to."""
_META = re.compile(r"\\[AbBdDsSwWZ]|[.^$*+?()\[\]{}|]+")


class Row(NamedTuple):
    """One row of a table that a test loops over."""

    number: int
    of: int
    """How many there are; 0: no table."""


_NO_ROW = Row(0, 0)


class Value(NamedTuple):
    """One thing that a failing test demands of a call."""

    kind: str
    """`value`, `error` (an exception or warning), or `pattern` (part of what an error says)."""
    text: str
    """Its source."""
    leaves: tuple[Literal, ...]
    """Strings and numbers in it that say something: neither empty nor 0, 1 or -1. An error's own name."""
    inputs: tuple[Literal, ...]
    """The same of the arguments of what is called."""
    same: bool
    """Whether it is one of the arguments as a whole, or a text that the test hands to another call."""
    subjects: tuple[str, ...]
    """Names of what is called, the outermost first."""
    by: tuple[str, ...]
    """Names of what the project is to compute it with; empty: it is written down."""
    passed: bool
    """Whether the test had passed this point when it failed at the start: today's code gives it already."""


def values_of(excerpt: Excerpt, project: Project) -> list[Value]:
    """Everything that one failing test demands, in the order of its code."""
    return list(dict.fromkeys(_Reader(excerpt, project).values()))


def strings_in(nodes: Iterable[ast.AST]) -> Iterator[Literal]:
    """Every telling literal of some code, docstrings included."""
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant):
                yield from _telling(part.value)


class _Reader:
    """One excerpt, read once."""

    def __init__(self, excerpt: Excerpt, project: Project) -> None:
        self._project = project
        self._script = excerpt.nodes[0]
        self._helpers = [node for text in excerpt.helpers for node in _parsed(text)]
        everything: list[ast.AST] = [self._script, *self._helpers]
        inside = [found for node in everything for part in ast.walk(node) for found in imports_of(part)]
        self._imports = {found.alias: found for found in (*inside, *excerpt.imports)}
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        self._functions = {part.name: part for node in everything for part in ast.walk(node) if isinstance(part, kinds)}
        self._bound: dict[str, list[ast.expr | None]] = {}
        for node in everything:
            for part in ast.walk(node):
                self._bind(part)
        calls = [part for part in ast.walk(self._script) if isinstance(part, ast.Call) and not _demands(part.func)]
        given = [value for call in calls for value in (*call.args, *(word.value for word in call.keywords))]
        self._given = {ast.dump(value) for value in given if isinstance(value, ast.Constant) and _is_text(value.value)}
        self._failed = _failing_line(excerpt)

    def values(self) -> Iterator[Value]:
        """In order."""
        for node in (self._script, *self._helpers):
            for part in ast.walk(node):
                inside = node is self._script
                if isinstance(part, ast.Assert):
                    yield from self._asserted(part.test, self._passed(part) and inside)
                elif isinstance(part, ast.With | ast.AsyncWith):
                    yield from self._raised(part, self._passed(part) and inside)
                elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
                    yield from self._checked(part.value, self._passed(part) and inside)

    def _passed(self, node: ast.stmt) -> bool:
        return (node.end_lineno or node.lineno) < self._failed

    # --- names ------------------------------------------------------------------------------------------------

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_to(target, [node.value])
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._bind_to(node.target, [node.value])
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            rows = node.iter.elts if isinstance(node.iter, ast.List | ast.Tuple) else [None]
            self._bind_to(node.target, rows)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind_to(node.optional_vars, [None])
        elif isinstance(node, ast.arg):
            self._bound.setdefault(node.arg, []).append(None)

    def _bind_to(self, target: ast.expr, values: Iterable[ast.expr | None]) -> None:
        """Bind a target to each of some values; None: something that cannot be read off."""
        values = list(values)
        if isinstance(target, ast.Name):
            self._bound.setdefault(target.id, []).extend(values)
        elif isinstance(target, ast.Tuple | ast.List):
            for position, part in enumerate(target.elts):
                parts = [
                    value.elts[position]
                    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
                    else None
                    for value in values
                ]
                self._bind_to(part, parts)

    def _closed(self, node: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether an expression is made of literals alone, through what other packages and Python provide."""
        local = {name.id for part in ast.walk(node) if isinstance(part, ast.comprehension)
                 for name in ast.walk(part.target) if isinstance(name, ast.Name)}  # fmt: skip
        for part in ast.walk(node):
            if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda):
                return False
            if isinstance(part, ast.Name) and part.id not in local and not self._closed_name(part.id, depth):
                return False
        return True

    def _closed_name(self, name: str, depth: int) -> bool:
        if name in self._bound:
            values = self._bound[name]
            return depth > 0 and all(value is not None and self._closed(value, depth - 1) for value in values)
        if name in self._imports:
            module = self._imports[name].module
            return not module.startswith(".") and not self._project.owns(module)
        return name in _BUILTINS and name not in self._functions

    def _expanded(self, node: ast.AST, row: Row = _NO_ROW, depth: int = _DEPTH) -> Iterator[ast.AST]:
        """The parts of an expression, and of what its names were bound to; of one row, where there are so many."""
        for part in ast.walk(node):
            yield part
            if isinstance(part, ast.Name) and depth > 0:
                values = self._bound.get(part.id, [])
                for value in values[row.number : row.number + 1] if len(values) == row.of else values:
                    if value is not None:
                        yield from self._expanded(value, row, depth - 1)

    def _rows(self, expected: ast.AST) -> list[Row]:
        """The rows of a table whose results an expression names, one by one."""
        of = max(
            (len(self._bound.get(part.id, ())) for part in ast.walk(expected) if isinstance(part, ast.Name)), default=0
        )
        return [Row(number, of) for number in range(of)] if of > 1 else [_NO_ROW]

    # --- what is demanded -------------------------------------------------------------------------------------

    def _asserted(self, test: ast.expr, passed: bool) -> Iterator[Value]:
        for part in ast.walk(test):
            if isinstance(part, ast.Compare):
                sides = [part.left, *part.comparators]
                for operator, left, right in zip(part.ops, sides, sides[1:], strict=False):
                    if isinstance(operator, ast.Eq | ast.Is | ast.In):
                        yield from self._values(*self._sides(left, right), passed)
                    else:
                        yield from self._values(_TRUE, part, passed)
            elif isinstance(part, ast.Call) and _last(part.func) in _ASKS:
                for argument in part.args:
                    if self._closed(argument):
                        yield from self._values(argument, part.func, passed)
        if not any(isinstance(part, ast.Compare) for part in ast.walk(test)):
            yield from self._values(_TRUE, test, passed)

    def _sides(self, left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
        """What is expected, and what is looked at."""
        if self._closed(left) != self._closed(right):
            return (left, right) if self._closed(left) else (right, left)
        return (left, right) if self._calls(right) and not self._calls(left) else (right, left)

    def _calls(self, node: ast.expr) -> bool:
        return any(isinstance(part, ast.Call) and self._subject(part.func) for part in self._expanded(node))

    def _checked(self, call: ast.Call, passed: bool) -> Iterator[Value]:
        """What a call of a checking function demands."""
        name = _last(call.func)
        own = self._functions.get(name)
        expected = _expected_parameters(own) if own is not None else None
        if expected is None and not _CHECKS.match(name):
            return
        given = [*enumerate(call.args), *((word.arg, word.value) for word in call.keywords)]
        closed = [value for place, value in given if self._closed(value) and (expected is None or place in expected)]
        looked_at = ast.Tuple([call.func, *(value for _, value in given if value not in closed)])
        for value in closed:
            yield from self._values(value, looked_at, passed)

    def _raised(self, node: ast.With | ast.AsyncWith, passed: bool) -> Iterator[Value]:
        for block in node.items:
            call = block.context_expr
            if not isinstance(call, ast.Call) or _last(call.func) not in _RAISES:
                continue
            body = ast.Module(node.body, [])
            errors = [call.args[0]] if call.args else [word.value for word in call.keywords if word.arg != "match"]
            for error in errors:
                names = _errors(self._expanded(error))
                (value, *_) = self._values(error, body, passed)
                yield value._replace(kind="error", leaves=tuple(names), same=False)
            patterns = [word.value for word in call.keywords if word.arg == "match"] + call.args[1:2]
            for pattern in patterns:
                if not self._closed(pattern):
                    continue
                for value in self._values(pattern, body, passed):
                    texts = [leaf for leaf in value.leaves if isinstance(leaf, str)]
                    said = [fixed for leaf in texts for fixed in _fixed_parts(leaf, pattern)]
                    yield value._replace(kind="pattern", leaves=tuple(said), same=False)

    def _values(self, expected: ast.expr, actual: ast.AST, passed: bool) -> Iterator[Value]:
        """What one comparison demands; of a table, each row for itself."""
        for row in self._rows(expected):
            literals = (part.value for part in self._expanded(expected, row) if isinstance(part, ast.Constant))
            leaves = tuple(leaf for literal in literals for leaf in _telling(literal))
            subjects: dict[str, None] = {}
            inputs: dict[Literal, None] = {}
            whole: set[str] = set()
            for part in self._expanded(actual, row):
                if isinstance(part, ast.Call):
                    if name := self._subject(part.func):
                        subjects[name] = None
                    arguments = [*part.args, *(word.value for word in part.keywords)]
                    whole |= {ast.dump(argument) for argument in arguments}
                elif isinstance(part, ast.Name) and (name := self._subject(part)):
                    subjects[name] = None
                elif isinstance(part, ast.Constant):
                    inputs |= dict.fromkeys(_telling(part.value))
            bound = self._bound.get(expected.id, []) if isinstance(expected, ast.Name) and row is not _NO_ROW else []
            told = bound[row.number] if bound and bound[row.number] is not None else expected
            assert told is not None
            same = bool({ast.dump(expected), ast.dump(told)} & (whole | self._given))
            by = dict.fromkeys(name for part in self._expanded(expected, row) if isinstance(part, ast.Call)
                               if (name := self._subject(part.func)))  # fmt: skip
            yield Value("value", ast.unparse(told), leaves, tuple(inputs), same, tuple(subjects), tuple(by), passed)

    def _subject(self, function: ast.expr, depth: int = _DEPTH) -> str:
        """The name of what is called, where it may be the project's: no builtin, no other package, no test's own."""
        root = function
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        last = _last(function)
        if not isinstance(root, ast.Name):
            return last if isinstance(function, ast.Attribute) and not hasattr(str, last) else ""
        if root.id in self._imports:
            found = self._imports[root.id]
            if not found.module.startswith(".") and not self._project.owns(found.module):
                return ""
            module = f"{found.module}.{found.name}".rstrip(".")
            return (
                ""
                if root is function and self._project.has_module(module)
                else found.name
                if root is function
                else last
            )
        if root.id in self._functions or (root.id in _BUILTINS and root.id not in self._bound) or self._tools(root.id):
            return ""
        if isinstance(function, ast.Attribute):
            return last
        aliased = [value for value in self._bound.get(root.id, ()) if isinstance(value, ast.Attribute | ast.Name)]
        return next((name for value in aliased if depth and (name := self._subject(value, depth - 1))), "")

    def _tools(self, name: str, depth: int = _DEPTH) -> bool:
        """Whether a name is one of the runner's fixtures, or was got from one."""
        if name in BUILTIN_FIXTURES:
            return True
        values = self._bound.get(name, []) if depth else []
        roots = [None if value is None else _root(value) for value in values]
        return bool(roots) and all(root is not None and self._tools(root, depth - 1) for root in roots)


def _root(node: ast.expr) -> str | None:
    """The name at which an expression starts."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _demands(function: ast.expr) -> bool:
    """Whether the arguments of a call are what is expected."""
    name = _last(function)
    return name in _ASKS or name in _RAISES or _CHECKS.match(name) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str | bytes) and len(value.strip()) > SHORT


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _failing_line(excerpt: Excerpt) -> int:
    """The line of the statement that fails, in the excerpt's code; 0 where it is not known, or differs by case."""
    if len(excerpt.test.cases) > 1:
        return 0
    marks = [number for number, line in enumerate(excerpt.code.splitlines(), 1) if line.strip() == TODAY]
    if not marks:
        return 0
    before = [node for node in _parsed(excerpt.code) if (node.end_lineno or 0) < marks[0]]
    return before[-1].lineno if before else 0


def _expected_parameters(function: FunctionNode) -> set[int | str] | None:
    """Places and names of the parameters that a checking function compares with; None where it checks nothing."""
    compared: set[str] = set()
    checks = False
    for part in (part for node in body_without_docstring(function) for part in ast.walk(node)):
        if isinstance(part, ast.Assert):
            checks = True
            for compare in ast.walk(part.test):
                if isinstance(compare, ast.Compare):
                    compared |= {side.id for side in (compare.left, *compare.comparators) if isinstance(side, ast.Name)}
        elif isinstance(part, ast.Call) and (_last(part.func) in _RAISES or _CHECKS.match(_last(part.func))):
            checks = True
            given = [*part.args, *(word.value for word in part.keywords)]
            compared |= {argument.id for argument in given if isinstance(argument, ast.Name)}
    if not checks:
        return None
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    return {place for place, name in enumerate(names) if name in compared} | compared


def _errors(parts: Iterable[ast.AST]) -> list[str]:
    """Names of exceptions and warnings; the root of all of them says nothing."""
    found = dict.fromkeys(
        part.id if isinstance(part, ast.Name) else part.attr
        for part in parts
        if isinstance(part, ast.Name | ast.Attribute)
    )
    return [name for name in found if name[:1].isupper() and name not in ("Exception", "BaseException", "Warning")]


def _fixed_parts(pattern: str, node: ast.expr) -> list[str]:
    """What a pattern demands word for word."""
    if isinstance(node, ast.Call) and _last(node.func) == "escape":
        return [pattern]
    marked = re.sub(r"\\([^A-Za-z0-9])", lambda mark: chr(0xE000 + ord(mark[1])), pattern)
    pieces = (
        re.sub(r"[\ue000-\ue0ff]", lambda mark: chr(ord(mark[0]) - 0xE000), piece) for piece in _META.split(marked)
    )
    return [piece.strip() for piece in pieces if len(re.findall(r"\w", piece)) >= 3]


def _telling(value: object) -> Iterator[Literal]:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, int | float | complex) and not isinstance(value, bool) and value not in (0, 1, -1):
        yield value


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
