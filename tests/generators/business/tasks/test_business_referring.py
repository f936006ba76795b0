from __future__ import annotations

import pytest

from envsynth.generators.business.referring import refer
from envsynth.generators.business.scene import Scene
from envsynth.generators.business.speech import day, periods
from envsynth.generators.business.stage import Stage, scalars


def keys(desk: Scene, entity: str) -> list[int]:
    table = desk.tables[desk.rename(desk.entities[entity].table)]
    return [row[0] for row in desk.reader.dressed(f'SELECT "{table.key[0]}" FROM "{table.name}" ORDER BY 1')]  # type: ignore[misc]


@pytest.mark.parametrize("entity", ["person", "good", "sale"])
@pytest.mark.parametrize("vagueness", [0, 1, 2, 3])
def test_every_expression_is_unique_and_leads_to_the_thing(
    desk: Scene, stage: Stage, entity: str, vagueness: int
) -> None:
    found = {key: refer(desk, desk.entities[entity], key, vagueness) for key in keys(desk, entity)}
    told = {key: one for key, one in found.items() if one is not None}
    assert len(told) > 0.8 * len(found)
    assert len({one.phrase for one in told.values()}) == len(told)
    for key, one in told.items():
        assert desk.reader.dressed(one.unique) == [(1,)]
        if one.look_up is not None:
            answer = stage.look(stage.model.image, [one.look_up])[0]
            assert key in scalars(answer.result)


def test_a_namesake_is_told_apart_by_the_town(desk: Scene) -> None:
    shared = "SELECT name FROM buyers GROUP BY name HAVING count(*) > 1 AND count(DISTINCT city) > 1"
    names = desk.reader.dressed(shared)
    assert names
    rows = desk.reader.dressed("SELECT id, name, city FROM buyers WHERE name = :name", {"name": names[0][0]})
    for key, name, city in rows:
        found = refer(desk, desk.entities["person"], key, 1)
        assert found is not None
        assert found.phrase == f"{name} from {city}"


def test_who_is_alone_with_a_name_is_called_by_it(desk: Scene) -> None:
    key, name = desk.reader.dressed("SELECT max(id), name FROM buyers GROUP BY name HAVING count(*) = 1 ORDER BY 1")[0]
    found = refer(desk, desk.entities["person"], key, 2)
    assert found is not None
    assert found.phrase == name


def test_a_preposition_of_the_phrase_takes_the_place_of_the_days(desk: Scene) -> None:
    sale = desk.entities["sale"]
    when = next(one for one in sale.attributes if one.time)
    since = when.model_copy(update={"phrase": "theirs since {value}"})
    changed = sale.model_copy(update={"attributes": (since,), "look_up": ("list_sales", {"person": "7"})})
    phrases = [found.phrase for key in keys(desk, "sale") if (found := refer(desk, changed, key, 2))]
    assert any("since 2" in phrase or "since 1" in phrase for phrase in phrases)
    assert not any("since on" in phrase for phrase in phrases)


def test_a_thing_without_a_difference_is_not_referred_to(desk: Scene) -> None:
    same = "SELECT a.id FROM buyers a JOIN buyers b ON b.name = a.name AND b.city = a.city AND b.id <> a.id"
    twins = desk.reader.dressed(same)
    for (key,) in twins:
        assert refer(desk, desk.entities["person"], key, 2) is None
    assert refer(desk, desk.entities["person"], 999_999, 2) is None


def test_the_query_of_an_expression_is_false_for_another_thing(desk: Scene) -> None:
    found = refer(desk, desk.entities["person"], 102, 1)
    assert found is not None
    assert desk.reader.dressed(found.unique.replace("= 102", "= 103")) == [(0,)]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("2026-03-10", ["today"]),
        ("2026-03-09", ["yesterday"]),
        ("2026-03-11", ["tomorrow"]),
        ("2026-03-03", ["last week", "on 3 March"]),
        ("2026-02-03", ["last month", "on 3 February"]),
        ("2026-01-03", ["in January", "on 3 January"]),
        ("2025-12-31", ["on 31 December 2025"]),
        ("2026-03-18", ["next week", "on 18 March"]),
    ],
)
def test_days_are_said_as_people_say_them(when: str, said: list[str]) -> None:
    found = periods(when, "2026-03-10")
    assert [one.said for one in found] == said
    assert all(one.first <= when <= one.last for one in found)
    assert found[-1].first == found[-1].last == when


def test_a_date_has_its_weekday() -> None:
    assert day("2026-03-10") == "Tuesday 10 March 2026"
    assert day("2026-03-10T09:30:00") == "Tuesday 10 March 2026 at 09:30"
