"""A model puts an instruction into other words; what it loses or adds goes back; in the end the original may stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from envsynth.asking import fault_reason
from envsynth.errors import ModelOutputError
from envsynth.llm import Client, Message, Order, Unrepaired, author, load_prompt, quoted, system, user
from envsynth.models import Finding, Model, digest_of
from envsynth.rewriting.facts import LEAVES_OUT, Blocks, Original, Rewriting, bounds, examined, numbered
from envsynth.rewriting.levels import LEVELS, level_text
from envsynth.rewriting.turns import words_of_turns

__all__ = ["Rewritten", "rewrite", "rewriting_version"]

_FOLDER = Path(__file__).with_name("prompts")
_SHOWN = 5


class Reading(Model):
    """What a reader of both texts finds."""

    lost: tuple[str, ...] = ()
    """What the original asks and the rewriting does not."""
    added: tuple[str, ...] = ()
    """What the rewriting asks and the original does not."""
    changed: tuple[str, ...] = ()
    """What means something else."""


class Rewritten(NamedTuple):
    """What became of an instruction."""

    text: str
    """In other words or, where none would do, as it was."""
    level: int
    """That was wanted."""
    model: str
    """Who was asked."""
    reason: str = ""
    """Why the original stays: the rule of the worst finding, or the kind of the model's fault; empty: it does not."""
    left_out: tuple[str, ...] = ()
    """Marks of facts that the text does not say, for they can be found."""
    repairs: int = 0
    """How often it was sent back."""

    def metadata(self) -> dict[str, JsonValue]:
        """For a candidate's metadata, under `rewrite`."""
        found: dict[str, JsonValue] = {"level": self.level, "model": self.model, "repairs": self.repairs}
        if self.reason:
            return {**found, "original_stays": self.reason}
        return {**found, "left_out": list(self.left_out)}


def rewrite(client: Client, original: Original, level: int, *, draw: int = 0) -> Rewritten:
    """Put an instruction into other words, at a level of vagueness.

    A rewriting is taken only where every fact is said or was found in the environment, nothing is added, and a second
    look at both texts, in a conversation of its own, names no difference. What is found goes back five times at most;
    then the original stays, which is no fault of the task.

    Args:
        client: the author's model.
        original: the instruction, with its facts.
        level: one of `LEVELS`.
        draw: other rewritings have other numbers.

    Raises:
        ValueError: there is no such level.
        ModelEndpointError, BudgetSpent: as for `llm.author`; answers of no use raise nothing.
    """
    if level not in LEVELS:
        raise ValueError(f"no level of vagueness: {level}")
    blocks = numbered(original.text)
    model = client.settings.model

    def examine(rewriting: Rewriting) -> Sequence[Finding]:
        found = examined(rewriting, original, blocks, level)
        return found or list(_read(client, rewriting, original, blocks, draw))

    order = Order("rewriting", Rewriting, _messages(original, blocks, level), rewriting_version(), examine)
    try:
        found = author(client, order, draw=draw)
    except Unrepaired as exc:
        return Rewritten(original.text, level, model, exc.reason, repairs=exc.repairs)
    except ModelOutputError as exc:
        return Rewritten(original.text, level, model, fault_reason(exc))
    text = blocks.filled(found.value.text)
    return Rewritten(text, level, model, left_out=found.value.left_out, repairs=len(found.repairs))


def rewriting_version() -> str:
    """Digest of the prompts, of what levels mean and of the words looked for: other texts, other rewritings."""
    prompts = [load_prompt(_FOLDER / f"{name}.md").version for name in ("system", "rewrite", "reading")]
    return digest_of([*prompts, *map(level_text, LEVELS), words_of_turns()])[:16]


def _messages(original: Original, blocks: Blocks, level: int) -> tuple[Message, ...]:
    """The conversation that asks for a rewriting."""
    lone = original.facts if level >= LEAVES_OUT else ()
    optional = [fact for fact in lone if not list(original.unfound(frozenset({fact.mark})))]
    needed = [fact for fact in original.facts if fact not in optional]
    least, most = bounds(blocks.text, level)
    may = "Every fact must be said; `left_out` is empty."
    if optional:
        told = quoted("\n".join(f"- {fact.mark}: {fact.spelled}" for fact in optional), "facts that can be found")
        may = f"These can be looked up, so that they may be left out:\n\n{told}"
    kept = f"Leave these places for tables and code as they are, each once, in order: {', '.join(blocks.places)}."
    told = load_prompt(_FOLDER / "rewrite.md").fill(
        instruction=quoted(blocks.text, "instruction"), level=level_text(level), may=may,
        must=quoted("\n".join(f"- {fact.mark}: {fact.spelled}" for fact in needed) or "nothing", "facts"),
        blocks=kept if blocks.contents else "", least=str(least), most=str(most),
    )  # fmt: skip
    return (system(load_prompt(_FOLDER / "system.md").text), user(told))


def _read(client: Client, rewriting: Rewriting, original: Original, blocks: Blocks, draw: int) -> Iterator[Finding]:
    """What a reader of both texts finds. A reader can only object: it cannot make good what was found before."""
    prompt = load_prompt(_FOLDER / "reading.md")
    spelled = {fact.mark: fact.spelled for fact in original.facts}
    left_out = "; ".join(spelled[mark] for mark in rewriting.left_out if mark in spelled)
    told = prompt.fill(
        original=quoted(blocks.text, "first"), rewritten=quoted(rewriting.text, "second"),
        left_out=quoted(left_out or "none", "facts"),
    )  # fmt: skip
    messages = [system(load_prompt(_FOLDER / "system.md").text), user(told)]
    try:
        reading = client.structured(messages, Reading, prompt_version=prompt.version, draw=draw)
    except ModelOutputError as exc:
        yield Finding(
            rule="rewrite_not_read", message=f"nobody could compare it with the original: {fault_reason(exc)}"
        )
        return
    for name in ("lost", "added", "changed"):
        for line in getattr(reading, name)[:_SHOWN]:
            yield Finding(rule=f"rewrite_{name}_meaning", message=line[:300], where=name)
