"""A failing test as a short script: the calls, what they must give, and the set-up needed to understand them."""

from __future__ import annotations

import ast
import builtins
import re
from typing import NamedTuple

from envsynth.generators.repository.parameters import inside, looped, old_mark, parameter_names, parametrised, patched
from envsynth.generators.repository.plain import assertion, is_self, plain
from envsynth.generators.repository.testcode import (
    FunctionNode,
    Imported,
    TestModule,
    body_without_docstring,
    names_bound,
    names_changed,
    names_read,
    same,
)

_WHOLE_LINES = 14
"""A body of so many lines is shown whole."""
_POINTS = re.compile(
    r"https?://|(?<!\w)#\d+|\b(gh|issue|bug|pr|ticket)s?[- #]*\d+|\b[\w.]+@[\w-]+\.\w"
    r"|# *(noqa|type:|pragma|pylint|fmt:)",
    re.I,
)
_ORDER = re.compile(r"\s+#\s*(noqa|type: ignore|pragma|pylint|fmt:|https?://|gh-|#\d)[^'\"]*$")
TODAY = "# today: …"
"""Stands where the test fails."""
_ALWAYS = frozenset({*dir(builtins), "__file__"})
_SET_UP = ("setUp", "setUpClass", "setup_method", "setup_class")
BUILTIN_FIXTURES = frozenset(
    ("tmp_path", "tmpdir", "tmp_path_factory", "monkeypatch", "capsys", "capfd", "caplog", "recwarn", "request")
)
"""Fixtures that pytest itself has."""


class Failing(NamedTuple):
    """One test function that fails at the start."""

    path: str
    names: tuple[str, ...]
    """Class names, then the function's."""
    cases: tuple[str, ...]
    """Parameter ids of the failing cases, without brackets; empty for a test without parameters."""
    message: str
    """What the first failing case says."""
    line: int
    """Line in the test's file where it fails; 0: unknown."""


class Excerpt(NamedTuple):
    """A failing test as code."""

    test: Failing
    heading: str
    code: str
    imports: tuple[Imported, ...]
    helpers: tuple[str, ...]
    """Source of what the code uses and the agent cannot see."""
    fixtures: tuple[str, ...]
    """Fixtures of the repository that the code uses by name."""
    nodes: tuple[ast.AST, ...]
    """What is shown, parsed."""


class Surroundings(NamedTuple):
    """Where a test stands."""

    module: TestModule
    old: TestModule | None
    """The same file at the start."""
    conftests: tuple[tuple[TestModule, TestModule | None], ...] = ()
    """The conftest files above it, the nearest first, each with its version at the start."""


def make_excerpt(test: Failing, around: Surroundings) -> Excerpt | None:
    """The code of a failing test, or None where its source cannot be found or uses what cannot be shown."""
    found = around.module.find(test.names)
    if found is None:
        return None
    owner, function = found
    old = around.old.find(test.names) if around.old else None
    body = _wanted(function, old[1] if old else None, test.line)
    marks = parametrised(function, owner)
    given = patched(function, owner)
    parameters = {name for mark in marks for name in parameter_names(mark)} | {patch.alias for patch in given}
    fixtures = [arg.arg for arg in function.args.args if arg.arg not in parameters and arg.arg not in ("self", "cls")]
    setup, fixture_names, fixture_helpers = _set_up(fixtures, owner, body, around)
    told = [plain("", node, owner) for node in setup]
    for node in body:
        told.append(plain(around.module.segment(node), node, owner))
        if node.lineno <= test.line <= (node.end_lineno or node.lineno):
            told.append(TODAY)
    text = "\n".join(told)
    for patch in given:
        text = inside(text, patch)
    for mark in reversed(marks):
        text = looped(text, mark, around.module, old_mark(mark, old), test.cases)
    text = _scrub(text)
    script = ast.parse(text)
    own = [ast.parse(helper) for helper in fixture_helpers]
    needed = names_read(script, *own) - names_bound(script, *own) - set(fixtures)
    imports, helpers = _resolve(needed, around, set(test.names))
    known = {imported.alias for imported in imports} | {*fixtures, *test.names}
    shown = [script, *own, *(ast.parse(helper) for helper in helpers)]
    if not around.module.open_ended and names_read(*shown) - names_bound(*shown) - known - _ALWAYS:
        return None
    # Arguments that a library draws are told of by the decorator; only the others come from fixtures.
    named = () if _draws(function) else tuple(fixture_names)
    return Excerpt(test, _heading(function), text, imports, (*fixture_helpers, *helpers), named, (script,))


