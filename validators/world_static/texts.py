"""What an agent reads before its first call: finished, and silent on what the world hides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envsynth.models import Candidate, Finding, World
from envsynth.validators.leakage.secrets import EMAIL, secrets_in
from envsynth.validators.worlds.hidden_values import hidden_values

MIN_INSTRUCTION = 60
"""Characters; less is a title."""
MANY_NUMBERS = 3
"""So many hidden numbers in one instruction are no chance."""
_RESERVED = re.compile(r"[@.]example\.(com|net|org)$|\.(example|test|invalid)$", re.IGNORECASE)
"""Ends of addresses that can be nobody's (RFC 2606)."""
_UNFILLED = re.compile(r"\{[a-z_][a-z0-9_.]*\}", re.IGNORECASE)


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
    written = candidate.metadata.get("presentation") == "written"
    names = frozenset[str]() if written else _hidden_names(world)
    for where, text in shown_texts(candidate, world):
        for found in _UNFILLED.findall(text):
            yield Finding(rule="unfilled_braces", message=found, where=where)
        for value in hidden.texts_in(text):
            yield Finding(rule="text_names_hidden_value", message=repr(value[:60]), where=where)
        for name in sorted(names & set(re.findall(r"\w+", text))):
            yield Finding(rule="text_names_hidden_table", message=name, where=where)
    numbers = [] if written else hidden.numbers_in(candidate.instruction)
    if len(numbers) >= MANY_NUMBERS:
        message = f"{len(numbers)} numbers that only hidden rows hold, such as {numbers[0]:g}"
        yield Finding(rule="text_names_hidden_value", message=message, where="instruction")


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
