"""What is wrong with a skin that a model wrote: what it lacks, what it claims, and what happens when it is worn."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from envsynth.generators.mechanism.authored import AuthoredSkin, worn
from envsynth.generators.mechanism.contract import LEVELS, Family
from envsynth.generators.mechanism.dress import shared_texts, skins_of
from envsynth.generators.mechanism.needs import Needs, needs_of
from envsynth.generators.mechanism.sameness import differences
from envsynth.generators.mechanism.skin_checks import faults_of
from envsynth.models import Finding
from envsynth.renaming import same_names
from envsynth.rewriting.literals import literals

__all__ = ["MAX_UNIT", "Taken", "examined"]

MAX_UNIT = 100_000
_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_PLACE = re.compile(r"\{([A-Za-z_]+)\}")
_PLAIN = re.compile(r"[^<>{}\[\]|`\\]*")
_WORD = re.compile(r"\w+")
_TITLE, _OPENING, _SENTENCE, _SAID, _LABEL = (3, 60), (60, 700), (3, 200), (1, 140), (2, 40)
"""Fewest and most characters."""
_SHOWN = 40
_ARTICLES = ("the", "and")
_ALIKE = 0.7
"""Share of two stories' words that they have in common, from which they are one story."""


class Taken(NamedTuple):
    """What other skins of the family have for themselves."""

    tools: Mapping[str, str]
    """Names of tools, each with the skin whose it is."""
    titles: frozenset[str]


def examined(authored: AuthoredSkin, kind: Family[Any, Any], name: str, taken: Taken) -> list[Finding]:
    """Everything that is wrong with a skin; what can be seen comes first, and only where that is nothing is it worn.

    Args:
        authored: what a model wrote.
        kind: the family.
        name: what the skin is called.
        taken: what other skins have.
    """
    needs = needs_of(kind)
    found = [
        *_names(authored.names, needs), *_tool_names(authored.names, needs, taken), *_words(authored.words, needs),
        *_story(authored, needs, taken), *_labels(authored.labels, needs),
        *_sentences("tools", authored.tools, needs.tools),
        *_sentences("parameters", authored.parameters, needs.parameters), *_favours(authored),
        *_vouches(authored, kind.name), *_told_before(authored.opening, kind.name),
    ]  # fmt: skip
    if found:
        return found
    skin = worn(authored, name, shared_texts(kind.name))
    found = [Finding(rule="skin_cannot_be_worn", message=fault) for fault in faults_of(kind.name, skin)]
    if found:
        return found
    lines = differences(kind, skin, LEVELS[0], f"check/{kind.name}/{name}")
    return [Finding(rule="skin_changes_the_game", message=line) for line in lines]


def _names(names: Mapping[str, str], needs: Needs) -> Iterator[Finding]:
    yield from _keys("names", names, needs.names)
    for neutral, own in names.items():
        where = f"names.{neutral[:_SHOWN]}"
        if not _NAME.fullmatch(own):
            yield _finding("skin_bad_name", f"{own[:_SHOWN]!r} is no name: lower case, digits, underscores", where)
        elif own in needs.names:
            yield _finding("skin_name_not_new", f"{own!r} is one of the old names", where)
        elif own in needs.taken or not _can_be_named(own):
            yield _finding("skin_bad_name", f"{own!r} is a word of SQL, or one that the game uses inside", where)
    for one, other in same_names(names):
        yield _finding("skin_same_name", f"{one} and {other} are both called {names[one][:_SHOWN]!r}", "names")


def _tool_names(names: Mapping[str, str], needs: Needs, taken: Taken) -> Iterator[Finding]:
    for tool in needs.tools:
        owner = taken.tools.get(names.get(tool, ""))
        if owner is not None:
            message = f"the skin {owner} has a tool {names[tool]!r}"
            yield _finding("skin_shares_tool_name", message, f"names.{tool}")


