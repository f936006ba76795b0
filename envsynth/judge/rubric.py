"""Rubrics: lines in words, bound to the instruction that they are about."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import Field

from envsynth.errors import ConfigError
from envsynth.judge.showing import shown_policies, shown_tools
from envsynth.llm import Client, Order, author, load_prompt, quoted, user
from envsynth.models import Criterion, CriterionClass, Digest, Finding, Model
from envsynth.runtime.contract import JSON

__all__ = ["Rubric", "RubricLine", "instruction_hash", "rubric_of", "written_rubric"]

_PROMPT = load_prompt(Path(__file__).parent / "prompts" / "rubric.md")
LEAST, MOST = 3, 12
"""Lines of a rubric that a model writes."""


class RubricLine(Model):
    """One line that a judge scores."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    class_: CriterionClass = Field(alias="class")
    question: str
    """What is asked; of a pitfall, whether it was fallen into."""
    decides: bool = False
    """Whether it says if the episode is right, and not only how it was gone about."""

    model_config = {**Model.model_config, "populate_by_name": True}


class Rubric(Model):
    """The lines for one instruction. A rubric that drifts from its instruction misjudges: they are bound."""

    instruction: Digest
    """sha256 of the instruction."""
    lines: tuple[RubricLine, ...] = Field(min_length=1)

    def demand(self, instruction: str, where: str) -> None:
        """Raise unless this is the instruction.

        Raises:
            ConfigError: the rubric is about another one.
        """
        if instruction_hash(instruction) != self.instruction:
            raise ConfigError(
                "the rubric was made for another instruction", where=where,
                cause="the instruction was changed after the rubric was written",
                next_step="make the rubric anew from the task as it is",
            )  # fmt: skip


def instruction_hash(instruction: str) -> str:
    """What a rubric is bound to."""
    return hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()


def rubric_of(instruction: str, criteria: Sequence[Criterion] = ()) -> Rubric:
    """The rubric of a task: what is asked of every episode, then the task's own criteria in words.

    Args:
        instruction: of the task.
        criteria: of its verifier; a judge scores those in SQL too, by their words.
    """
    common = coherence()
    taken = {line.id for line in common}
    own = tuple(
        RubricLine(id=line.id, class_=line.class_, question=line.prompt or line.text)
        for line in criteria if line.id not in taken
    )  # fmt: skip
    return Rubric(instruction=instruction_hash(instruction), lines=(*common, *own))


@cache
def coherence() -> tuple[RubricLine, ...]:
    """The lines of every rubric."""
    document = tomllib.loads(Path(__file__).with_name("coherence.toml").read_text("utf-8"))
    return tuple(
        RubricLine.model_validate({**line, "question": line["question"].strip()}) for line in document["lines"]
    )


class WrittenRubric(Model):
    """A rubric as a model writes it, before anything was seen of any episode."""

    lines: tuple[RubricLine, ...]


def written_rubric(
    client: Client, instruction: str, *, tools: Sequence[JSON], policies: Mapping[str, str], draw: int = 0
) -> Rubric:
    """Have a rubric written for a task that brings none; the lines of every rubric come first, and alone decide.

    The writer sees no episode: a text in one cannot ask for lenient lines.

    Args:
        client: the judge's model.
        instruction: of the task.
        tools: as the agent sees them.
        policies: pages that the agent can read.
        draw: other rubrics have other numbers.

    Raises:
        Unrepaired: something was wrong with it after every repair.
        ModelError: as for `Client.structured_reply`.
    """
    told = _PROMPT.fill(
        instruction=quoted(instruction, "instruction"), policies=shown_policies(policies), tools=shown_tools(tools)
    )
    order = Order("rubric", WrittenRubric, (user(told),), _PROMPT.version, _examined)
    written = author(client, order, draw=draw).value
    lines = tuple(line.model_copy(update={"decides": False}) for line in written.lines)
    return Rubric(instruction=instruction_hash(instruction), lines=(*coherence(), *lines))


def _examined(written: WrittenRubric) -> list[Finding]:
    return list(_findings(written))


def _findings(written: WrittenRubric) -> Iterator[Finding]:
    if not LEAST <= len(written.lines) <= MOST:
        message = f"it has {len(written.lines)} lines, where {LEAST} to {MOST} are wanted"
        yield Finding(rule="rubric_size", message=message)
    ids = [line.id for line in written.lines]
    for name in sorted({name for name in ids if ids.count(name) > 1 or name in {line.id for line in coherence()}}):
        yield Finding(rule="rubric_line_twice", message=f"another line is called {name}", where=name)
    if not any(line.class_ is CriterionClass.ESSENTIAL for line in written.lines):
        yield Finding(rule="rubric_nothing_essential", message="no line is essential")
    for line in written.lines:
        if len(line.question.split()) < 4:
            yield Finding(rule="rubric_line_empty", message="its question says too little", where=line.id)
