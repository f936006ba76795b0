"""A skin on a world: every name an agent reads is the domain's, every text is filled in, the numbers stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from envsynth.errors import GeneratorError
from envsynth.generators.mechanism.contract import Fact, Grid, Presentation, Skin
from envsynth.models import World
from envsynth.renaming import Wording, checked_names, names_of, rename_world, sql_renamer

_FOLDER = Path(__file__).with_name("skins")
_ARTICLE = re.compile(r"\b([Aa]) (?=\{(\w+)\})")
_VOWEL = re.compile(r"(?!one\b|once\b|eu)[aeio]", re.IGNORECASE)
"""How a word begins that takes `an`. With u most take `a` (unit, user), and no skin has one that does not."""


@cache
def skins_of(family: str) -> Mapping[str, Skin]:
    """The skins of a family, by name.

    Raises:
        GeneratorError: its data file is missing or not as it should be; says where.
    """
    document = _document(family)
    with _read(family):
        return {
            name: Skin(
                name=name,
                unit=int(entry["unit"]),
                words=entry["words"],
                names=entry["names"],
                labels=tuple(map(str, entry["labels"])),
                texts={**document["texts"], "opening": entry["opening"], **(entry.get("texts") or {})},
            )
            for name, entry in document["skins"].items()
        }


@cache
def shared_texts(family: str) -> Mapping[str, str]:
    """The texts that all skins of a family share: what happens and what counts, with places for words and numbers.

    Raises:
        GeneratorError: as for `skins_of`.
    """
    document = _document(family)
    with _read(family):
        return {key: str(text) for key, text in document["texts"].items()}


@cache
def _document(family: str) -> Any:
    with _read(family):
        return yaml.load(_path(family).read_text("utf-8"), Loader=_loader())


@contextmanager
def _read(family: str) -> Iterator[None]:
    try:
        yield
    except (OSError, KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError) as exc:
        cause = f"{type(exc).__name__}: {exc}".replace("\n", " ")
        raise GeneratorError(
            "the skins of a family cannot be read", where=str(_path(family)), cause=cause, next_step="mend the file"
        ) from exc


def _path(family: str) -> Path:
    return _FOLDER / f"{family}.yaml"


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def dress(world: World, skin: Skin, facts: Mapping[str, Fact], name: str) -> World:
    """The world in a skin's names and words.

    Args:
        world: in neutral names; its texts may hold words and facts in braces.
        skin: what it is to look like.
        facts: numbers for the texts.
        name: the new world's id.

    Raises:
        GeneratorError: the skin lacks a name or a word, or gives one name to two things.
    """
    names = checked_names(names_of(world), skin.names, who=f"the skin {skin.name}", where=world.id)

    def told(key: str, text: str) -> str:
        """The skin's own text: of a tool's parameter, else of the parameter wherever it stands, else of the tool."""
        kind, _, rest = key.partition(".")
        if kind == "parameter":
            text = skin.texts.get(f"parameter.{rest.partition('.')[2]}", text)
        return skin.texts.get(key, text)

    rename = names.__getitem__
    wording = Wording(rename=rename, sql=sql_renamer(rename), say=_speaker(skin, facts), told=told)
    return rename_world(world, wording, name)


def worded(skin: Skin, variant: str) -> Skin:
    """The skin with the texts of a `Family.variant` (`rules.rank`) in the place of the common ones (`rules`)."""
    if not variant:
        return skin
    end = f".{variant}"
    apart = {key.removesuffix(end): text for key, text in skin.texts.items() if key.endswith(end)}
    return replace(skin, texts={**skin.texts, **apart})


def instruction(skin: Skin, presentation: Presentation, facts: Mapping[str, Fact]) -> str:
    """What the agent is told: where it is, what happens, what is not known, and what counts."""
    say = _speaker(skin, facts)
    return "\n\n".join(
        say(skin.texts[part]).strip() for part in ("opening", "rules", presentation.value, "goal") if part in skin.texts
    )


def dressed_sql(sql: str, skin: Skin) -> str:
    """A query in neutral names, in the skin's."""
    return sql_renamer(lambda word: skin.names.get(word, word))(sql)


def _speaker(skin: Skin, facts: Mapping[str, Fact]) -> Callable[[str], str]:
    """Fills a text in: words of the skin, facts, and neutral names (`{tool_or_column}`) where neither has the word."""
    words: dict[str, str] = {**skin.names, **skin.words}
    for name, fact in facts.items():
        words[name] = (
            _grid(fact, words) if isinstance(fact, Grid) else f"{fact:,}" if isinstance(fact, int) else str(fact)
        )

    def article(found: re.Match[str]) -> str:
        return f"{found[1]}n " if _VOWEL.match(words.get(found[2], "")) else found[0]

    def say(text: str) -> str:
        try:
            return Formatter().vformat(_ARTICLE.sub(article, text), (), words)
        except (KeyError, ValueError, IndexError) as exc:
            raise GeneratorError(
                "a text of a skin cannot be filled in", where=f"skin {skin.name}: {text[:60]!r}", cause=f"no {exc}",
                next_step="add the word, or double braces that are meant as such",
            ) from exc  # fmt: skip

    return say


def _grid(grid: Grid, words: Mapping[str, str]) -> str:
    """A table of numbers in Markdown."""
    heads = [Formatter().vformat(head, (), words) if "{" in head else words.get(head, head) for head in grid.columns]
    lines = [heads, ["---"] * len(heads), *([str(value) for value in row] for row in grid.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
