"""What an instruction may not lose: facts, where they can be found instead, and what no rewriting may say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from envsynth.models import Finding, Model
from envsynth.rewriting.literals import has, literals, phrase_literals, says, states
from envsynth.rewriting.turns import turned

__all__ = ["LEAVES_OUT", "Blocks", "Fact", "Original", "Rewriting", "bounds", "examined", "facts_said", "numbered"]

LEAVES_OUT = 2
"""The first level at which facts may be left out."""
_RUN = 6
"""So many words in a row that a text shares with what is secret are no chance."""
_BLOCK = re.compile(r"^```.*?^```[^\S\n]*$|(?:^\|[^\n]*\|[^\S\n]*$\n?)+", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<\||\[/?INST\]|<</?SYS>>|</?quoted", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_SHOWN = 60


class Fact(NamedTuple):
    """One thing that the checks need."""

    mark: str
    """What it is called between us and the writer: `days`, `1.account`."""
    spelled: str
    """How the instruction says it."""
    exact: bool = False
    """Whether its very words must stand: a description without one of them fits other things too."""

    def stands_in(self, text: str) -> bool:
        """Whether a text says it."""
        return says(text, self.spelled) if self.exact else states(text, self.spelled)


@dataclass(frozen=True)
class Original:
    """An instruction, with what its checks need. Equal are those that say the same; what measures is not compared."""

    text: str
    facts: Sequence[Fact]
    """Those that it says."""
    unfound: Callable[[frozenset[str]], Iterable[str]] = field(default=sorted, compare=False)
    """Of facts that are left out, by their marks: those that an agent cannot find in the environment; as it is given,
    all of them. What it says is measured: a read tool was called, a file was read."""
    secrets: Sequence[str] = ()
    """Texts that no instruction may give away: the hint, the reference."""
    objections: Callable[[str], Iterable[Finding]] = field(default=lambda text: (), compare=False)
    """What else speaks against a text, such as a generator's own search for leaks."""


class Rewriting(Model):
    """What a model writes."""

    text: str
    """The instruction in other words."""
    left_out: tuple[str, ...] = ()
    """Marks of the facts that it does not say."""


class Blocks(NamedTuple):
    """Tables and code of an instruction, which are not put into other words."""

    text: str
    """The instruction with a place for each."""
    contents: tuple[str, ...]
    word: str

    def place(self, number: int) -> str:
        """What stands for a block."""
        return f"[[{self.word} {number}]]"

    @property
    def places(self) -> list[str]:
        """What stands for each block, in order."""
        return [self.place(number) for number in range(1, len(self.contents) + 1)]

    def bare(self, text: str) -> str:
        """A text without its places."""
        for place in self.places:
            text = text.replace(place, " ")
        return text

    def filled(self, text: str) -> str:
        """A text with the blocks in their places."""
        for place, content in zip(self.places, self.contents, strict=True):
            text = text.replace(place, content.strip("\n"), 1)
        return text.strip()


def numbered(text: str) -> Blocks:
    """An instruction with a place for each of its tables and blocks of code."""
    word = "block"
    while f"[[{word}" in text:
        word += "x"
    contents: list[str] = []

    def kept(found: re.Match[str]) -> str:
        contents.append(found[0])
        return f"[[{word} {len(contents)}]]" + ("\n" if found[0].endswith("\n") else "")

    return Blocks(_BLOCK.sub(kept, text), tuple(contents), word)


def facts_said(text: str) -> Iterator[Fact]:
    """Every number, id and quoted text that a text says, as a fact; none of its tables and blocks of code."""
    blocks = numbered(text)
    for number, told in enumerate(literals(blocks.bare(blocks.text)), 1):
        if told.kind != "name":
            yield Fact(f"said-{number}", f"`{told.value}`" if told.kind == "quote" else told.value)


