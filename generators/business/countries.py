"""Countries: whose names people bear, what money looks like there, and on which days nobody works."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache, cached_property
from math import floor, log10
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from envsynth.errors import ConfigError
from envsynth.models import Model

_FILE = Path(__file__).with_name("countries.yaml")
POOL = 500
"""Different values of each Faker provider that one process draws for a locale; worlds choose among them."""
_TRIES = 3


class Country(Model):
    """One country. Money is an integer number of minor units."""

    code: str = Field(pattern=r"^[a-z]{2}$")
    """ISO 3166-1 alpha-2, lower case."""
    name: str
    locale: str
    """Of Faker."""
    person: str = "{first} {last}"
    """How first and last name stand together."""
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    """ISO 4217."""
    minor: str = Field(pattern=r"^[a-z]+$")
    """Word for several of its smallest units, as in names of columns: `cents`, `pence`, `yen`."""
    digits: int = Field(default=2, ge=0, le=3)
    """Minor digits: how many minor units make a major one, as a power of ten."""
    scale: float = Field(gt=0)
    """Minor units that one US cent is about worth, in prices."""
    sign: str
    """An amount of money with `{}` for the number: `€{}`."""
    tax: float = Field(ge=0, lt=50)
    """Usual rate of the tax on sales, per cent."""
    weekend: tuple[int, ...] = (5, 6)
    """Days off in every week; Monday is 0."""
    cities: tuple[str, ...] = Field(min_length=6)

    @property
    def tax_permille(self) -> int:
        """The rate of tax in thousandths."""
        return round(self.tax * 10)

    def amount(self, us_cents: float) -> int:
        """An amount in units of about one US cent, in minor units: three digits at most, as on a price tag."""
        exact = abs(us_cents) * self.scale
        if exact < 1:
            return round(us_cents * self.scale)
        step = int(10 ** max(0, floor(log10(exact)) - 2))
        return round(exact / step) * step * (1 if us_cents > 0 else -1)

    def money(self, minor: int) -> str:
        """An amount as people write it."""
        number = f"{abs(minor) / 10**self.digits:,.{self.digits}f}"
        return ("-" if minor < 0 else "") + self.sign.format(number)

    def is_working(self, day: date) -> bool:
        """Whether people work on a day: neither a weekly day off nor a public holiday."""
        return day.weekday() not in self.weekend and day not in self.holidays(day.year)

    def holidays(self, year: int) -> Mapping[date, str]:
        """Public holidays of a year, by date."""
        return _holidays(self.code, year)

    def holidays_near(self, day: date, reach: int = 180) -> Iterator[tuple[str, str]]:
        """ISO date and name of the holidays within `reach` days, in order."""
        first, last = day - timedelta(reach), day + timedelta(reach)
        for year in range(first.year, last.year + 1):
            for found, name in sorted(self.holidays(year).items()):
                if first <= found <= last:
                    yield found.isoformat(), name

    def pool(self, provider: str) -> tuple[str, ...]:
        """Different values of a provider of Faker, the same in every process; `name` and `city` are the country's own.

        Raises:
            ConfigError: Faker has no such provider.
        """
        return self.cities if provider == "city" else _pool(self, provider)

    @cached_property
    def weekend_days(self) -> str:
        """The weekly days off as SQL has them (`strftime('%w')`: Sunday is 0), for an IN list."""
        return ", ".join(str((day + 1) % 7) for day in self.weekend)


def country(code: str, *, where: str = "") -> Country:
    """A country by its code.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    known = countries()
    found = known.get(code.lower())
    if found is not None:
        return found
    by_name = {each.name.lower(): each.code for each in known.values()}
    close = difflib.get_close_matches(code.lower(), by_name, n=3, cutoff=0.5)
    right = " or ".join(by_name[name] for name in close) or ", ".join(known)
    raise ConfigError(f"there is no country {code!r}", where=where, next_step=f"use {right}")


@cache
def countries() -> Mapping[str, Country]:
    """All countries, by code."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = yaml.load(_FILE.read_text("utf-8"), Loader=loader)
    return {code: Country.model_validate({"code": code, **fields}) for code, fields in documents.items()}


@cache
def _holidays(code: str, year: int) -> Mapping[date, str]:
    import holidays

    return dict(holidays.country_holidays(code.upper(), years=year).items())


@cache
def _faker(locale: str) -> Any:
    from faker import Faker

    return Faker(locale, use_weighting=False)


def _pool(home: Country, provider: str) -> tuple[str, ...]:
    return _drawn(home.locale, home.person if provider == "name" else "", provider)


@cache
def _drawn(locale: str, person: str, provider: str) -> tuple[str, ...]:
    # Some locales lack providers; those have the English ones.
    able = [each for each in (locale, "en_US") if callable(getattr(_faker(each), provider, None))]
    if not able:
        raise ConfigError(f"Faker has no provider {provider!r}", next_step="name one of its providers")
    faker = _faker(able[0])
    faker.seed_instance(f"{locale}/{provider}")
    found: dict[str, None] = {}
    for number in range(_TRIES * POOL):
        found[_person(faker, person, number) if person else str(getattr(faker, provider)()).replace("\n", ", ")] = None
        if len(found) == POOL:
            break
    return tuple(found)


def _person(faker: Any, pattern: str, number: int) -> str:
    """A name without title; first and last name of one gender, as some languages want it."""
    kind = ("female", "male")[number % 2]
    first, last = getattr(faker, f"first_name_{kind}")(), getattr(faker, f"last_name_{kind}")()
    return pattern.format(first=first, last=last)
