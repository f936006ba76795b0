"""Another literal of the same kind, such that nothing equals both."""

from __future__ import annotations

import ast
import math
import random
import re
import warnings
from collections.abc import Sequence

Constant = int | float | complex | str | bytes | bool | None

_WORD = re.compile(r"[A-Za-z]{2,}|\d+")


def is_literal(node: ast.AST) -> bool:
    """Whether an expression is made of constants and displays of them alone."""
    match node:
        case ast.Constant():
            return node.value is not Ellipsis
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int | float)
        case ast.List() | ast.Tuple() | ast.Set():
            return all(is_literal(element) for element in node.elts)
        case ast.Dict():
            return all(key is not None and is_literal(key) for key in node.keys) and all(map(is_literal, node.values))
    return False


def changeable(node: ast.AST) -> list[ast.Constant]:
    """The constants of a literal that can be replaced by another of their kind, in order."""
    found = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and part.value is not None]
    return sorted(found, key=lambda part: (part.lineno, part.col_offset))


def another(value: Constant, written: str, draw: random.Random, around: Sequence[str] = ()) -> str:
    """Source text of a constant of the same kind with another value; empty for a kind that has none.

    It looks like what it replaces: a number stays of its size, a text is another one of the same place, or keeps its
    quotes and its words.

    Args:
        value: the constant.
        written: its source text.
        draw: what is random.
        around: source texts of constants that stand near.
    """
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + (draw.choice((-2, -1, 1, 2, 3)) if value > 3 else draw.choice((1, 2, 3))))
    if isinstance(value, float) and math.isfinite(value):
        return _other_number(value, written, draw)
    if isinstance(value, str | bytes):
        near = [text for text in around if type(_value(text)) is type(value) and _value(text) not in (value, "", b"")]
        return draw.choice(near) if near and value else _other_text(value, written, draw)
    return ""


def _other_number(value: float, written: str, draw: random.Random) -> str:
    """The number with another leading digit, so that no tolerance takes it for the old one."""
    leading = re.match(r"0*\.?0*([1-9])", written)
    if leading is None or "e" in written.lower():
        return repr(value + draw.choice((1.0, 1.5, 2.0)) * max(1.0, abs(value)))
    place = leading.start(1)
    return written[:place] + draw.choice([char for char in "123456789" if char != leading[1]]) + written[place + 1 :]


def _other_text(value: str | bytes, written: str, draw: random.Random) -> str:
    """The text with two words exchanged, a digit or the case of a letter changed, whatever the source allows first."""
    for change in (_words_exchanged, _digit_changed, _case_changed):
        found = change(written, draw)
        if found and _value(found) not in (None, value):
            return found
    quote = written[-1:]
    grown = f"{written[:-1]}{draw.choice('aest')}{quote}"
    if not value and len(written.lstrip("rRbBuU")) == 2 and _value(grown) not in (None, value):
        return grown
    return repr(value + ("x" if isinstance(value, str) else b"x"))  # type: ignore[operator]


def _words_exchanged(written: str, draw: random.Random) -> str:
    words = [match for match in _WORD.finditer(written) if match.start() > 1]
    if len(words) < 2:
        return ""
    first, second = sorted(draw.sample(words, 2), key=lambda match: match.start())
    between = written[first.end() : second.start()]
    return f"{written[: first.start()]}{second[0]}{between}{first[0]}{written[second.end() :]}"


def _digit_changed(written: str, draw: random.Random) -> str:
    digits = [match.start() for match in re.finditer(r"\d", written)]
    if not digits:
        return ""
    place = draw.choice(digits)
    return (
        written[:place] + draw.choice([char for char in "123456789" if char != written[place]]) + written[place + 1 :]
    )


def _case_changed(written: str, draw: random.Random) -> str:
    letters = [match.start() for match in re.finditer(r"[A-Za-z]", written) if match.start() > 0]
    if not letters:
        return ""
    place = draw.choice(letters)
    return written[:place] + written[place].swapcase() + written[place + 1 :]


def _value(written: str) -> str | bytes | None:
    """What a source text says; None where it is no plain text, such as after a change inside an escape."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            value = ast.literal_eval(written)
        except (ValueError, SyntaxError, TypeError):
            return None
    return value if isinstance(value, str | bytes) else None
