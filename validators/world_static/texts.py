"""What an agent reads before its first call: finished, and silent on what the world hides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.models import Candidate, Finding, World
from envsynth.models.world import ColumnRole
from envsynth.validators.leakage.secrets import EMAIL, secrets_in
from envsynth.validators.world_static.statements import statements
from envsynth.validators.worlds.hidden_values import HiddenValues, hidden_values

MIN_INSTRUCTION = 60
"""Characters; less is a title."""
MANY_NUMBERS = 3
"""So many hidden numbers in one instruction are no chance."""
_RESERVED = re.compile(r"[@.]example\.(com|net|org)$|\.(example|test|invalid)$", re.IGNORECASE)
"""Ends of addresses that can be nobody's (RFC 2606)."""
_UNFILLED = re.compile(r"\{[a-z_][a-z0-9_.]*\}", re.IGNORECASE)
_UNSEEN = re.compile("[\u0080-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]")
"""Characters that people do not see, or that show them others in another order. Joiners are letters of some scripts."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SHARED_WORDS = 8
"""Words in a row that a hint and an instruction have in common by no chance."""


class Shown(NamedTuple):
    """A text that an agent can read."""

    where: str
    text: str


def shown_texts(candidate: Candidate, world: World) -> list[Shown]:
    """The instruction, and what is said of tools and their mistakes."""
    found = [Shown("instruction", candidate.instruction)]
    for tool in world.tools:
        found.append(Shown(f"tool {tool.name}", tool.doc))
        fields = (*tool.parameters, *(tool.each.fields if tool.each else ()))
        found += [Shown(f"tool {tool.name}, parameter {one.name}", one.doc) for one in fields]
        found += [Shown(f"tool {tool.name}, guard {n}", guard.error) for n, guard in enumerate(tool.guards, 1)]
    return found


def text_findings(candidate: Candidate, world: World) -> Iterator[Finding]:
    """What makes the texts unusable."""
    size = len(candidate.instruction.strip())
    if size < MIN_INSTRUCTION:
        yield Finding(rule="instruction_too_short", message=f"{size} characters", where="instruction")
    hidden = hidden_values(world)
    # Where the whole problem is written out, numbers and headings of hidden tables are meant to be read.
    written = candidate.world.tells == "instruction"
    names = frozenset[str]() if written else _hidden_names(world)
    for where, text in shown_texts(candidate, world):
        for found in _UNFILLED.findall(text):
            yield Finding(rule="unfilled_braces", message=found, where=where)
        for value in hidden.texts_in(text):
            yield Finding(rule="text_names_hidden_value", message=repr(value[:60]), where=where)
        for name in sorted(names & set(re.findall(r"\w+", text))):
            yield Finding(rule="text_names_hidden_table", message=name, where=where)
    for where, text in (("instruction", "" if written else candidate.instruction), ("tools", _of_tools(world))):
        numbers = hidden.numbers_in(text)
        if len(numbers) >= MANY_NUMBERS:
            message = f"{len(numbers)} numbers that only hidden rows hold, such as {numbers[0]:g}: take them out"
            yield Finding(rule="text_names_hidden_value", message=message, where=where)
    yield from _of_programs(world, hidden)
    shared = _shared(candidate.hint, candidate.instruction)
    if shared:
        message = f"it says what only the hint may: {shared!r}"
        yield Finding(rule="hint_in_instruction", message=message, where="instruction")


def unseen_findings(candidate: Candidate, content: bytes) -> Iterator[Finding]:
    """Characters that hide what a text says from people, anywhere in the task."""
    for where, text in (("instruction", candidate.instruction), ("world", content.decode())):
        found = _UNSEEN.search(text) or _CONTROL.search(text)
        if found:
            message = f"it has the character U+{ord(found.group()):04X}, which people do not see: take it out"
            yield Finding(rule="unseen_characters", message=message, where=where)


def _shared(hint: str, instruction: str) -> str:
    """The first words in a row that both texts have; empty where too few are."""
    words, other = (re.findall(r"\w+", text.casefold()) for text in (hint, instruction))
    known = {tuple(other[place : place + _SHARED_WORDS]) for place in range(len(other) - _SHARED_WORDS + 1)}
    runs = (words[place : place + _SHARED_WORDS] for place in range(len(words) - _SHARED_WORDS + 1))
    return next((" ".join(run) for run in runs if tuple(run) in known), "")


def _of_tools(world: World) -> str:
    """Everything that tools say, and their SQL."""
    texts = [tool.doc for tool in world.tools]
    for tool in world.tools:
        fields = (*tool.parameters, *(tool.each.fields if tool.each else ()))
        texts += [" ".join(map(str, (one.doc, *one.enum, one.minimum, one.maximum))) for one in fields]
        texts += [guard.error for guard in tool.guards]
    return "\n".join((*texts, *(one.sql for one in statements(world))))


def _of_programs(world: World, hidden: HiddenValues) -> Iterator[Finding]:
    """Hidden texts among the values that tools take, and in their SQL."""
    keys = _hidden_keys(world)
    places = [Shown(one.where, one.sql) for one in statements(world)]
    for tool in world.tools:
        for one in (*tool.parameters, *(tool.each.fields if tool.each else ())):
            places.append(Shown(f"tool {tool.name}, parameter {one.name}", "\n".join(map(str, one.enum))))
    for where, text in places:
        for value in hidden.texts_in(text):
            if value not in keys:
                yield Finding(rule="text_names_hidden_value", message=f"{value[:60]!r}: take it out", where=where)


def _hidden_keys(world: World) -> frozenset[JsonValue]:
    """What rows are called, hidden ones too: to ask for one by its name tells nothing of it."""
    return frozenset(
        row[place]
        for table in world.tables
        for place, column in enumerate(table.columns)
        if column.role is ColumnRole.KEY
        for row in world.rows.get(table.name, ())
    )


def private_findings(candidate: Candidate, world: World, content: bytes) -> Iterator[Finding]:
    """Credentials anywhere in the task, and addresses in the instruction that the world itself does not hold."""
    for where, text in (("instruction", candidate.instruction.encode()), ("world", content)):
        for kind in secrets_in(text):
            yield Finding(rule="secret_in_task", message=f"looks like a {kind}", where=where)
    for address in dict.fromkeys(EMAIL.findall(candidate.instruction)):
        if address.encode() not in content and not _RESERVED.search(address):
            yield Finding(rule="instruction_has_email", message=address, where="instruction")


def _hidden_names(world: World) -> frozenset[str]:
    """Names of hidden tables that are no words of any language; who reads one might look for it."""
    return frozenset(table.name for table in world.tables if table.hidden and "_" in table.name)
