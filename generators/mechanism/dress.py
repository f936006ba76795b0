"""A skin on a world: every name an agent reads is the domain's, every text is filled in, the numbers stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

from envsynth.errors import GeneratorError
from envsynth.generators.mechanism.contract import Fact, Grid, Presentation, Skin
from envsynth.models import Column, Each, Guard, Parameter, Table, Tool, World

_FOLDER = Path(__file__).with_name("skins")
# A quoted string, or a word; words inside strings are data.
_TOKEN = re.compile(r"'(?:[^']|'')*'|[a-z_][a-z0-9_]*", re.IGNORECASE)


@cache
def skins_of(family: str) -> Mapping[str, Skin]:
    """The skins of a family, by name.

    Raises:
        GeneratorError: its data file is missing or not as it should be; says where.
    """
    path = _FOLDER / f"{family}.yaml"
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_loader())
        shared = document["texts"]
        return {
            name: Skin(
                name=name,
                unit=int(entry["unit"]),
                words=entry["words"],
                names=entry["names"],
                labels=tuple(map(str, entry["labels"])),
                texts={**shared, "opening": entry["opening"], **(entry.get("texts") or {})},
            )
            for name, entry in document["skins"].items()
        }
    except (OSError, KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError) as exc:
        cause = f"{type(exc).__name__}: {exc}".replace("\n", " ")
        raise GeneratorError(
            "the skins of a family cannot be read", where=str(path), cause=cause, next_step="mend the file"
        ) from exc


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
    rename = _renamer(world, skin)
    say = _speaker(skin, facts)
    sql = _sql_renamer(rename)

    def parameter(found: Parameter, tool: str) -> Parameter:
        text = skin.texts.get(f"parameter.{tool}.{found.name}", skin.texts.get(f"parameter.{found.name}", found.doc))
        return found.model_copy(update={"name": rename(found.name), "doc": say(text)})

    def tool(found: Tool) -> Tool:
        each = found.each and Each(
            parameter=rename(found.each.parameter),
            fields=tuple(parameter(field, found.name) for field in found.each.fields), maximum=found.each.maximum,
        )  # fmt: skip
        return Tool(
            name=rename(found.name), kind=found.kind, doc=say(skin.texts.get(f"tool.{found.name}", found.doc)),
            parameters=tuple(parameter(one, found.name) for one in found.parameters), each=each,
            guards=tuple(Guard(sql=sql(guard.sql), error=say(guard.error)) for guard in found.guards),
            effects=tuple(map(sql, found.effects)), result=sql(found.result), shape=found.shape,
            decimals={rename(column): digits for column, digits in found.decimals.items()}, cost=found.cost,
        )  # fmt: skip

    def column(found: Column) -> Column:
        target = ".".join(rename(part) for part in found.references.split(".")) if found.references else ""
        return found.model_copy(update={"name": rename(found.name), "references": target, "doc": say(found.doc)})

    return World(
        id=name, clock=world.clock,
        tables=tuple(
            Table(name=rename(table.name), doc=say(table.doc), columns=tuple(map(column, table.columns)),
                  hidden=table.hidden, tolerated=table.tolerated)
            for table in world.tables
        ),
        rows={rename(table): rows for table, rows in world.rows.items()},
        tools=tuple(map(tool, world.tools)),
        invariants=tuple(found.model_copy(update={"sql": sql(found.sql)}) for found in world.invariants),
        over=sql(world.over),
    )  # fmt: skip


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
    return _sql_renamer(lambda word: skin.names.get(word, word))(sql)


def _renamer(world: World, skin: Skin) -> Callable[[str], str]:
    needed = set(_names(world))
    missing = sorted(needed - skin.names.keys())
    if missing:
        raise GeneratorError(
            f"the skin {skin.name} has no name for {', '.join(missing)}", where=world.id, next_step="add them"
        )
    taken: dict[str, str] = {}
    for word in sorted(needed):
        other = taken.setdefault(skin.names[word], word)
        if other != word:
            raise GeneratorError(f"the skin {skin.name} calls {other} and {word} the same", where=world.id)
    return lambda word: skin.names[word]


def _names(world: World) -> Iterable[str]:
    for table in world.tables:
        yield table.name
        yield from (column.name for column in table.columns)
    for tool in world.tools:
        yield tool.name
        yield from (parameter.name for parameter in tool.parameters)
        yield from (field.name for field in tool.each.fields) if tool.each else ()


def _sql_renamer(rename: Callable[[str], str]) -> Callable[[str], str]:
    def word(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith("'"):
            return text
        try:
            return rename(text)
        except KeyError:
            return text

    return lambda sql: _TOKEN.sub(word, sql)


def _speaker(skin: Skin, facts: Mapping[str, Fact]) -> Callable[[str], str]:
    """Fills a text in: words of the skin, facts, and neutral names (`{tool_or_column}`) where neither has the word."""
    words: dict[str, str] = {**skin.names, **skin.words}
    for name, fact in facts.items():
        words[name] = (
            _grid(fact, words) if isinstance(fact, Grid) else f"{fact:,}" if isinstance(fact, int) else str(fact)
        )

    def say(text: str) -> str:
        try:
            return Formatter().vformat(text, (), words)
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
