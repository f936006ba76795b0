"""What counts as a value that nobody can know who has seen no hidden row."""

from __future__ import annotations

from typing import Any

import pytest
import worldkit

from envsynth.models import World
from envsynth.validators.worlds.hidden_values import HiddenValues, hidden_values


def held(rows: list[list[Any]], **column: Any) -> HiddenValues:
    """Of a world whose suppliers are called so."""
    document = worldkit.shop()
    document["tables"]["suppliers"]["columns"]["name"] |= column
    document["rows"]["suppliers"] = rows
    return hidden_values(World.model_validate(document))


def test_texts_and_numbers_of_hidden_cells_are_told_apart() -> None:
    document = worldkit.shop()
    document["rows"]["tape"] = [[0, 83511], [1, 35], [2, 100_000]]
    found = hidden_values(World.model_validate(document))
    assert found.texts == {worldkit.SECRET, "Ostrander Works", "Vane & Daughters"}
    assert found.numbers == {83511}


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["North Works", "South Works"], {"North Works", "South Works"}),
        (["North Works", "North Works"], set()),
        (["standard", "elevated"], set()),
        (["QX-77", "QX-778"], {"QX-778"}),
        (["Wolkenkratzer", "lamp"], {"Wolkenkratzer"}),
        (["      ", ""], set()),
    ],
)
def test_only_what_cannot_stand_anywhere_is_kept(names: list[str], kept: set[str]) -> None:
    assert held([[item, name] for item, name in zip(("lamp", "clock"), names, strict=True)]).texts == kept


def test_listed_values_are_no_secret() -> None:
    assert held([["lamp", "North Works"]], enum=["North Works", "South Works"]).texts == set()


@pytest.mark.parametrize(("role", "secret"), [("key", False), ("hard", True)])
def test_names_of_hidden_rows_that_a_tool_lists_are_no_secret(role: str, secret: bool) -> None:
    """That a topic can be asked for says nothing; that a supplier is one of two does."""
    document = worldkit.shop()
    columns = document["tables"]["suppliers"]["columns"]
    columns["name"]["role"] = role
    columns["item"] = {"type": "text"}
    tool = next(tool for tool in document["tools"].values() if tool.get("parameters"))
    tool["parameters"]["maker"] = {"type": "string", "enum": [worldkit.SECRET, "Nobody at all"], "required": False}
    assert (worldkit.SECRET in hidden_values(World.model_validate(document)).texts) is secret


def test_a_text_that_is_part_of_a_visible_one_is_none() -> None:
    document = worldkit.shop()
    document["tables"]["manual"] = {"columns": {"page": {"type": "text", "role": "key"}, "body": {"type": "text"}}}
    document["rows"]["manual"] = [["buying", f"We buy from {worldkit.SECRET} alone."]]
    assert worldkit.SECRET not in hidden_values(World.model_validate(document)).texts


@pytest.mark.parametrize("said", ["83511", "83,511", "83511.0", "it is 83,511, as ever", "(83511)"])
def test_a_number_is_found_however_it_is_written(said: str) -> None:
    assert HiddenValues(frozenset(), frozenset({83511.0})).numbers_in(said) == [83511.0]


@pytest.mark.parametrize("said", ["835110", "x83511", "8 3511", "-83511", "1.83511"])
def test_other_numbers_are_not(said: str) -> None:
    assert HiddenValues(frozenset(), frozenset({83511.0})).numbers_in(said) == []
