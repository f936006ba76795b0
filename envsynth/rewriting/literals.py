"""Literals of a text: the numbers, names, dates, identifiers and quoted words that it states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["Told", "has", "literals", "number_words", "phrase_literals", "says", "states"]

Kind = Literal["number", "code", "quote", "name"]

_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»")
_CHUNK = re.compile(r"[^\s()\[\]{}<>`\"“”«»|—–]+")
_EDGE = ".,;:!?'‘’*…#%$€£¥₹¢~+="
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_GROUPED = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")
_NUMBER = re.compile(r"(-?\d+(?:[.,]\d+)*)(?:st|nd|rd|th)?(?:[-/]([A-Za-z]+|\d+(?:[.,]\d+)*))?")
_CODE = re.compile(r"[@_]|://|\w\.\w|^/|\d")
_BEFORE = 16
"""So many characters before a word tell whether a sentence begins with it."""
_START = re.compile(r"(?:[.!?:;]['’\"”)]*\s+|\n\s*|[-*]\s+|[\"“«(]\s*)$")
_ABBREVIATED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_I = re.compile(r"I(?:['’]\w+)?")


class Told(NamedTuple):
    """One literal."""

    kind: Kind
    value: str
    """Normalised: equal for `1,200` and `1200`, for `five` and `5`, for `Ann` and `ANN`."""


def literals(text: str) -> Counter[Told]:
    """How often a text states each literal.

    A capitalised word counts as a name unless a sentence begins with it.
    """
    found: Counter[Told] = Counter()
    for quote in _QUOTED.finditer(text):
        content = next(part for part in quote.groups() if part)
        found[Told("quote", _squeezed(content))] += 1
    for chunk in _CHUNK.finditer(text):
        before = text[max(0, chunk.start() - _BEFORE) : chunk.start()]
        found.update(_of_chunk(chunk[0], begins=not before.strip() or _START.search(before) is not None))
    return found


def phrase_literals(phrase: str) -> Counter[Told]:
    """The literals of a phrase that stands inside a sentence: its first word can be a name."""
    return literals(f"that {phrase}")


def states(text: str, phrase: str) -> bool:
    """Whether a text states what a phrase does: all of its literals or, where it has none, its very words."""
    wanted = phrase_literals(phrase)
    if not wanted:
        return says(text, phrase)
    there = literals(text)
    return all(has(text, there, told) for told in wanted)


def says(text: str, phrase: str) -> bool:
    """Whether the very words of a phrase stand in a text, whatever their case."""
    return re.search(rf"(?<!\w){re.escape(_squeezed(phrase))}(?!\w)", _squeezed(text)) is not None


def has(text: str, there: Mapping[Told, int], told: Told) -> bool:
    """Whether a text, whose literals are `there`, states a literal: names and quotes also where they look otherwise."""
    if there.get(told):
        return True
    if told.kind == "quote":
        return told.value in _squeezed(text)
    if told.kind == "name":
        return re.search(rf"(?<!\w){re.escape(told.value)}(?!\w)", text.casefold()) is not None
    return False


@cache
def number_words() -> Mapping[str, str]:
    """Values of numbers in words."""
    lines = Path(__file__).with_name("number_words.txt").read_text("utf-8").splitlines()
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {word: value for word, value in pairs}


def _of_chunk(chunk: str, *, begins: bool) -> Iterator[Told]:
    word = chunk.strip(_EDGE)
    word = re.sub(r"['’]s$", "", word)
    negative = chunk.startswith("-") and word[:1].isdigit()
    word = word if not negative else f"-{word.lstrip('-')}"
    if not word:
        return
    if _DATE.fullmatch(word):
        yield Told("code", word)
        return
    if _GROUPED.fullmatch(word):
        yield Told("number", word.replace(",", ""))
        return
    if number := _NUMBER.fullmatch(word):
        yield from _of_number(number)
        return
    if _ABBREVIATED.fullmatch(word):
        return
    if _CODE.search(word):
        yield Told("code", word.casefold())
        return
    for part in re.split(r"[-/]", word):
        lower = part.casefold()
        if lower in number_words():
            yield Told("number", number_words()[lower])
        elif part[:1].isupper() and not begins and not _I.fullmatch(part):
            yield Told("name", lower)
        begins = False


def _of_number(found: re.Match[str]) -> Iterator[Told]:
    """A number, with what hangs on it by a hyphen or a slash: `5-day`, `3-5`."""
    for part in found.groups():
        if part and part.lstrip("-")[:1].isdigit():
            yield Told("number", part.replace(",", "") if _GROUPED.fullmatch(part) else part)


def _squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()
