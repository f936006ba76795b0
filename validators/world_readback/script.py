"""Read-back scripts: pytest files that assert what an episode's read tools show, run here without pytest.

A script comes with a candidate, so it is not trusted: it may define functions, call the one fixture, compare and
assert, and nothing else. It imports nothing and reaches no attribute but a few methods of texts and dictionaries.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from envsynth.runtime.contract import JSON

Read = Callable[..., JSON]
"""`call(tool, **arguments)`: the result of a read tool."""

_ALLOWED = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Expr, ast.Return, ast.Assign, ast.Assert, ast.Call,
    ast.keyword, ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Dict,
    ast.Tuple, ast.Set, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.IfExp,
    ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.comprehension, ast.Eq, ast.NotEq, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot,
)  # fmt: skip
_METHODS = frozenset({"strip", "lower", "get", "items", "keys", "values", "startswith", "endswith"})
_BUILTINS: Mapping[str, object] = {
    function.__name__: function
    for function in (all, any, len, sorted, isinstance, min, max, sum, str, int, float, list, dict, set, tuple, repr)
}
MAX_TESTS = 500
_RAISED = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, RecursionError, NameError)
"""What the allowed syntax can raise besides a failed assertion."""


class BadScript(Exception):
    """A script does what no read-back may do."""


class Failed(NamedTuple):
    """A test that does not hold."""

    test: str
    message: str


def read_tests(script: str) -> Mapping[str, Callable[[Read], None]]:
    """The tests of a script, by name.

    Raises:
        BadScript: it is no Python, has no test, or does what it may not.
    """
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError) as exc:
        raise BadScript(f"it is no Python: {exc}") from exc
    for fault in _faults(tree):
        raise BadScript(fault)
    space: dict[str, object] = {"__builtins__": dict(_BUILTINS)}
    # Every node was looked at: nothing here can leave the names above.
    try:
        exec(compile(tree, "read-back", "exec"), space)
    except _RAISED as exc:
        # Defaults of parameters are evaluated here.
        raise BadScript(f"its functions cannot be defined: {type(exc).__name__}: {exc}") from exc
    found = {name: test for name, test in space.items() if name.startswith("test_") and callable(test)}
    if not 0 < len(found) <= MAX_TESTS:
        raise BadScript(f"it has {len(found)} tests, where 1 to {MAX_TESTS} are wanted")
    return found


def failures(tests: Mapping[str, Callable[[Read], None]], call: Read) -> Iterator[Failed]:
    """The tests that do not hold.

    Args:
        tests: of a script.
        call: looks at the state that is judged.
    """
    for name, test in tests.items():
        try:
            test(call)
        except AssertionError as exc:
            yield Failed(name, str(exc) or "it shows something else")
        except _RAISED as exc:
            # A state that is not as the script expects may have no row where it reads one.
            yield Failed(name, f"{type(exc).__name__}: {exc}")


def _faults(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if not isinstance(node, _ALLOWED):
            yield f"line {line}: {type(node).__name__} has no place in a read-back"
        elif isinstance(node, ast.Attribute) and node.attr not in _METHODS:
            yield f"line {line}: the attribute {node.attr} has no place in a read-back"
        elif isinstance(node, ast.Name | ast.arg) and (node.id if isinstance(node, ast.Name) else node.arg)[:1] == "_":
            yield f"line {line}: names do not begin with an underscore"
        elif isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield f"line {line}: a function has no decorators"
    for statement in tree.body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (text or isinstance(statement, ast.FunctionDef)):
            yield f"line {statement.lineno}: only functions stand at the top"