def _draws(function: FunctionNode) -> bool:
    """Whether hypothesis gives the arguments."""
    calls = [decorator.func for decorator in function.decorator_list if isinstance(decorator, ast.Call)]
    return any(ast.unparse(call).rpartition(".")[2] == "given" for call in calls)


# --- which statements -----------------------------------------------------------------------------------------


def _wanted(function: FunctionNode, old: FunctionNode | None, line: int) -> list[ast.stmt]:
    """The statements that changed or failed, with what they depend on; all of a short or new body."""
    body = body_without_docstring(function)
    if len(body) > 1 and isinstance(body[-1], ast.Return) and body[-1].value is None:
        body = body[:-1]
    lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in body)
    if old is None or lines <= _WHOLE_LINES:
        return body
    known = {ast.dump(node) for node in body_without_docstring(old)}
    wanted = {number for number, node in enumerate(body) if ast.dump(node) not in known}
    wanted |= {number for number, node in enumerate(body) if node.lineno <= line <= (node.end_lineno or node.lineno)}
    tainted = {name for number in wanted for name in names_bound(body[number])}
    for number, node in enumerate(body):
        if number not in wanted and names_read(node) & tainted:
            wanted.add(number)
            tainted |= names_changed(node)
    if not any(_checks(body[number]) for number in wanted):
        return body
    needed: set[str] = set()
    kept = []
    for number in range(len(body) - 1, -1, -1):
        node = body[number]
        asserts_only = isinstance(node, ast.Assert) or assertion(node) is not None
        if number in wanted or (not asserts_only and names_changed(node) & needed):
            needed |= names_read(node)
            kept.append(node)
    return kept[::-1]


