"""A small library of documents: four services and one industry; and copies of it with something changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from envsynth.generators.business.compose import Company, compose
from envsynth.generators.business.countries import country
from envsynth.generators.business.load import Library

FOLDER = Path(__file__).parents[2] / "data" / "business"


class Changed(NamedTuple):
    """A copy of the small library."""

    library: Library
    where: str
    """`file:line` of the change."""


Change = Callable[[str, str, str], Changed]
Compose = Callable[..., Company]


@pytest.fixture
def small() -> Library:
    return Library(FOLDER)


@pytest.fixture
def change(tmp_path: Path) -> Change:
    """The small library with the first `old` of a file replaced by `new`, again and again where it is called again."""
    folder = tmp_path / "library"
    shutil.copytree(FOLDER, folder)

    def replace(file: str, old: str, new: str) -> Changed:
        path = folder / file
        text = path.read_text("utf-8")
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1), "utf-8")
        return Changed(Library(folder), f"{path}:{text[: text.index(old)].count(chr(10)) + 1}")

    return replace


@pytest.fixture
def composed(small: Library) -> Compose:
    def make(place: str = "gb", seed: str = "1", library: Library = small) -> Company:
        return compose(library, library.industry("library"), country(place), seed)

    return make