def _words(words: Mapping[str, str], needs: Needs) -> Iterator[Finding]:
    yield from _keys("words", words, needs.words)
    for word, said in words.items():
        where = f"words.{word[:_SHOWN]}"
        yield from _plain(said, _SAID, where)
        yield from _claims(said, where, " ".join(needs.words.get(word, ())))
        if word == "money" and said not in needs.words.get(word, (said,)):
            known = ", ".join(dict.fromkeys(needs.words[word]))
            yield _finding("skin_bad_unit", f"amounts are in minor units, such as {known}", where)
        spoken = {one.casefold() for one in _WORD.findall(said)}
        lost = [one for one in _always_said(needs.words.get(word, ())) if one not in spoken]
        if lost:
            message = f"{' '.join(lost)!r} is missing, which every skin says here: it is a rule of the game"
            yield _finding("skin_loses_rule", message, where)


def _story(authored: AuthoredSkin, needs: Needs, taken: Taken) -> Iterator[Finding]:
    yield from _plain(authored.title, _TITLE, "title")
    if authored.title.strip().casefold() in taken.titles:
        yield _finding("skin_domain_taken", f"there is a skin {authored.title.strip()!r} already", "title")
    if not 1 <= authored.unit <= MAX_UNIT:
        yield _finding("skin_bad_unit", f"{authored.unit} is not between 1 and {MAX_UNIT}", "unit")
    # Places are filled in with the true numbers; what else looks like one is no place.
    yield from _plain(_PLACE.sub("", authored.opening), _OPENING, "opening")
    yield from _claims(_PLACE.sub("", authored.opening), "opening")
    for place in _PLACE.findall(authored.opening):
        if place not in needs.words:
            yield _finding("skin_unknown_place", f"there is no word {place!r} to stand in braces", "opening")


def _labels(labels: Iterable[str], needs: Needs) -> Iterator[Finding]:
    found = list(labels)
    if len(found) < needs.labels:
        yield _finding("skin_too_few_labels", f"{len(found)} of {needs.labels}", "labels")
    if len({_heard(label) for label in found}) < len(found):
        yield _finding("skin_same_label", "two things are called the same", "labels")
    if len(found) > 2 * needs.labels:
        yield _finding("skin_too_many_labels", f"{len(found)}, where {needs.labels} are wanted", "labels")
    for number, label in enumerate(found[: 2 * needs.labels]):
        yield from _plain(label, _LABEL, f"labels.{number}")
        yield from _claims(label, f"labels.{number}")
        praise = next((word for word in _table("praise") if re.search(rf"\b{word}\b", label, re.IGNORECASE)), None)
        if praise:
            message = f"{praise!r} says how good it is, which nothing but play may tell"
            yield _finding("skin_favours_one", message, f"labels.{number}")


def _sentences(field: str, told: Mapping[str, str], known: Iterable[str]) -> Iterator[Finding]:
    extra = [key for key in told if key not in set(known)]
    if extra:
        yield _finding("skin_unknown_key", f"there is no {', '.join(key[:_SHOWN] for key in extra[:5])}", field)
    for key, sentence in told.items():
        where = f"{field}.{key[:_SHOWN]}"
        if not sentence:
            continue
        yield from _plain(sentence, _SENTENCE, where)
        yield from _claims(sentence, where)
        if sentence.strip()[-1:] not in (".", "!", "?"):
            yield _finding("skin_bad_text", "it is no sentence: it does not end in a full stop", where)


def _favours(authored: AuthoredSkin) -> Iterator[Finding]:
    """A text that speaks of one of the things by name: which of them is good is not the story's to say."""
    texts = {"opening": authored.opening} | {f"tools.{tool}": text for tool, text in authored.tools.items()}
    texts |= {f"parameters.{name}": text for name, text in authored.parameters.items()}
    for where, text in texts.items():
        told = text.casefold()
        named = next((one for one in authored.labels if len(one) > 2 and one.strip().casefold() in told), None)
        if named:
            yield _finding("skin_favours_one", f"it speaks of {named[:_SHOWN]!r}", where[:_SHOWN])


def _vouches(authored: AuthoredSkin, family: str) -> Iterator[Finding]:
    """A sticker's name, or its author's, by which it would be true: how far stickers are off is the game's secret."""
    shipped = skins_of(family).values()
    told = {
        "words.claimant": (authored.words.get("claimant", ""), [skin.words.get("claimant", "") for skin in shipped]),
        "names.claimed": (authored.names.get("claimed", ""), [skin.names.get("claimed", "") for skin in shipped]),
    }
    for where, (said, known) in told.items():
        usual = {word for one in known for word in _spoken(one)}
        truth = next((word for word in _table("truth") if word in _spoken(said) and word not in usual), None)
        if truth:
            yield _finding("skin_vouches", f"{truth!r} says how far the claims can be trusted", where)


