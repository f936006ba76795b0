"""Mutation operators: one small wrong change at a time, on the lines that the reference brought.

The choice follows cosmic-ray and mutmut (relational, boolean and arithmetic replacement, constants, removed arguments,
statements and handlers) and SWE-smith's procedural modifiers (inverted conditions, removed assignments and branches),
without what mostly makes mutants that no test could fairly be asked to notice: the wording of errors, warnings and
logs, annotations, documentation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import libcst as cst
from libcst.metadata import (
    CodePosition,
    CodeRange,
    MetadataWrapper,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)

from envsynth.hunks import lines_of
from envsynth.languages.python.functions import functions, parse
from envsynth.languages.python.pieces import statement_bounds

KINDS = (
    "negate_condition", "swap_comparison", "swap_boolean", "remove_statement", "skip_branch", "drop_handler",
    "swap_arithmetic", "shift_slice", "drop_argument", "swap_name", "change_constant", "change_text",
)  # fmt: skip
"""Operators, the most telling first."""

_OPERATORS: dict[type[cst.CSTNode], tuple[str, str]] = {
    cst.LessThan: ("swap_comparison", "<="), cst.LessThanEqual: ("swap_comparison", "<"),
    cst.GreaterThan: ("swap_comparison", ">="), cst.GreaterThanEqual: ("swap_comparison", ">"),
    cst.Equal: ("swap_comparison", "!="), cst.NotEqual: ("swap_comparison", "=="),
    cst.In: ("swap_comparison", "not in"), cst.NotIn: ("swap_comparison", "in"),
    cst.Is: ("swap_comparison", "is not"), cst.IsNot: ("swap_comparison", "is"),
    cst.And: ("swap_boolean", "or"), cst.Or: ("swap_boolean", "and"),
    cst.Add: ("swap_arithmetic", "-"), cst.Subtract: ("swap_arithmetic", "+"),
    cst.Multiply: ("swap_arithmetic", "/"), cst.Divide: ("swap_arithmetic", "*"),
    cst.FloorDivide: ("swap_arithmetic", "*"), cst.Modulo: ("swap_arithmetic", "//"),
    cst.Power: ("swap_arithmetic", "*"), cst.LeftShift: ("swap_arithmetic", ">>"),
    cst.RightShift: ("swap_arithmetic", "<<"), cst.BitAnd: ("swap_arithmetic", "|"),
    cst.BitOr: ("swap_arithmetic", "&"), cst.BitXor: ("swap_arithmetic", "&"),
    cst.AddAssign: ("swap_arithmetic", "-="), cst.SubtractAssign: ("swap_arithmetic", "+="),
    cst.MultiplyAssign: ("swap_arithmetic", "/="), cst.DivideAssign: ("swap_arithmetic", "*="),
}  # fmt: skip
_CONSTANT_NAMES = {"True": "False", "False": "True"}
_TALK = frozenset({"warn", "debug", "info", "warning", "error", "exception", "critical", "log", "print", "deprecated"})
_TYPING = frozenset({"TypeVar", "ParamSpec", "NewType", "cast", "NamedTuple", "namedtuple"})
_SHOWN = 50
_HEADER = "if True:\n"


class Mutation(NamedTuple):
    """One change to a text."""

    kind: str
    line: int
    """1-based, in the text it changes."""
    text: str
    """The whole text after it."""
    description: str


def mutations(text: str, lines: frozenset[int]) -> Iterator[Mutation]:
    """Every mutation that begins on one of the lines, in the order of the text.

    Args:
        text: a module; nothing is yielded where it cannot be read.
        lines: 1-based lines that may be changed.
    """
    whole = lines_of(text)
    for first, last, own in _chunks(text, lines):
        chunk = "".join(whole[first:last])
        # A method is read in a block of its own, so that the rest of its class need not be.
        header = _HEADER if chunk[:1] in (" ", "\t") else ""
        shift = first - (1 if header else 0)
        before, after = "".join(whole[:first]), "".join(whole[last:])
        for one in _of_chunk(header + chunk, frozenset(line - shift for line in own)):
            new = before + one.text.removeprefix(header) + after
            yield one._replace(line=one.line + shift, text=new)


def _of_chunk(text: str, lines: frozenset[int]) -> list[Mutation]:
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except (cst.ParserSyntaxError, RecursionError):
        return []
    if text != wrapper.module.code:
        return []
    collector = _Collector(text, lines)
    wrapper.visit(collector)
    return collector.found


def _chunks(text: str, lines: frozenset[int]) -> Iterator[tuple[int, int, list[int]]]:
    """What must be read to change some lines: functions, and top-level statements for what stands outside of them.

    Yields:
        First line and the one after the last, 0-based, and those of the 1-based lines that are inside.
    """
    module = parse(text)
    if module is None:
        return
    spans = {(one.first - 1, one.last): one for one in functions(module).values()}
    found: dict[tuple[int, int], list[int]] = {}
    bounds = statement_bounds(text)
    for line in sorted(lines):
        inside = (span for span in spans if span[0] < line <= span[1])
        at = bisect_right(bounds, line - 1)
        span = next(inside, None) or (bounds[at - 1], bounds[at] if at < len(bounds) else line)
        found.setdefault(span, []).append(line)
    for (first, last), own in found.items():
        yield first, last, own


class _Collector(cst.CSTVisitor):
    """Collects mutations as replacements of pieces of the text, which leave all else as it is."""

    METADATA_DEPENDENCIES = (PositionProvider, WhitespaceInclusivePositionProvider)

    def __init__(self, text: str, lines: frozenset[int]) -> None:
        super().__init__()
        self.found: list[Mutation] = []
        self._text = text
        self._lines = lines
        self._starts = [0]
        for line in lines_of(text):
            self._starts.append(self._starts[-1] + len(line))

    def visit_Annotation(self, node: cst.Annotation) -> bool:
        return False

    def visit_Raise(self, node: cst.Raise) -> bool:
        self._replace("remove_statement", node, "pass")
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return not any("overload" in self._code(one) for one in node.decorators)

    def visit_If(self, node: cst.If) -> bool:
        test = self._code(node.test)
        if test.endswith("TYPE_CHECKING") or "__name__" in test:
            return False
        self._negate(node.test)
        self._replace("skip_branch", node.test, "False", place=node)
        if isinstance(node.orelse, cst.Else):
            self._replace("skip_branch", node.orelse.body, "pass", place=node.orelse)
        return True

    def visit_While(self, node: cst.While) -> None:
        if self._code(node.test) not in ("True", "1"):
            self._negate(node.test)

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._negate(node.test)

    def visit_CompIf(self, node: cst.CompIf) -> None:
        self._negate(node.test)

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> None:
        self._replace("drop_handler", node.body, "raise", place=node)

    def visit_ComparisonTarget(self, node: cst.ComparisonTarget) -> None:
        self._operator(node.operator)

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        self._operator(node.operator)

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if not any(isinstance(side, cst.BaseString) for side in (node.left, node.right)):
            self._operator(node.operator)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._replace("remove_statement", node, "pass")
        if not isinstance(node.value, cst.BaseString):
            self._operator(node.operator)

    def visit_Assign(self, node: cst.Assign) -> bool:
        targets = [one.target for one in node.targets]
        if any(isinstance(one, cst.Name) and one.value.startswith("__") for one in targets):
            return False
        if any(isinstance(one, cst.Attribute | cst.Subscript) for one in targets):
            self._replace("remove_statement", node, "pass")
        elif self._code(node.value) != "None" and all(isinstance(one, cst.Name) for one in targets):
            self._replace("remove_statement", node.value, "None", place=node)
        return True

    def visit_Return(self, node: cst.Return) -> None:
        if node.value is not None and self._code(node.value) != "None":
            self._replace("remove_statement", node, "return None")

    def visit_Del(self, node: cst.Del) -> None:
        self._replace("remove_statement", node, "pass")

    def visit_Break(self, node: cst.Break) -> None:
        self._replace("remove_statement", node, "pass")

    def visit_Continue(self, node: cst.Continue) -> None:
        self._replace("remove_statement", node, "pass")

    def visit_Expr(self, node: cst.Expr) -> bool:
        if isinstance(node.value, cst.Call | cst.Await) and not self._talks(node.value):
            self._replace("remove_statement", node, "pass")
        return not isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)

    def visit_Call(self, node: cst.Call) -> bool:
        name = _last_name(node.func)
        if name in _TALK or name in _TYPING:
            return False
        if name in _swapped_names():
            place = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            self._replace("swap_name", place, _swapped_names()[name])
        for number, arg in enumerate(node.args):
            if arg.keyword is not None and arg.keyword.value not in ("stacklevel", "file"):
                # The whole piece with its comma; what comes before keeps its own.
                end = self._range(node.args[number + 1]).start if number + 1 < len(node.args) else self._whole(arg).end
                self._splice("drop_argument", (self._range(arg).start, end), "", self._range(arg).start.line)
        return True

    def visit_Slice(self, node: cst.Slice) -> None:
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, cst.Integer | cst.UnaryOperation):
                self._replace("shift_slice", bound, f"({self._code(bound)}) + 1")

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if isinstance(node.operator, cst.Not):
            self._replace("negate_condition", node, f"bool({self._code(node.expression)})")

    def visit_Integer(self, node: cst.Integer) -> None:
        self._replace("change_constant", node, str(node.evaluated_value + 1))

    def visit_Float(self, node: cst.Float) -> None:
        if abs(node.evaluated_value) < 1e300:
            self._replace("change_constant", node, repr(node.evaluated_value + 1))

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in _CONSTANT_NAMES:
            self._replace("change_constant", node, _CONSTANT_NAMES[node.value])

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        if len(node.quote) == 3:
            return
        start = len(node.prefix) + len(node.quote)
        inside = node.value[start : -len(node.quote)]
        self._replace("change_text", node, f"{node.value[:start]}XX{inside}{node.quote}")

    def _negate(self, test: cst.BaseExpression) -> None:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return
        swapped = (cst.Equal, cst.NotEqual, cst.In, cst.NotIn, cst.Is, cst.IsNot)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            operator = test.comparisons[0].operator
            if isinstance(operator, swapped):
                return
        self._replace("negate_condition", test, f"(not ({self._code(test)}))")

    def _operator(self, operator: cst.CSTNode) -> None:
        if type(operator) in _OPERATORS:
            kind, new = _OPERATORS[type(operator)]
            self._replace(kind, operator, new)

    def _talks(self, call: cst.BaseExpression) -> bool:
        return isinstance(call, cst.Call) and _last_name(call.func) in _TALK

    def _code(self, node: cst.CSTNode) -> str:
        """The node's text with its own parentheses."""
        start, end = self._offsets(self._whole(node))
        return self._text[start:end].strip()

    def _range(self, node: cst.CSTNode) -> CodeRange:
        return self.get_metadata(PositionProvider, node)

    def _whole(self, node: cst.CSTNode) -> CodeRange:
        return self.get_metadata(WhitespaceInclusivePositionProvider, node)

    def _offsets(self, place: CodeRange) -> tuple[int, int]:
        start, end = place.start, place.end
        return self._starts[start.line - 1] + start.column, self._starts[end.line - 1] + end.column

    def _replace(self, kind: str, node: cst.CSTNode, new: str, *, place: cst.CSTNode | None = None) -> None:
        """Put `new` for a node, whose own parentheses stay; `place`: the node whose line counts."""
        span = self._range(node)
        self._splice(kind, (span.start, span.end), new, self._range(place or node).start.line)

    def _splice(self, kind: str, span: tuple[CodePosition, CodePosition], new: str, line: int) -> None:
        start, end = self._offsets(CodeRange(*span))
        if line not in self._lines or self._text[start:end] == new:
            return
        text = self._text[:start] + new + self._text[end:]
        shown = _shown(self._text[start:end])
        after = _shown(new) if new else "nothing"
        source = _shown(lines_of(self._text)[line - 1])
        self.found.append(Mutation(kind, line, text, f"`{shown}` became `{after}` in `{source}`"))


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


@cache
def _swapped_names() -> dict[str, str]:
    text = files(__package__).joinpath("swapped_names.txt").read_text("utf-8")
    pairs = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {one: other for left, right in pairs for one, other in ((left, right), (right, left))}
