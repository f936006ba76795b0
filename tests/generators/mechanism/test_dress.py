"""Skins: every name is replaced, quoted text is not, and what is missing is named."""

from __future__ import annotations

import pytest

from envsynth.errors import GeneratorError
from envsynth.generators.mechanism.contract import Grid, Presentation, Skin
from envsynth.generators.mechanism.dress import dress, dressed_sql, instruction
from envsynth.models import World

NAMES = {"state": "till", "left": "tickets", "pull": "sell", "arm": "queue", "view": "look"}
WORLD = World.model_validate(
    {
        "id": "small",
        "clock": "2026-03-02T08:00:00",
        "tables": {"state": {"columns": {"left": {"type": "integer"}}}},
        "rows": {"state": [[3]]},
        "tools": {
            "view": {"kind": "read", "doc": "See the {thing}.", "result": "SELECT left FROM state"},
            "pull": {
                "kind": "write",
                "parameters": {"arm": {"type": "integer", "doc": "Which {thing}."}},
                "guards": [{"sql": "SELECT left > 0 FROM state", "error": "no {thing} left"}],
                "effects": ["UPDATE state SET left = left - 1 WHERE :arm = 1 AND 'left state' <> ''"],
            },
        },
    }
)


def skin(**changes: object) -> Skin:
    fields = {
        "name": "box-office", "unit": 1, "words": {"thing": "ticket"}, "names": NAMES, "labels": ("a",),
        "texts": {"opening": "You sell {thing}s.", "rules": "{count} are {left}.", "goal": "Sell.", "written": "{grid}"},  # noqa: E501
    }  # fmt: skip
    return Skin(**{**fields, **changes})  # type: ignore[arg-type]


def test_names_change_everywhere_but_in_quoted_text() -> None:
    world = dress(WORLD, skin(), {}, "world")
    assert [tool.name for tool in world.tools] == ["look", "sell"]
    sell = world.tools[1]
    assert sell.effects == ("UPDATE till SET tickets = tickets - 1 WHERE :queue = 1 AND 'left state' <> ''",)
    assert sell.parameters[0].name == "queue"
    assert sell.guards[0].error == "no ticket left"
    assert world.rows == {"till": ((3,),)}
    assert dressed_sql("SELECT state.left FROM state", skin()) == "SELECT till.tickets FROM till"


def test_an_instruction_is_filled_with_words_facts_and_names() -> None:
    facts = {"count": 1200, "grid": Grid(("arm", "{thing}"), ((1, 0.5),))}
    text = instruction(skin(), Presentation.WRITTEN, facts)
    assert text == (
        "You sell tickets.\n\n1,200 are tickets.\n\n| queue | ticket |\n| --- | --- |\n| 1 | 0.5 |\n\nSell."
    )


@pytest.mark.parametrize(
    ("thing", "said"),
    [("order", "An order: once an order"), ("ticket", "A ticket: once a ticket"), ("unit", "A unit: once a unit"),
     ("one-off", "A one-off: once a one-off")],
)  # fmt: skip
def test_the_article_fits_the_word(thing: str, said: str) -> None:
    dressed = skin(words={"thing": thing}, texts={"opening": "A {thing}: once a {thing}"})
    assert instruction(dressed, Presentation.WRITTEN, {}) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"names": {**NAMES, "left": "sell"}}, "calls left and pull the same"),
        ({"names": {key: name for key, name in NAMES.items() if key != "arm"}}, "has no name for arm"),
        ({"words": {}}, "cannot be filled in"),
    ],
)
def test_a_skin_that_lacks_something_is_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(GeneratorError, match=said):
        dress(WORLD, skin(**changes), {}, "world")
