"""Control flow and returns written otherwise, with each expression evaluated and tested exactly as often as before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider

_LEAVES = m.Return() | m.Raise() | m.Break() | m.Continue()
_HEADER = "if True:\n"

Replacement = cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]
Rest = Sequence[cst.CSTNode]
Changes = list[tuple[cst.CSTNode, Replacement | None]]
Step = Callable[[cst.CSTNode, Rest, str], Changes | None]
"""From a statement, those after it in its block, and a name to use: what to replace, None for removal."""


def rewritten(function: str, step: Step, changed: frozenset[int], module: str) -> tuple[int, str] | None:
    """The function with one statement written otherwise, one of the changed lines where there is a choice.

    Args:
        function: its whole lines, with their indentation.
        step: the way to write it.
        changed: 1-based lines of the function that are preferred.
        module: all text in which a new name must not occur.

    Returns:
        1-based line in the function, and the function's new text; None where the step does not apply.
    """
    indented = function[:1] == " "
    config = cst.PartialParserConfig(default_indent="    ")
    try:
        wrapper = MetadataWrapper(cst.parse_module((_HEADER if indented else "") + function, config))
    except (cst.ParserSyntaxError, RecursionError):
        return None
    positions = wrapper.resolve(PositionProvider)
    blocks = _Blocks()
    wrapper.module.visit(blocks)
    shift = 1 if indented else 0
    sites = []
    for statement, rest in blocks.found:
        line = positions[statement].start.line - shift
        sites.append((line not in changed, line, statement, rest))
    for _, line, statement, rest in sorted(sites, key=lambda one: one[:2]):
        name = f"value_{positions[statement].start.line}"
        changes = step(statement, rest, name) if name not in module else None
        if changes:
            new = wrapper.module.visit(_Replacer(dict(changes)))
            return line, new.code.removeprefix(_HEADER if indented else "")
    return None


class _Blocks(cst.CSTVisitor):
    """Every statement of every indented block, with those that follow it there; not those of classes."""

    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, Sequence[cst.CSTNode]]] = []

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        for number, statement in enumerate(node.body):
            if not isinstance(statement, cst.FunctionDef | cst.ClassDef):
                self.found.append((statement, node.body[number + 1 :]))

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False


class _Replacer(cst.CSTTransformer):
    def __init__(self, changes: dict[cst.CSTNode, Replacement | None]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        if original_node in self._changes:
            new = self._changes[original_node]
            return cst.RemoveFromParent() if new is None else new
        return super().on_leave(original_node, updated_node)


def swap_branches(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`if c: A else: B` as `if not (c): B else: A`."""
    if not (isinstance(statement, cst.If) and isinstance(statement.orelse, cst.Else)):
        return None
    new = statement.with_changes(
        test=_not(statement.test), body=statement.orelse.body,
        orelse=statement.orelse.with_changes(body=statement.body), whitespace_before_test=cst.SimpleWhitespace(" "),
    )  # fmt: skip
    return [(statement, new)]


