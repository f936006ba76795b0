"""What two candidates of the same change have in common: the patch, the changed symbols, and a sketch of its words."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from envsynth.leaks import Change
from envsynth.models import Reference, digest_of
from envsynth.sketches import Fingerprint, sketch
from envsynth.validators.leakage.passages import squeezed

__all__ = ["fingerprint"]

_GRAM = 4
"""Words in a feature."""
_WORD = re.compile(r"\w+|[^\w\s]")


def fingerprint(changes: Iterable[Change], reference: Reference, binary: Mapping[str, str]) -> Fingerprint:
    """The fingerprint of a reference; the same change on another branch has the same, or nearly.

    Args:
        changes: its files that are text.
        reference: what it removes.
        binary: digests of its other files, by path.
    """
    patch: list[list[object]] = [["removed", sorted(posixpath.basename(path) for path in reference.removed)]]
    digests = sorted(f"{posixpath.basename(path)} {digest}" for path, digest in binary.items())
    patch.append(["binary", digests])
    features = set(digests)
    symbols: list[str] = []
    for change in sorted(changes):
        name = posixpath.basename(change.path)
        added, removed = _difference(change.before, change.after), _difference(change.after, change.before)
        patch.append([name, added, removed])
        features |= {f"{name}{sign}{gram}" for sign, lines in (("+", added), ("-", removed)) for gram in _grams(lines)}
        symbols += [f"{name}:{symbol}" for symbol in _changed_symbols(change)]
    features |= {f"symbol {symbol}" for symbol in symbols}
    return Fingerprint(digest_of(patch), tuple(sorted(set(symbols))), sketch(features))


def _difference(before: str, after: str) -> list[str]:
    """Lines that `after` has more often than `before`, in order."""
    spare = Counter(squeezed(before))
    more = []
    for line in squeezed(after):
        if spare[line] > 0:
            spare[line] -= 1
        else:
            more.append(line)
    return more


def _grams(lines: Iterable[str]) -> Iterable[str]:
    words = [word for line in lines for word in _WORD.findall(line)]
    return (" ".join(words[start : start + _GRAM]) for start in range(max(1, len(words) - _GRAM + 1))) if words else ()


def _changed_symbols(change: Change) -> list[str]:
    if not change.path.endswith((".py", ".pyi")):
        return []
    before, after = _symbols(change.before), _symbols(change.after)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    # A class changes with its methods; only the innermost names say what was changed.
    return sorted(name for name in changed if not any(other.startswith(f"{name}.") for other in changed))


def _symbols(text: str) -> dict[str, str]:
    """The code of every function and class, by dotted name."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, str] = {}
    waiting: list[tuple[str, ast.AST]] = [("", module)]
    while waiting:
        prefix, parent = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{node.name}"
                found[name] = ast.dump(node)
                waiting.append((f"{name}.", node))
            elif not isinstance(node, ast.expr):
                waiting.append((prefix, node))
    return found
