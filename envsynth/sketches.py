"""Fingerprints of what tasks do, by which the catalog finds those that nearly repeat another.

A sketch is a MinHash signature (Broder 1997, "On the resemblance and containment of documents"): the share of equal
positions in two sketches estimates how much of their features is shared. The catalog compares them, in SQL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import JsonValue

SKETCH = 64
"""Positions of a sketch; the catalog's view cuts it into 16 bands of 4."""
_PRIME = 2**61 - 1


class Fingerprint(NamedTuple):
    """What the catalog compares, of tasks of either kind."""

    patch: str
    """sha256 of everything that the reference changes: lines of code by file name, or rows of a world by its tools."""
    symbols: tuple[str, ...]
    """Of code: `module.py:Class.function` of everything that changed. Of a world: a digest of its tools."""
    sketch: tuple[int, ...]
    """`SKETCH` numbers below 2**32."""

    def document(self) -> dict[str, JsonValue]:
        """As evidence of a verdict."""
        return {"patch": self.patch, "symbols": list(self.symbols), "sketch": list(self.sketch)}


def sketch(features: Iterable[str]) -> tuple[int, ...]:
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
