"""Countries: enough of them, each with people, money, and days on which nobody works."""

from __future__ import annotations

from datetime import date

import pytest

from envsynth.errors import ConfigError
from envsynth.generators.business.countries import POOL, countries, country


def test_there_are_enough_countries() -> None:
    known = countries()
    assert len(known) >= 50
    assert len({one.name for one in known.values()}) == len(known)
    assert len({one.currency for one in known.values()}) >= 35


@pytest.mark.parametrize("code", ["gb", "jp", "ph", "ae", "hu", "np"])
def test_people(code: str) -> None:
    names = country(code).pool("name")
    assert len(set(names)) == len(names) == POOL
    assert country(code).pool("name") is names
    assert all("@example." in address for address in country(code).pool("ascii_safe_email"))


def test_names_stand_as_they_do_there() -> None:
    family = set(country("hu").pool("last_name"))
    assert sum(name.split()[0] in family for name in country("hu").pool("name")) > 400
    assert not any(name[0].isascii() for name in country("kr").pool("name"))


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(countries()))
def test_every_country_works(code: str) -> None:
    home = country(code)
    for provider in ("name", "ascii_safe_email", "phone_number", "street_address", "company", "last_name"):
        assert len(home.pool(provider)) >= 5, provider
    assert len(home.pool("name")) >= 300
    # The package follows the law, and under martial law Ukraine has no days off.
    assert len(home.holidays(2025)) >= 4 or code == "ua"
    assert home.amount(1000) > 0


def test_amounts_look_like_prices() -> None:
    assert country("us").amount(4873) == 4870
    assert country("jp").amount(4873) == 6330
    assert country("vn").amount(4873) == 877_000
    assert country("gb").amount(0) == 0
    assert country("us").amount(-4873) == -4870
    assert country("us").amount(7) == 7


def test_amounts_are_written_as_there() -> None:
    assert country("gb").money(104_655) == "£1,046.55"
    assert country("jp").money(6330) == "¥6,330"
    assert country("jo").money(29_200) == "JD 29.200"
    assert country("se").money(-4870) == "-48.70 kr"


def test_days_off() -> None:
    assert not country("sa").is_working(date(2026, 3, 6)), "a Friday"
    assert country("sa").is_working(date(2026, 3, 8)), "a Sunday"
    assert not country("gb").is_working(date(2026, 12, 25)), "a Friday, and Christmas"
    assert country("gb").is_working(date(2026, 12, 24))
    assert country("sa").weekend_days == "5, 6"
    assert country("gb").weekend_days == "6, 0"
    near = dict(country("de").holidays_near(date(2026, 1, 2), 20))
    assert list(near) == ["2025-12-25", "2025-12-26", "2026-01-01"]


def test_an_unknown_country_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"l:2: there is no country 'germani'. Next: use de"):
        country("germani", where="l:2")
    with pytest.raises(ConfigError, match="no provider 'moonlight'"):
        country("gb").pool("moonlight")