def _told_before(opening: str, family: str) -> Iterator[Finding]:
    """A story that a skin which ships tells already, under other names: it would be one more only by its title."""
    words = set(_spoken(opening))
    for name, skin in skins_of(family).items():
        known = set(_spoken(skin.texts["opening"]))
        if len(words & known) > _ALIKE * len(words | known):
            yield _finding("skin_domain_taken", f"the skin {name} tells this story already", "opening")


def _spoken(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _heard(label: str) -> str:
    """A label as it is told from others: by its letters."""
    return " ".join(_spoken(unicodedata.normalize("NFKC", label)))


def _keys(field: str, given: Mapping[str, str], wanted: Mapping[str, object]) -> Iterator[Finding]:
    """What is missing and what is too much: an unknown name could stand in the place of one of SQL's own words."""
    missing = [key for key in wanted if key not in given]
    if missing:
        yield _finding("skin_lacks_a_word", f"nothing is said for {', '.join(missing)}", field)
    extra = [key for key in given if key not in wanted]
    if extra:
        yield _finding("skin_unknown_key", f"there is no {', '.join(key[:_SHOWN] for key in extra[:5])}", field)


def _plain(text: str, size: tuple[int, int], where: str) -> Iterator[Finding]:
    least, most = size
    if not least <= len(text.strip()) <= most:
        yield _finding("skin_bad_text", f"it has {len(text.strip())} characters, not {least} to {most}", where)
    if not text.isprintable() or not _PLAIN.fullmatch(text) or _foreign(text):
        message = "it is no plain line: no line breaks, braces, brackets or marks, and plain Latin letters"
        yield _finding("skin_bad_text", message, where)


def _foreign(text: str) -> bool:
    """Whether it has letters of another script, or dressed-up ones and figures: some look like the usual ones."""
    strange = any(letter.isalpha() and "LATIN" not in unicodedata.name(letter, "") for letter in text)
    return strange or unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFC", text)


def _claims(text: str, where: str, usual: str = "") -> Iterator[Finding]:
    """Claims that a text makes, those aside that skins which ship make in its place: they are a part of the rules."""
    yield from _numbers(text, where)
    found = (claim for claim in _table("claims") if re.search(rf"\b{claim}\b", text, re.IGNORECASE))
    told = next((claim for claim in found if not re.search(rf"\b{claim}\b", usual, re.IGNORECASE)), None)
    if told:
        yield _finding("skin_claims_odds", f"it says {told!r}: what things are like is told by the game's texts", where)


def _numbers(text: str, where: str) -> Iterator[Finding]:
    numbers = [told.value for told in literals(text) if told.kind == "number" or re.search(r"\d", told.value)]
    if numbers or re.search(r"\d", text):
        shown = ", ".join(number[:_SHOWN] for number in numbers[:3]) or "a digit"
        yield _finding("skin_states_number", f"it says {shown}: numbers are the game's alone", where)


@cache
def _table(name: str) -> tuple[str, ...]:
    """A word table: a word or phrase a line."""
    lines = Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@cache
def _always_said(examples: tuple[str, ...]) -> tuple[str, ...]:
    """Words that every skin says in one place, in order, where they have more than a name to say there."""
    spoken = [[one.casefold() for one in _WORD.findall(example)] for example in examples]
    if len(spoken) < 2 or min(map(len, spoken)) < 3:
        return ()
    common = (word for word in dict.fromkeys(spoken[0]) if all(word in said for said in spoken))
    return tuple(word for word in common if len(word) > 2 and word not in _ARTICLES)


@cache
def _can_be_named(name: str) -> bool:
    """Whether SQLite takes a word, unquoted, as a table, a column and a parameter."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE {name}({name} INTEGER)")
        connection.execute(f"SELECT {name}.{name} FROM {name} WHERE {name} = :{name}", {name: 1})
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return True


def _finding(rule: str, message: str, where: str) -> Finding:
    return Finding(rule=rule, message=message, where=where)
