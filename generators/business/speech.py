"""How values are said to a person: days, and words that are no names."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from pydantic import JsonValue

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2})?)?")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKS_BEGIN = (0, 6, 5)
"""Monday, Sunday and Saturday: where in the world a week begins."""
_NEAR = {0: "today", -1: "yesterday", 1: "tomorrow"}


class Period(NamedTuple):
    """Some days, as a person calls them."""

    said: str
    first: str
    last: str
    """ISO dates, inclusive."""


def day(text: str) -> str:
    """An ISO date, perhaps with a time, as people write it, with the weekday."""
    found = _DAY.fullmatch(text)
    assert found is not None
    when = date.fromisoformat(found[1])
    said = f"{_WEEKDAYS[when.weekday()]} {when.day} {_MONTHS[when.month - 1]} {when.year}"
    return f"{said} at {found[2]}" if found[2] else said


def is_day(value: JsonValue) -> bool:
    """Whether a value is an ISO date, perhaps with a time."""
    return isinstance(value, str) and _DAY.fullmatch(value) is not None


def words(value: JsonValue) -> str:
    """A value that is neither amount nor date; words of a status are parted."""
    text = str(value)
    return text.replace("_", " ") if re.fullmatch(r"[a-z]+(_[a-z]+)+", text) else text


def periods(text: str, today: str) -> list[Period]:
    """Names of times that hold a day, the vaguest first; the last is the day itself."""
    when, now = date.fromisoformat(text[:10]), date.fromisoformat(today)
    distance = (when - now).days
    if distance in _NEAR:
        return [Period(_NEAR[distance], text[:10], text[:10])]
    found = [*_months(when, now), *_weeks(when, now)]
    year = "" if when.year == now.year else f" {when.year}"
    exact = f"on {when.day} {_MONTHS[when.month - 1]}{year}"
    return [*found, Period(exact, text[:10], text[:10])]


def _weeks(when: date, now: date) -> list[Period]:
    """The week, where it is the same one whichever day weeks begin on; the days are those of all readings."""
    first_days = [_week(when, begin) for begin in _WEEKS_BEGIN]
    apart = {(day - _week(now, begin)).days // 7 for day, begin in zip(first_days, _WEEKS_BEGIN, strict=True)}
    name = {-1: "last week", 0: "this week", 1: "next week"}.get(apart.pop()) if len(apart) == 1 else None
    if name is None:
        return []
    return [Period(name, min(first_days).isoformat(), (max(first_days) + timedelta(days=6)).isoformat())]


def _week(when: date, begin: int) -> date:
    """First day of a day's week, where weeks begin on a weekday; Monday is 0."""
    return when - timedelta(days=(when.weekday() - begin) % 7)


def _months(when: date, now: date) -> list[Period]:
    apart = (when.year - now.year) * 12 + when.month - now.month
    name = {-1: "last month", 1: "next month"}.get(apart)
    if name is None and (when.year != now.year or apart == 0):
        return []
    first = when.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return [Period(name or f"in {_MONTHS[when.month - 1]}", first.isoformat(), last.isoformat())]
