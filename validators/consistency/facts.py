"""What a text or a tool's answer tells: texts, numbers and days, in whatever way they are written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path

from envsynth.runtime.contract import JSON

__all__ = ["Told", "as_day", "later", "read", "seen", "words"]

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,'’\u00a0\u202f ]\d+)*(?![\w])")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY_FIRST = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([A-Za-z]{3,9})\.?,? (\d{4})\b")
_MONTH_FIRST = re.compile(r"\b([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b")
_SLASHED = re.compile(r"\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b")
_RATE = re.compile(r"(\d+(?:[.,]\d+)?) ?(?:%|per ?cent\b)")
_RANGE = re.compile(
    r"(?<![\w.,/-])(\d{1,6}) ?(?:to|through|until|up to|-|–|—|(?<=between \d )and|(?<=between \d\d )and) ?"
    r"(\d{1,6})(?![\w/-])"
)
"""Things that are numbered from one to another."""
_MOST_RANGED = 1000
_TERM = re.compile(r"\w+")
_WORD = re.compile(r"[a-z]+")
MOST_COUNTED = 400
"""Largest number of days, or of things, that counts as one."""
_WIDEST = 12
"""Numbers of one row that are combined with each other."""


@dataclass(frozen=True)
class Told:
    """What one text or answer tells."""

    text: str
    """All of its texts, in lower case, spaces evened out."""
    numbers: frozenset[float]
    days: frozenset[date]
    rates: frozenset[float]
    """Percentages."""
    weekdays: frozenset[int]
    """Named days of a week, Monday 0."""
    relative: frozenset[int]
    """Days from today, such as of `tomorrow`."""
    rows: tuple[tuple[float, ...], ...] = ()
    """Numbers that stand in one row together."""
    columns: tuple[tuple[float, ...], ...] = ()
    """Numbers that stand under each other in a list of rows."""
    counts: frozenset[int] = frozenset()
    """Lengths of lists."""

    @cached_property
    def combined(self) -> frozenset[float]:
        """Sums, differences and products of two numbers of one row; sums and spans of a column; counts."""
        found = {float(count) for count in self.counts}
        for row in set(self.rows):
            for one, two in combinations(row, 2):
                found.update((one + two, one - two, two - one, one * two))
        for column in self.columns:
            found.update((float(sum(column)), max(column) - min(column)))
        return frozenset(found)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its texts."""
        return frozenset(_TERM.findall(self.text))

    def tells(self, value: str | float) -> bool:
        """Whether a value stands in it: a number in any writing; a text as a whole, or all of its words."""
        if isinstance(value, int | float):
            return float(value) in self.numbers
        text = " ".join(value.split()).casefold()
        if text in self.text and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self.text):
            return True
        terms = _TERM.findall(text)
        return bool(terms) and self.words.issuperset(terms)

    @cached_property
    def ordered(self) -> tuple[float, ...]:
        """Numbers and combined ones, from small to large."""
        return tuple(sorted(self.numbers | self.combined))

    @cached_property
    def whole(self) -> frozenset[int]:
        """Whole numbers that could count something, or days."""
        return frozenset(int(number) for number in self.numbers if number.is_integer() and 0 < number <= MOST_COUNTED)


@cache
def words() -> Mapping[str, Mapping[str, float]]:
    """The word table, by kind."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def read(text: str) -> Told:
    """What a text in words tells."""
    plain = " ".join(text.split())
    lower = plain.casefold()
    spoken = set(_WORD.findall(lower))
    table = words()
    numbers = {float(value) for word, value in table["numbers"].items() if word in spoken}
    numbers.update(_numbers(plain))
    return Told(
        text=lower, numbers=frozenset(numbers), days=frozenset(_days(plain)),
        rates=frozenset(float(rate.replace(",", ".")) for rate in _RATE.findall(lower)),
        weekdays=frozenset(int(place) for word, place in table["weekdays"].items() if word in spoken),
        relative=frozenset(int(days) for word, days in table["relative"].items() if word in spoken),
    )  # fmt: skip


def seen(result: JSON) -> Told:
    """What a tool's answer tells."""
    texts: list[str] = []
    numbers: set[float] = set()
    rows: list[tuple[float, ...]] = []
    columns: list[tuple[float, ...]] = []
    counts: set[int] = set()
    for value in _walk(result):
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            rows.append(tuple(_plain_numbers(value)))
        elif isinstance(value, list):
            counts.add(len(value))
            columns += _columns(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.add(float(value))
    told = read("\n".join(texts))
    kept = tuple(row[:_WIDEST] for row in rows if row)
    counted = frozenset(counts)
    return replace(told, numbers=told.numbers | numbers, rows=kept, columns=tuple(columns), counts=counted)


def as_day(text: str) -> date | None:
    """The day that a text names, where it is an ISO date, with or without a time."""
    found = _ISO.match(text)
    return _day(int(found[1]), int(found[2]), int(found[3])) if found else None


def _walk(value: JSON) -> Iterator[JSON]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _plain_numbers(row: Mapping[str, JSON]) -> Iterator[float]:
    for value in row.values():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield float(value)


def _columns(rows: list[JSON]) -> Iterator[tuple[float, ...]]:
    """The numeric columns of a list of rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if isinstance(row, dict):
            for name, value in row.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found.setdefault(name, []).append(float(value))
    yield from (tuple(values) for values in found.values() if len(values) > 1)


def _numbers(text: str) -> Iterator[float]:
    """Every number that a text may mean: `1,378.40` is 1378.4 and, in cents, 137840."""
    for match in _RANGE.finditer(text):
        first, last = int(match[1]), int(match[2])
        if 0 <= last - first <= _MOST_RANGED:
            yield from map(float, range(first, last + 1))
    for match in _NUMBER.finditer(text):
        token = match[0]
        parts = re.split(r"[.,'’\u00a0\u202f ]", token)
        whole = float("".join(parts))
        yield from (whole, whole * 100)
        if len(parts) > 1:
            value = float("".join(parts[:-1]) + "." + parts[-1])
            yield from (value, round(value * 100, 6), *(float(part) for part in parts))


def _days(text: str) -> Iterator[date]:
    months = words()["months"]
    named = {name: int(number) for name, number in months.items()}
    named |= {name[:3]: number for name, number in named.items()}
    found: list[date | None] = [_day(int(m[1]), int(m[2]), int(m[3])) for m in _ISO.finditer(text)]
    for match in _DAY_FIRST.finditer(text):
        found.append(_day(int(match[3]), named.get(match[2].lower(), 0), int(match[1])))
    for match in _MONTH_FIRST.finditer(text):
        found.append(_day(int(match[3]), named.get(match[1].lower(), 0), int(match[2])))
    for match in _SLASHED.finditer(text):
        found += [_day(int(match[3]), int(match[2]), int(match[1])), _day(int(match[3]), int(match[1]), int(match[2]))]
    return (day for day in found if day is not None)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def later(day: date, count: int, unit: str) -> date | None:
    """A day so many days, weeks, months or years later; of a shorter month, its last day."""
    days = words()["spans"].get(unit)
    try:
        if days is not None:
            return day + timedelta(days=int(days) * count)
        months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        for last in (day.day, 30, 29, 28):
            found = _day(year, month + 1, last) if last <= day.day else None
            if found is not None:
                return found
    except OverflowError:
        return None
    return None