def _checks(node: ast.stmt) -> bool:
    """Whether a statement asserts something."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert) or (
            isinstance(part, ast.Attribute) and part.attr in ("raises", "warns", "fail")
        ):
            return True
        if isinstance(part, ast.Attribute | ast.Name):
            name = part.attr if isinstance(part, ast.Attribute) else part.id
            if re.match(r"_?(assert|check|verify|expect|compare)", name, re.I) or name in ("raises", "warns"):
                return True
    return False


# --- set-up and names -----------------------------------------------------------------------------------------


def _set_up(
    fixtures: list[str], owner: ast.ClassDef | None, body: list[ast.stmt], around: Surroundings
) -> tuple[list[ast.stmt], list[str], list[str]]:
    """Statements that stand for fixtures and setUp, fixtures used by name, and source of those that are new."""
    statements: list[ast.stmt] = []
    names: list[str] = []
    helpers: list[str] = []
    if owner is not None:
        statements, helpers = _own_set_up(owner, body, around.module)
    read = names_read(*body)
    for name in fixtures:
        if name in BUILTIN_FIXTURES or name not in read:
            continue
        found = _fixture(name, around)
        if found is None:
            names.append(name)
            continue
        module, node, seen = found
        value = _plain_value(node)
        if value is not None:
            statements.append(ast.parse(f"{name} = {ast.unparse(value)}").body[0])
        elif seen:
            names.append(name)
        else:
            helpers.append(module.segment(node))
    return statements, names, helpers


def _own_set_up(owner: ast.ClassDef, body: list[ast.stmt], module: TestModule) -> tuple[list[ast.stmt], list[str]]:
    """What a class sets up for its tests, as far as a test uses it, and source of its methods that the test calls."""
    parts = (part for node in body for part in ast.walk(node))
    used = {part.attr for part in parts if isinstance(part, ast.Attribute) and is_self(part.value)}
    statements: list[ast.stmt] = []
    helpers: list[str] = []
    for member in owner.body:
        if isinstance(member, ast.FunctionDef) and member.name in _SET_UP:
            statements += [node for node in body_without_docstring(member) if _sets_own(node) & used]
        elif isinstance(member, ast.Assign) and {ast.unparse(target) for target in member.targets} & used:
            statements.append(member)
        elif isinstance(member, ast.FunctionDef | ast.ClassDef) and member.name in used:
            helpers.append(module.segment(member))
    return statements, helpers


def _fixture(name: str, around: Surroundings) -> tuple[TestModule, FunctionNode, bool] | None:
    """The fixture's module, its code, and whether the agent's tree has the same."""
    for module, old in ((around.module, around.old), *around.conftests):
        node = module.definitions.get(name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return module, node, same(node, old.definitions.get(name) if old else None)
    return None


def _plain_value(node: FunctionNode) -> ast.expr | None:
    """What a fixture of one line, without fixtures of its own, returns."""
    body = body_without_docstring(node)
    own = [arg.arg for arg in node.args.args if arg.arg != "request" or "request" in names_read(*body)]
    if len(body) != 1 or own or any("params" in ast.unparse(mark) for mark in node.decorator_list):
        return None
    only = body[0]
    if isinstance(only, ast.Return):
        return only.value
    return only.value.value if isinstance(only, ast.Expr) and isinstance(only.value, ast.Yield) else None


def _resolve(needed: set[str], around: Surroundings, tests: set[str]) -> tuple[tuple[Imported, ...], tuple[str, ...]]:
    """Imports of the needed names, and source of module-level code that the agent cannot see."""
    imports: dict[str, Imported] = {}
    helpers: dict[str, str] = {}
    if "pytest" in needed and "pytest" not in around.module.imports:
        imports["pytest"] = Imported("pytest", "", "pytest")
    waiting, seen = sorted(needed), {*tests, *imports}
    sources = [(around.module, around.old), *around.conftests]
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for module, _ in sources:
            if name in module.imports:
                imports[name] = module.imports[name]
                break
            node = module.definitions.get(name) or module.constants.get(name)
            if node is not None:
                helpers[name] = module.segment(node)
                waiting += sorted(names_read(node))
                break
    ordered = sorted(helpers, key=lambda name: _position(name, around.module))
    return tuple(imports[name] for name in sorted(imports)), tuple(helpers[name] for name in ordered)


def _position(name: str, module: TestModule) -> int:
    node = module.definitions.get(name) or module.constants.get(name)
    return node.lineno if node is not None else 0


# --- text -----------------------------------------------------------------------------------------------------


def _sets_own(node: ast.stmt) -> set[str]:
    return {
        part.attr for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and is_self(part.value)
    }  # fmt: skip


def _heading(function: FunctionNode) -> str:
    """What the test is about: the first line of its docstring, else its name in words."""
    docstring = (ast.get_docstring(function) or "").strip().split("\n\n")[0]
    first = " ".join(docstring.split()).rstrip(".")
    first = re.sub(
        r"^(tests?|checks?|verif(y|ies)|ensures?|makes? sure)( (that|if|whether|for|the case where))?:? ",
        "",
        first,
        flags=re.I,
    )
    if 2 < len(first.split()) < 30 and not re.search(r"https?://|#\d|@|\b(tests?|coverage|code-paths?)\b", first):
        return first
    return re.sub(r"^test_*", "", function.name).replace("_", " ").strip() or function.name


def _scrub(text: str) -> str:
    """Without comments that point at issues, links or people, and without orders to tools."""
    kept: list[str] = []
    comment: list[str] = []
    for line in [*text.splitlines(), None]:
        if line is not None and line.strip().startswith("#"):
            comment.append(line)
            continue
        if not _POINTS.search("\n".join(comment)):
            kept += comment
        comment = []
        if line is not None:
            kept.append(_ORDER.sub("", line))
    return "\n".join(kept)
