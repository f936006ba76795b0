"""What two candidates of the same change have in common: the patch, the changed symbols, and a sketch of its words.

The sketch is a MinHash signature (Broder 1997, "On the resemblance and containment of documents"): the share of equal
positions in two sketches estimates how much of their features is shared. The catalog compares them, in SQL.
"""

from __future__ import annotations

import ast
import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from envsynth.leaks import Change
from envsynth.models import Reference, digest_of
from envsynth.validators.leakage.passages import squeezed

__all__ = ["SKETCH", "Fingerprint", "fingerprint"]

SKETCH = 64
"""Positions of a sketch; the catalog's view cuts it into 16 bands of 4."""
_GRAM = 4
"""Words in a feature."""
_WORD = re.compile(r"\w+|[^\w\s]")
_PRIME = 2**61 - 1


class Fingerprint(NamedTuple):
    """What the catalog compares."""

    patch: str
    """sha256 of the added and removed lines by file name, without places, context and white space."""
    symbols: tuple[str, ...]
    """`module.py:Class.function` of everything whose code changed."""
    sketch: tuple[int, ...]
    """`SKETCH` numbers below 2**32."""


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
    return Fingerprint(digest_of(patch), tuple(sorted(set(symbols))), _sketch(features))


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


def _sketch(features: Iterable[str]) -> tuple[int, ...]:
    """The least value of each of `SKETCH` hash functions over all features; zeros where there is no feature."""
    hashes = [int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest())
              for feature in sorted(features)]  # fmt: skip
    if not hashes:
        return (0,) * SKETCH
    return tuple(min((a * value + b) % _PRIME for value in hashes) & 0xFFFFFFFF for a, b in _COEFFICIENTS)


def _coefficients() -> tuple[tuple[int, int], ...]:
    drawn = [hashlib.blake2b(f"envsynth sketch {number}".encode(), digest_size=16).digest() for number in range(SKETCH)]
    return tuple((int.from_bytes(d[:8]) % (_PRIME - 1) + 1, int.from_bytes(d[8:]) % _PRIME) for d in drawn)


_COEFFICIENTS = _coefficients()
