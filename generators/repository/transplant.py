"""One function of a module gets another body; everything else of the file stays as it is, byte for byte."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from typing import NamedTuple

from envsynth.generators.repository.breakable import Function, functions_in, functions_of, parsed
from envsynth.generators.repository.testcode import FunctionNode, body_without_docstring

__all__ = ["Place", "Unfit", "place_of", "rebodied", "written_function"]


class Unfit(Exception):
    """What was written cannot take the function's place; `rule` is a finding's."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


class Place(NamedTuple):
    """Where a function's body stands in its file."""

    path: str
    name: str
    text: str
    """The whole file."""
    node: FunctionNode
    first: int
    """1-based first line of the function, decorators included."""
    body: int
    """First line of the body, after the docstring and before the comments that lead to it."""
    last: int
    indent: str
    """White space before the body's statements."""

    @property
    def lines(self) -> list[str]:
        """The file's lines with their ends."""
        return self.text.splitlines(keepends=True)

    @property
    def function(self) -> str:
        """The function as it stands in the file."""
        return "".join(self.lines[self.first - 1 : self.last])

    @property
    def head(self) -> str:
        """Decorators, signature and docstring."""
        return "".join(self.lines[self.first - 1 : self.body - 1])

    @property
    def newline(self) -> str:
        """How the file's lines end."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def without_body(self) -> str:
        """The file with nothing but the head of the function."""
        lines = self.lines
        return "".join([*lines[: self.body - 1], f"{self.indent}...{self.newline}", *lines[self.last :]])


def place_of(path: str, text: str, name: str) -> Place | None:
    """The place of a function, or None where its body has no lines of its own."""
    function: Function | None = functions_of(text).get(name)
    if function is None:
        return None
    lines = text.splitlines(keepends=True)
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return None  # other signs that end lines
    statements = body_without_docstring(function.node)
    if not statements:
        return None
    start = _first_line(statements[0])
    indent = lines[start - 1][: len(lines[start - 1]) - len(lines[start - 1].lstrip())]
    end_column = function.node.end_col_offset or 0
    if len(indent.encode()) != statements[0].col_offset or lines[function.last - 1].encode()[end_column:].strip():
        return None
    head_ends = function.node.body[0].end_lineno if function.node.body[0] is not statements[0] else 0
    body = start
    while body - 1 > max(head_ends or 0, function.node.lineno) and _says_nothing(lines[body - 2]):
        body -= 1
    return Place(path, name, text, function.node, function.first, body, function.last, indent)


def written_function(source: str, place: Place) -> tuple[str, FunctionNode]:
    """The one function in a text, and the text that its line numbers are of.

    Raises:
        Unfit: it does not parse, is something else, or has another signature.
    """
    text = _unfenced(source).replace("\r\n", "\n").strip("\n") + "\n"
    # A method may be written as deep as it stands; taking that away would change strings of several lines.
    deep = text[:1] in (" ", "\t")
    text = f"if True:\n{text}" if deep else text
    module = parsed(text)
    if module is None:
        raise Unfit("does_not_parse", "what was written is no Python that can be read")
    body = module.body[0].body if deep and isinstance(module.body[0], ast.If) else module.body
    if len(module.body) > 1 or len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        raise Unfit("not_one_function", "there must be the one function and nothing beside it")
    node = body[0]
    if _signature(node) != _signature(place.node):
        raise Unfit("signature_changed", "name, parameters, defaults, annotations and decorators must stay as they are")
    if not body_without_docstring(node):
        raise Unfit("function_emptied", "the function has no body")
    return text, node


def rebodied(place: Place, source: str, node: FunctionNode) -> str:
    """The file with the body of a written function in place of its own; the head stays as it was.

    Comments that the function did not have before are left out.

    Args:
        place: what is replaced.
        source: what the written function's line numbers are of.
        node: the written function.

    Raises:
        Unfit: the file would mean something else outside the function.
    """
    body = _body(place, source, node)
    known = place.lines
    ends = "" if place.last == len(known) and not known[-1].endswith("\n") else "\n"
    text = "".join(known[: place.body - 1]) + (body.rstrip("\n") + ends).replace("\n", place.newline)
    text += "".join(known[place.last :])
    after = functions_of(text).get(place.name)
    documented = ast.get_docstring(place.node, clean=False)
    if after is None or ast.get_docstring(after.node, clean=False) != documented:
        raise Unfit("changes_other_code", "the function would be another one")
    if _hollow(place.text, place.name) != _hollow(text, place.name):
        raise Unfit("changes_other_code", "something outside the function would change")
    return text


def _body(place: Place, source: str, node: FunctionNode) -> str:
    """The statements of a written function, as deep as those they replace, without new comments."""
    lines = source.splitlines(keepends=True)
    statements = body_without_docstring(node)
    start = _first_line(statements[0])
    shift = len(lines[start - 1]) - len(lines[start - 1].lstrip())
    if _first_column(statements[0]) != shift:
        raise Unfit("does_not_parse", "the body must begin on a line of its own")
    first = start
    documented = node.body[0].end_lineno if node.body[0] is not statements[0] else None
    while documented and start - 1 > documented and _says_nothing(lines[start - 2]):
        start -= 1
    inside, dropped = _strings_and_comments(source, place)
    made = []
    for number in range(start, (node.end_lineno or len(lines)) + 1):
        line, cut = lines[number - 1], dropped.get(number)
        if cut is not None:
            line = line[:cut].rstrip() + "\n" if line[:cut].strip() else ""
        if number not in inside and line.strip():
            line = place.indent + (line[shift:] if line.startswith(lines[first - 1][:shift]) else line.lstrip())
        made.append(line)
    return "".join(made).rstrip("\n") + "\n"


def _hollow(text: str, name: str) -> str:
    """A module's code with the body of one function taken out."""
    module = parsed(text)
    if module is None:
        return ""
    functions_in(module)[name].node.body = [ast.Pass()]
    return ast.dump(module)


