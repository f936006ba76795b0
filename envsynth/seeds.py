"""Randomness that depends on names alone."""

from __future__ import annotations

import hashlib
from random import Random


def stream(seed: str, purpose: str) -> Random:
    """A source of randomness of its own: no two seeds or purposes share anything."""
    return Random(int.from_bytes(hashlib.sha256(f"{purpose}/{seed}".encode()).digest(), "big"))