def bounds(text: str, level: int) -> tuple[int, int]:
    """Fewest and most characters of a rewriting."""
    return max(20, len(text) * (2 if level < LEAVES_OUT else 1) // 5), len(text) * 3 // 2 + 160


def examined(rewriting: Rewriting, original: Original, blocks: Blocks, level: int) -> list[Finding]:
    """Everything that is wrong with a rewriting and can be told without reading it.

    Args:
        rewriting: what a model wrote.
        original: what it was given.
        blocks: of the original.
        level: that was wanted.
    """
    text = blocks.bare(rewriting.text)
    if len(rewriting.text.strip()) > bounds(blocks.text, level)[1]:
        # Not even searched.
        return [next(_form(rewriting.text, blocks, level))]
    return [
        *_form(rewriting.text, blocks, level), *_kept(rewriting, text, original, level),
        *_added(text, blocks.bare(blocks.text)), *turned(text, blocks.bare(blocks.text)), *_leaked(text, original),
        *original.objections(rewriting.text),
    ]  # fmt: skip


def _form(text: str, blocks: Blocks, level: int) -> Iterator[Finding]:
    least, most = bounds(blocks.text, level)
    if not least <= len(text.strip()) <= most:
        yield _finding("rewrite_length", f"it has {len(text.strip())} characters, not {least} to {most}")
    if not text.replace("\n", "").isprintable() or _MARK.search(text):
        yield _finding("rewrite_bad_text", "it has characters that nobody sees, or marks of a conversation")
    if _squeezed(text) == _squeezed(blocks.text):
        yield _finding("rewrite_unchanged", "it says the same in the same words")
    found = [place for place in re.findall(r"\[\[[^\]]*\]\]", text) if place.startswith(f"[[{blocks.word} ")]
    if found != blocks.places:
        wanted = ", ".join(blocks.places) or "none"
        yield _finding("rewrite_loses_block", f"the places of blocks are not each there once, in order: {wanted}")


def _kept(rewriting: Rewriting, text: str, original: Original, level: int) -> Iterator[Finding]:
    """Facts that are neither said nor declared and found elsewhere."""
    known = {fact.mark for fact in original.facts}
    for mark in dict.fromkeys(rewriting.left_out):
        if mark not in known:
            yield _finding("rewrite_unknown_fact", f"there is no fact {mark[:_SHOWN]!r}", "left_out")
    silent = [fact for fact in original.facts if not fact.stands_in(text)]
    silent += _shared(text, [fact for fact in original.facts if fact not in silent])
    declared = {fact.mark for fact in silent} & set(rewriting.left_out) if level >= LEAVES_OUT else set()
    for fact in silent:
        if fact.mark not in declared:
            yield _finding("rewrite_drops_fact", f"{fact.spelled[:_SHOWN]!r} is not said", fact.mark)
    for mark in original.unfound(frozenset(declared)) if declared else ():
        yield _finding("rewrite_fact_not_found", "it is left out, and cannot be found out otherwise", mark[:_SHOWN])


def _shared(text: str, stated: Sequence[Fact]) -> Iterator[Fact]:
    """Facts beyond those that a number can stand for: where two facts are 3, it is to be said twice."""
    left = literals(text)
    for fact in stated:
        numbers = Counter(
            {told: count for told, count in phrase_literals(fact.spelled).items() if told.kind == "number"}
        )
        if any(left[told] < 1 for told in numbers):
            yield fact
        left.subtract(numbers.keys())


def _added(text: str, before: str) -> Iterator[Finding]:
    """Literals that the original does not have."""
    there, words = literals(before), set(_WORD.findall(before.casefold()))
    for told in literals(text):
        if has(before, there, told) or (told.kind == "name" and set(_WORD.findall(told.value)) <= words):
            continue
        yield _finding("rewrite_adds_fact", f"the instruction has no {told.value[:_SHOWN]!r}")


def _leaked(text: str, original: Original) -> Iterator[Finding]:
    """Runs of words that a text shares with what is secret, and the original does not."""
    known, said = _runs(original.text), _runs(text)
    for secret in original.secrets:
        if shared := (said & _runs(secret)) - known:
            yield _finding("rewrite_leaks", f"it gives away {' '.join(min(shared))[:_SHOWN]!r}")


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}


def _squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


def _finding(rule: str, message: str, where: str = "") -> Finding:
    return Finding(rule=rule, message=message, where=where)
