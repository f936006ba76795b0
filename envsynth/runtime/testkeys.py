"""Normalised test ids: equal between runs although the verbatim id holds addresses, times or random values.

Tests that fall together under one key are graded as their worst, so a rule that is too wide costs detail, never trust.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_REPLACED = re.compile(r"<(address|uuid|tmp|hex|float|duration|time)>")

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), word)
    for pattern, word in (
        (r"\b0x[0-9a-f]{6,16}\b", "<address>"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
        (r"/tmp/(?:pytest-of-[^/\s]+/pytest-\d+|tmp[a-z0-9_]{8})", "<tmp>"),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{32,}\b", "<hex>"),
        (r"(?<![\d.])\d+\.\d{14,}(?:e[+-]?\d+)?", "<float>"),
        (r"\b\d+\.\d{2,}\s?(?:ns|us|µs|ms|s|sec|secs|seconds)\b", "<duration>"),
    )
)
_DATE = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[T _]\d\d[:_-]?\d\d(?:[:_-]?\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_EPOCH = re.compile(r"(?<![\w.])(?P<seconds>\d{10})(?:\.\d+|\d{3}|\d{6}|\d{9})?(?![\w.])", re.ASCII)
_NEAR = timedelta(days=2)


def normalised_key(name: str, now: datetime | None = None) -> str:
    """The normalised key of a test's id.

    Args:
        name: the id, verbatim.
        now: moment of the run; dates and epoch seconds are replaced only within two days of it, since others
            are constants that tell tests apart.
    """
    for pattern, word in _RULES:
        name = pattern.sub(word, name)
    moment = now or datetime.now(UTC)

    def date(match: re.Match[str]) -> str:
        try:
            then = datetime.fromisoformat(match["date"]).replace(tzinfo=UTC)
        except ValueError:
            return match[0]
        return "<time>" if abs(moment - then) <= _NEAR else match[0]

    def epoch(match: re.Match[str]) -> str:
        return "<time>" if abs(moment.timestamp() - int(match["seconds"])) <= _NEAR.total_seconds() else match[0]

    return _EPOCH.sub(epoch, _DATE.sub(date, name))


def function_of(key: str) -> str:
    """A test's id without its parameters: what `pytest` calls its function, and `unittest` the test itself."""
    path, colons, rest = key.partition("::")
    return path + colons + rest.partition("[")[0]


def module_of(function: str) -> str:
    """The file, or for unittest the module, of a test's function."""
    return function.partition("::")[0] if "::" in function else ".".join(function.split(".")[:-2])


class Place(NamedTuple):
    """Where a test is defined."""

    path: str
    names: tuple[str, ...]
    """Those of its classes, then its own."""
    case: str
    """Id of its parameters, without brackets; empty where it has none."""


def locate(key: str, paths: Container[str]) -> Place | None:
    """The place of a test, as pytest or unittest spells its id or key; None where it stands in none of the files.

    Args:
        key: id or normalised key.
        paths: test files, relative.
    """
    path, mark, rest = key.partition("::")
    if mark and path in paths:
        base, _, case = rest.partition("[")
        return Place(path, tuple(base.split("::")), case.removesuffix("]"))
    base, _, case = key.partition("[")
    parts = base.split(" ")[0].split(".")
    for end in range(len(parts) - 1, 0, -1):
        for prefix in ("", "tests/", "test/"):
            module = prefix + "/".join(parts[:end]) + ".py"
            if module in paths:
                return Place(module, tuple(parts[end:]), case.removesuffix("]"))
    return None


def functions_of(keys: Iterable[str]) -> tuple[str, ...]:
    """What to run so that all of these tests run, sorted; empty, which means everything, where that cannot be told.

    Args:
        keys: normalised keys.
    """
    functions = sorted({function_of(key) for key in keys})
    return () if any(_REPLACED.search(name) for name in functions) else tuple(functions)
