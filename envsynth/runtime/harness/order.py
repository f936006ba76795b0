"""Statuses from best to worst."""

from __future__ import annotations

ORDER = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")


def worst(first: str, second: str) -> str:
    """The worse of two statuses: a test is as good as its worst part."""
    return max(first, second, key=ORDER.index)