def _signature(node: FunctionNode) -> str:
    """Everything of a function but its body."""
    marks = [ast.dump(mark) for mark in node.decorator_list]
    returns = ast.dump(node.returns) if node.returns is not None else ""
    return f"{type(node).__name__} {node.name} {ast.dump(node.args)} {returns} {marks}"


def _strings_and_comments(source: str, place: Place) -> tuple[set[int], dict[int, int]]:
    """Lines that begin inside a string, and the column of each comment that the function did not have before."""
    inside: set[int] = set()
    dropped: dict[int, int] = {}
    kept = {
        token.string.strip() for token in _tokens(textwrap.dedent(place.function)) if token.type == tokenize.COMMENT
    }
    opened = 0
    for token in _tokens(source):
        kind = tokenize.tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):
            opened = opened or token.start[0]
        elif kind in ("FSTRING_END", "TSTRING_END"):
            inside.update(range(opened + 1, token.end[0] + 1))
            opened = 0
        elif token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == tokenize.COMMENT and token.string.strip() not in kept:
            dropped[token.start[0]] = token.start[1]
    return inside, dropped


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []


def _unfenced(source: str) -> str:
    """A text without the fence that models put around code."""
    lines = source.strip("\n").splitlines()
    if len(lines) > 1 and lines[0].strip().startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return source


def _first_line(statement: ast.stmt) -> int:
    marks = getattr(statement, "decorator_list", [])
    return int(min([statement.lineno, *(mark.lineno for mark in marks)]))


def _first_column(statement: ast.stmt) -> int:
    """Column at which a statement begins; a decorator's sign stands before what is decorated."""
    marks = getattr(statement, "decorator_list", [])
    return int(min([statement.col_offset, *(mark.col_offset - 1 for mark in marks)]))


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
