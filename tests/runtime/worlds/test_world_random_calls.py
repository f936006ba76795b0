"""Random calls: no exception, nothing hidden in any answer, no change after a refused call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import worldkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsynth.generators.mechanism.contract import Presentation
from envsynth.generators.mechanism.draw import draw, show
from envsynth.generators.mechanism.dress import skins_of
from envsynth.generators.mechanism.registry import family, family_names
from envsynth.models import Column, Tool, World
from envsynth.models.world import ColumnRole, Parameter
from envsynth.runtime.worlds.episode import WorldEpisode

CALLS = 40
"""In one episode."""
SQL = (
    "' OR 1=1 --",
    "'); DROP TABLE state; --",
    "SELECT * FROM tape",
    '"; ATTACH "x" AS y; --',
    "%",
    "_",
    ":now",
    "\\",
)
TEXTS = st.one_of(
    st.sampled_from(SQL), st.text(max_size=30), st.text(alphabet="a\0\ud800\udfff\U0001f600é", max_size=8),
    st.integers(1, 30_000).map(lambda size: "x" * size),
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-3, 30), st.integers(), st.sampled_from([2**63 - 1, 2**63, -(2**63), 10**400, -(10**400)]),
    st.floats(), st.floats(0, 1),
)  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
DEEP = json.loads("[" * 400 + "]" * 400)


def fitting(parameter: Parameter) -> st.SearchStrategy[Any]:
    if parameter.enum:
        return st.sampled_from(parameter.enum)
    low = parameter.minimum if parameter.minimum is not None else -5
    high = parameter.maximum if parameter.maximum is not None else low + 50
    return {
        "boolean": st.booleans(), "string": st.text(max_size=12), "integer": st.integers(int(low), int(high)),
        "number": st.floats(float(low), float(high)),
    }[parameter.type]  # fmt: skip


def arguments_of(tool: Tool) -> st.SearchStrategy[Any]:
    known: dict[str, st.SearchStrategy[Any]] = {one.name: fitting(one) for one in tool.parameters}
    if tool.each is not None:
        fields = st.fixed_dictionaries({field.name: fitting(field) for field in tool.each.fields})
        plans = st.lists(st.one_of(fields, fields, fields, ANYTHING), max_size=4)
        known[tool.each.parameter] = st.one_of(plans, plans.map(_as_text), st.just("[" * 2000))
    right = st.fixed_dictionaries(known)
    names = st.sampled_from([*known, "other", "now", "position"])
    wrong = st.dictionaries(names, ANYTHING, max_size=3)
    mixed = st.builds(lambda one, other: {**one, **other}, right, wrong)
    return st.one_of(right, right, mixed, ANYTHING, st.just({name: DEEP for name in known}))


def _as_text(plan: Any) -> str:
    try:
        return json.dumps(plan)
    except ValueError:  # an integer that is too long to be written down
        return "[1"


def calls_of(world: World) -> st.SearchStrategy[tuple[Any, Any]]:
    known = [st.tuples(st.just(tool.name), arguments_of(tool)) for tool in world.tools if tool.kind != "submit"]
    last = [st.tuples(st.just(tool.name), arguments_of(tool)) for tool in world.tools if tool.kind == "submit"]
    return st.one_of(*known, *known, *last, st.tuples(ANYTHING, ANYTHING))


def shaken(world: World) -> World:
    """The same world with other numbers in whatever is hidden."""
    rows = dict(world.rows)
    for table in world.tables:
        places = {place for place, one in enumerate(table.columns) if _can_be_shaken(one, table.hidden)}
        rows[table.name] = tuple(
            tuple(value + 1 if place in places and value is not None else value for place, value in enumerate(row))  # type: ignore[operator]
            for row in rows.get(table.name, ())
        )
    return world.model_copy(update={"rows": rows})


def _can_be_shaken(column: Column, hidden: bool) -> bool:
    plain = column.type in ("integer", "real") and column.role is not ColumnRole.KEY and not column.references
    return plain and not column.enum and (hidden or column.hidden)


def played(world: World, other: World, drawn: Iterator[tuple[Any, Any]], secrets: tuple[str, ...]) -> None:
    """Make calls and look at everything that must never happen.

    Until a call has changed something, what a world shows must not depend on what it hides at all.
    """
    episode, twin = (worldkit.episode_of(one.document()) for one in (world, other))
    kinds = {tool.name: tool.kind for tool in world.tools}
    try:
        untouched = True
        for tool, arguments in drawn:
            before = episode.image()
            answer = episode.call(tool, arguments)
            text = json.dumps(answer, allow_nan=False)
            assert not any(secret in text for secret in secrets)
            assert not answer.ok or answer.error == ""
            if not answer.ok:
                assert answer.error
                assert unchanged(episode, before)
            mirrored = twin.call(tool, arguments)
            untouched = untouched and (not answer.ok or kinds[tool] in ("read", "think"))
            if untouched:
                assert mirrored == answer
            if answer.done:
                break
        fork = episode.fork()
        assert fork.grade() == episode.grade()
        # After this every table is compared; before, those that its calls can have changed.
        fork.restore(episode.snapshot())
        assert fork.grade() == episode.grade()
        fork.close()
    finally:
        episode.close()
        twin.close()


def unchanged(episode: WorldEpisode, before: bytes) -> bool:
    if episode.image() == before:
        return True
    now = episode.state_hash()
    snapshot = episode.snapshot()
    episode.restore(snapshot._replace(image=before))
    was = episode.state_hash()
    episode.restore(snapshot)
    return now == was


def some_calls(data: st.DataObject, calls: st.SearchStrategy[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    return (data.draw(calls) for _ in range(CALLS))


SHOP = World.model_validate(worldkit.shop())
SHOP_CALLS = calls_of(SHOP)
SECRETS = (worldkit.SECRET, "Ostrander", "Vane & D", '"cost"')
LOOSE = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], database=None
)  # fmt: skip


@settings(LOOSE, max_examples=10)
@given(st.data())
def test_four_hundred_calls_of_a_shop(data: st.DataObject) -> None:
    played(SHOP, shaken(SHOP), some_calls(data, SHOP_CALLS), SECRETS)


@pytest.mark.slow
@settings(LOOSE, max_examples=250)
@given(st.data())
def test_ten_thousand_calls_of_a_shop(data: st.DataObject) -> None:
    played(SHOP, shaken(SHOP), some_calls(data, SHOP_CALLS), SECRETS)


@pytest.mark.slow
@pytest.mark.parametrize("presentation", list(Presentation))
@pytest.mark.parametrize("name", family_names())
def test_calls_of_every_family(name: str, presentation: Presentation) -> None:
    """Three presentations of each family together: 10,080 calls over twelve families."""
    skin = next(iter(skins_of(name).values()))
    found = draw(family(name), skin, 3, f"random-calls/{name}", 1)
    world = show(found, presentation).world
    calls, other = calls_of(world), shaken(world)

    @settings(LOOSE, max_examples=7)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        played(world, other, some_calls(data, calls), ())

    run()
