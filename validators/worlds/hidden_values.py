"""Values that only hidden tables and columns hold, as far as they can be told from any other text or number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.models import ColumnRole, World

MIN_CHARACTERS = 6
"""Of a text; a shorter one may stand anywhere."""
LONG_WORD = 12
"""Characters of a single word that is no everyday one."""
MIN_DIGITS = 5
"""Of a number, without leading zeros."""
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


class HiddenValues(NamedTuple):
    """What nobody can know who has seen no hidden row."""

    texts: frozenset[str]
    numbers: frozenset[float]

    def texts_in(self, shown: str) -> list[str]:
        """The hidden texts that stand in a text."""
        return sorted(text for text in self.texts if text in shown)

    def numbers_in(self, shown: str) -> list[float]:
        """The hidden numbers that stand in a text; thousands may be set apart by commas."""
        spoken = {float(found.replace(",", "")) for found in _NUMBER.findall(shown)}
        return sorted(self.numbers & spoken)


def hidden_values(world: World) -> HiddenValues:
    """The values of hidden cells that nothing visible holds; of texts, only those that one cell alone has."""
    hidden, visible = Counter(_cells(world, hidden=True)), {*_cells(world, hidden=False), *_named(world)}
    apart = {value: number for value, number in hidden.items() if value not in visible}
    texts = [value for value, number in apart.items() if isinstance(value, str) and number == 1 and _is_telling(value)]
    known = "\n".join(value for value in visible if isinstance(value, str)) if texts else ""
    return HiddenValues(
        frozenset(text for text in texts if text not in known),
        frozenset(float(value) for value in apart if isinstance(value, int | float) and _has_digits(value)),
    )


def _cells(world: World, *, hidden: bool) -> Iterator[JsonValue]:
    for table in world.tables:
        # What a column may hold is no secret where it is listed; that a row holds it is no text of its own.
        places = [
            place
            for place, column in enumerate(table.columns)
            if (table.hidden or column.hidden) == hidden and not (hidden and column.enum)
        ]
        for row in world.rows.get(table.name, ()) if places else ():
            yield from (row[place] for place in places)


def _named(world: World) -> frozenset[JsonValue]:
    """Names of hidden rows that tools list as arguments: that there is such a row is no secret, what it holds is."""
    names = {
        row[place]
        for table in world.tables
        for place, column in enumerate(table.columns) if column.role is ColumnRole.KEY
        for row in world.rows.get(table.name, ())
    }  # fmt: skip
    return frozenset(names.intersection(_listed(world)))


def _listed(world: World) -> Iterator[JsonValue]:
    """What tools say that their arguments may be."""
    for tool in world.tools:
        for parameter in (*tool.parameters, *(tool.each.fields if tool.each else ())):
            yield from parameter.enum


def _is_telling(text: str) -> bool:
    return len(text) >= MIN_CHARACTERS and not text.isspace() and (not text.isalpha() or len(text) >= LONG_WORD)


def _has_digits(number: float) -> bool:
    return len(f"{abs(number):.12g}".replace(".", "").strip("0")) >= MIN_DIGITS
