"""Braces in texts and SQL, and an industry's own names for everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.errors import GeneratorError
from envsynth.generators.business.countries import Country
from envsynth.models import World
from envsynth.renaming import sql_renamer

_BRACES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?::([a-z]+))?\}")
_PATH = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*)+)")

TRIVIAL = frozenset({
    "id", "name", "city", "email", "phone", "address", "page", "title", "body", "text", "note", "reason",
})  # fmt: skip
"""Names that may be the same in every industry; an industry need not name them."""

NUMBERS = frozenset({"tax_permille", "weekend_days"})
"""What a country says in numbers, for SQL."""
BUILT_IN = NUMBERS | {"country", "currency", "cents", "company", "tax_percent"}
"""Words that every world has."""

Word = JsonValue


class Speaker:
    """Fills braces in."""

    def __init__(self, words: Mapping[str, Word], country: Country, where: str) -> None:
        """A speaker.

        Args:
            words: words and settings.
            country: how money is written.
            where: for messages.
        """
        self.words, self._country, self._where = words, country, where

    def say(self, text: str, more: Mapping[str, Word] | None = None) -> str:
        """The text filled in: `{word}`; `{Word}` with a capital; `{amount_cents:money}` as people write money.

        Args:
            text: with braces.
            more: words that come before the others.

        Raises:
            GeneratorError: there is no such word.
        """
        return self._filled(text, more or {}, str, strict=True)

    def partly(self, text: str) -> str:
        """The text with known words filled in; other braces stay."""
        return self._filled(text, {}, str, strict=False)

    def sql(self, text: str) -> str:
        """A statement with settings and words filled in; words stand in strings of SQL.

        Raises:
            GeneratorError: there is no such word.
        """
        return self._filled(text, {}, lambda word: str(word).replace("'", "''"), strict=True)

    def _filled(self, text: str, more: Mapping[str, Word], show: Callable[[Word], str], *, strict: bool) -> str:
        def word(found: re.Match[str]) -> str:
            value = _looked_up(found[1], more, self.words)
            if value is None:
                if not strict:
                    return found[0]
                raise GeneratorError(
                    f"there is no word for {{{found[1]}}}", where=self._where, cause=f"in {text[:80]!r}",
                    next_step="add it to the industry's words",
                )  # fmt: skip
            if found[2] == "money" and isinstance(value, int):
                return self._country.money(value)
            return show(value)

        return _BRACES.sub(word, text) if "{" in text else text


def braces(text: str) -> set[str]:
    """Words that a text has in braces, as they stand there."""
    return {found[1] for found in _BRACES.finditer(text)}


def _looked_up(word: str, more: Mapping[str, Word], words: Mapping[str, Word]) -> Word:
    for known in (more, words):
        if word in known:
            return known[word]
    plain = word[0].lower() + word[1:]
    for known in (more, words):
        if plain in known and plain != word:
            text = str(known[plain])
            return text[:1].upper() + text[1:]
    return None


class Renamer(NamedTuple):
    """From neutral names to an industry's, and back."""

    names: Mapping[str, str]
    values: Mapping[str, str]
    """Enumerated texts."""
    pages: Mapping[str, str]
    """Pages of the manual."""
    tools: Mapping[str, Mapping[str, tuple[JsonValue, ...]]]
    """By neutral tool: its parameters' enumerated values."""
    enums: Mapping[str, frozenset[JsonValue]]
    """By neutral column: its enumerated values."""
    manual: tuple[str, str]
    """Neutral names of the tool that reads a page, and of its parameter."""

    def name(self, word: str) -> str:
        """An industry's name of a table, column, tool or parameter."""
        return self.names.get(word, word)

    def value(self, value: JsonValue) -> JsonValue:
        """An industry's word of an enumerated text; anything else stays."""
        return self.values.get(value, value) if isinstance(value, str) else value

    def page(self, page: str) -> str:
        """An industry's name of a page of the manual."""
        return self.pages.get(page, page)

    def sql(self, statement: str) -> str:
        """A statement in neutral names; strings that are enumerated values, tools or JSON paths are put over too."""
        return sql_renamer(self.name, self._string)(statement)

    def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> tuple[str, dict[str, JsonValue]]:
        """A call in neutral names."""
        enums = self.tools.get(tool, {})
        found: dict[str, JsonValue] = {}
        for name, value in arguments.items():
            if (tool, name) == self.manual:
                found[self.name(name)] = self.page(str(value))
            else:
                found[self.name(name)] = self.value(value) if value in enums.get(name, ()) else value
        return self.name(tool), found

    def result(self, result: JsonValue) -> JsonValue:
        """A tool's result with its keys, and the values of enumerated columns, in neutral names."""
        back = {own: word for word, own in self.names.items()}
        words = {own: word for word, own in self.values.items()}

        def neutral(value: JsonValue, column: str = "") -> JsonValue:
            if isinstance(value, dict):
                return {back.get(key, key): neutral(each, back.get(key, key)) for key, each in value.items()}
            if isinstance(value, list):
                return [neutral(each, column) for each in value]
            return words.get(value, value) if isinstance(value, str) and column in self.enums else value

        return neutral(result)

    def _string(self, quoted: str) -> str:
        text = quoted[1:-1]
        if text in self.values:
            return f"'{self.values[text]}'"
        if text in self.tools:
            return f"'{self.name(text)}'"
        if text.startswith("$."):
            return "'" + _PATH.sub(lambda f: "$" + ".".join(map(self.name, f[1].split("."))), text) + "'"
        return quoted


def renamer(world: World, names: Mapping[str, str], values: Mapping[str, str], pages: Mapping[str, str]) -> Renamer:
    """The renamer of a neutral world.

    Args:
        world: in neutral names.
        names: its names; trivial ones may be missing.
        values: its enumerated texts.
        pages: its manual's pages.
    """
    tools = {
        tool.name: {
            parameter.name: tuple(parameter.enum)
            for parameter in (*tool.parameters, *(tool.each.fields if tool.each else ()))
            if parameter.enum
        }
        for tool in world.tools
    }
    enums: dict[str, frozenset[JsonValue]] = {}
    for table in world.tables:
        for column in table.columns:
            if column.enum:
                enums[column.name] = enums.get(column.name, frozenset()) | frozenset(column.enum)
    return Renamer(names, values, pages, tools, enums, ("read_page", "page"))


def in_money(names: Mapping[str, str], country: Country) -> dict[str, str]:
    """Names that end in `cents`, with the country's word for its minor unit."""
    return {
        word: own.removesuffix("cents") + country.minor if own.endswith("cents") else own for word, own in names.items()
    }


def as_names(statement: str, settings: Collection[str]) -> str:
    """A statement that can be prepared before there is a world: settings are numbers, other braces the word itself."""
    known = {*settings, *NUMBERS}
    return _BRACES.sub(lambda found: "1" if found[1] in known else found[1], statement)
