"""Another literal of the same kind, such that nothing equals both."""

from __future__ import annotations

import ast
import math
import random
import string

Constant = int | float | complex | str | bytes | bool | None


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


def another(value: Constant, draw: random.Random) -> str:
    """Source text of a constant of the same kind with another value; empty for a kind that has none.

    It looks like what it replaces: a number stays of its size, a text of its length.
    """
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(abs(value + draw.choice((-2, -1, 1, 2, 3))) if value > 3 else value + draw.choice((1, 2, 3)))
    if isinstance(value, float) and math.isfinite(value):
        return repr(value + draw.choice((1.0, 1.5, 2.0)) * max(1.0, abs(value)))
    if isinstance(value, str):
        return repr(_other_text(value, draw))
    if isinstance(value, bytes):
        return repr(_other_text(value.decode("latin-1"), draw).encode("latin-1"))
    return ""


def _other_text(text: str, draw: random.Random) -> str:
    places = [place for place, char in enumerate(text) if char.isascii() and char.isalnum()]
    if not places:
        return text + draw.choice(string.ascii_lowercase)
    place = draw.choice(places)
    old = text[place]
    kind = string.digits if old.isdigit() else string.ascii_lowercase if old.islower() else string.ascii_uppercase
    new = draw.choice([char for char in kind if char != old])
    return text[:place] + new + text[place + 1 :]