def drop_else(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`if c: return x` / `else: B` as `if c: return x`, then `B`."""
    if not (isinstance(statement, cst.If) and isinstance(statement.orelse, cst.Else) and _leaves(statement.body)):
        return None
    after = statement.orelse.body
    if not isinstance(after, cst.IndentedBlock):
        return None
    return [(statement, cst.FlattenSentinel([statement.with_changes(orelse=None), *after.body]))]


def add_else(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`if c: return x`, then `B`, as `if c: return x` / `else: B`."""
    if not (isinstance(statement, cst.If) and statement.orelse is None and rest and _leaves(statement.body)):
        return None
    orelse = cst.Else(body=cst.IndentedBlock(body=list(rest)))  # type: ignore[arg-type]
    return [(statement, statement.with_changes(orelse=orelse)), *((one, None) for one in rest)]


def nest_elif(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`elif` as an `if` inside `else`."""
    if not (isinstance(statement, cst.If) and isinstance(statement.orelse, cst.If)):
        return None
    inner = statement.orelse.with_changes(leading_lines=[])
    return [(statement, statement.with_changes(orelse=cst.Else(body=cst.IndentedBlock(body=[inner]))))]


def split_and(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`if a and b: X` as an `if` inside an `if`."""
    if not (isinstance(statement, cst.If) and statement.orelse is None):
        return None
    if not m.matches(statement.test, m.BooleanOperation(operator=m.And())):
        return None
    test = cst.ensure_type(statement.test, cst.BooleanOperation)
    inner = cst.If(test=_bracketed(test.right), body=statement.body)
    new = statement.with_changes(
        test=_bracketed(test.left),
        body=cst.IndentedBlock(body=[inner]),
        whitespace_before_test=cst.SimpleWhitespace(" "),
    )
    return [(statement, new)]


def expand_choice(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`return x if c else y`, or an assignment of it to a name, as an `if` statement."""
    small = _only(statement)
    if isinstance(small, cst.Return | cst.Assign) and isinstance(small.value, cst.IfExp):
        targets = [] if isinstance(small, cst.Return) else [one.target for one in small.targets]
        if all(isinstance(one, cst.Name) for one in targets):
            choice = small.value
            blocks = [_block(small.with_changes(value=_bracketed(one))) for one in (choice.body, choice.orelse)]
            new = cst.If(
                test=_bracketed(choice.test), body=blocks[0], orelse=cst.Else(body=blocks[1]),
                leading_lines=_leading(statement),
            )  # fmt: skip
            return [(statement, new)]
    return None


def name_result(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`return f(x)` as an assignment to a local and its return."""
    small = _only(statement)
    if not isinstance(small, cst.Return) or small.value is None or isinstance(small.value, cst.Name | cst.Integer):
        return None
    first = cst.Assign(targets=[cst.AssignTarget(cst.Name(name))], value=_bracketed(small.value))
    lines = [
        cst.SimpleStatementLine([first], leading_lines=_leading(statement)),
        cst.SimpleStatementLine([cst.Return(cst.Name(name))]),
    ]
    return [(statement, cst.FlattenSentinel(lines))]


def loop_forever(statement: cst.CSTNode, rest: Rest, name: str) -> Changes | None:
    """`while c: A` as `while True: if not (c): break`, then `A`."""
    if not (isinstance(statement, cst.While) and statement.orelse is None):
        return None
    if m.matches(statement.test, m.Name("True") | m.Integer()) or not isinstance(statement.body, cst.IndentedBlock):
        return None
    leave = cst.If(test=_not(statement.test), body=_block(cst.Break()))
    body = statement.body.with_changes(body=[leave, *statement.body.body])
    new = statement.with_changes(test=cst.Name("True"), body=body, whitespace_after_while=cst.SimpleWhitespace(" "))
    return [(statement, new)]


STEPS: dict[str, tuple[Step, str]] = {
    "swap_branches": (swap_branches, "a condition negated and its branches swapped"),
    "name_result": (name_result, "a returned expression in a local first"),
    "drop_else": (drop_else, "no `else` after a branch that leaves"),
    "nest_elif": (nest_elif, "`elif` as an `if` inside `else`"),
    "split_and": (split_and, "`and` as an `if` inside an `if`"),
    "expand_choice": (expand_choice, "a conditional expression as a statement"),
    "add_else": (add_else, "what follows a branch that leaves, in its `else`"),
    "loop_forever": (loop_forever, "a loop's condition inside its body"),
}
"""By kind: how, and in words."""


def _only(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The statement of a line that holds no other."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        return statement.body[0]
    return None


def _leading(statement: cst.CSTNode) -> Sequence[cst.EmptyLine]:
    return statement.leading_lines if isinstance(statement, cst.SimpleStatementLine) else ()


def _block(small: cst.BaseSmallStatement) -> cst.IndentedBlock:
    return cst.IndentedBlock(body=[cst.SimpleStatementLine([small])])


def _leaves(body: cst.BaseSuite) -> bool:
    """Whether a block's last statement ends it for good."""
    if isinstance(body, cst.SimpleStatementSuite):
        return m.matches(body.body[-1], _LEAVES)
    last = body.body[-1]
    return isinstance(last, cst.SimpleStatementLine) and m.matches(last.body[-1], _LEAVES)


def _bracketed(expression: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in brackets of its own, so that it may stand anywhere and break over lines."""
    if expression.lpar or isinstance(expression, cst.Name | cst.BaseNumber):
        return expression
    return expression.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _not(test: cst.BaseExpression) -> cst.UnaryOperation:
    return cst.UnaryOperation(operator=cst.Not(), expression=_bracketed(test))
