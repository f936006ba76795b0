"""A model writes one artefact; it is examined at once, and what is found goes back to the model a few times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from envsynth.llm.client import Client
from envsynth.llm.messages import Message, Reply, user
from envsynth.llm.prompting import load_prompt, quoted
from envsynth.models import Finding

__all__ = ["REPAIRS", "Authored", "Order", "Unrepaired", "author", "told"]

M = TypeVar("M", bound=BaseModel)
REPAIRS = 5
"""How often an artefact is sent back with what was found, before its task is given up."""
_SHOWN = 12
"""Findings that are shown to the model at once."""
_EXAMINED = load_prompt(Path(__file__).with_name("prompts") / "examined.md")


class Order(NamedTuple, Generic[M]):
    """An artefact that is wanted."""

    artefact: str
    """What it is, in words: `list of tools`."""
    kind: type[M]
    """Its typed document."""
    messages: tuple[Message, ...]
    """The conversation that asks for it; text from outside is quoted."""
    prompt_version: str
    examine: Callable[[M], Sequence[Finding]]
    """Everything that is wrong with it, the worst first; empty: it is fit. Raises nothing for what a model wrote."""


class Authored(NamedTuple, Generic[M]):
    """An artefact in which nothing was found any more."""

    value: M
    repairs: tuple[tuple[Finding, ...], ...]
    """What was found before each repair, in order."""
    replies: tuple[Reply, ...]


class Unrepaired(Exception):
    """An artefact in which something was found after every repair."""

    def __init__(self, artefact: str, findings: Sequence[Finding], repairs: int) -> None:
        super().__init__(f"the {artefact}, after {repairs} repairs: {findings[0].message}")
        self.artefact = artefact
        self.findings = tuple(findings)
        self.repairs = repairs

    @property
    def reason(self) -> str:
        """The rule of the worst finding, for the funnel."""
        return self.findings[0].rule


def author(client: Client, order: Order[M], *, draw: int = 0, repairs: int = REPAIRS) -> Authored[M]:
    """Have one artefact written, examined, and written again with the findings where there are any.

    A repair shows the model its last artefact and what was found in it, not the whole way there.

    Args:
        client: the author's model.
        order: what is wanted.
        draw: other artefacts for the same order have other numbers.
        repairs: how often it may be sent back.

    Raises:
        Unrepaired: something was found after every repair.
        ModelError: as for `Client.structured_reply`.
    """
    replies: list[Reply] = []
    history: list[tuple[Finding, ...]] = []
    messages = order.messages
    while True:
        # A number of its own for each repair: the same mistake made twice would else be answered from the cache.
        number = draw * (repairs + 1) + len(history)
        answer = client.structured_reply(messages, order.kind, prompt_version=order.prompt_version, draw=number)
        replies += answer.replies
        findings = tuple(order.examine(answer.value))
        if not findings:
            return Authored(answer.value, tuple(history), tuple(replies))
        if len(history) == repairs:
            raise Unrepaired(order.artefact, findings, repairs)
        history.append(findings)
        messages = (*order.messages, answer.replies[-1].message, user(told(order.artefact, findings)))


def told(artefact: str, findings: Sequence[Finding]) -> str:
    """What an author is told of its last artefact; findings may hold text from outside, so they are quoted."""
    lines = [f"- {f.rule}{f' ({f.where})' if f.where else ''}: {f.message}" for f in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        lines.append(f"- and {len(findings) - _SHOWN} more")
    return _EXAMINED.fill(artefact=artefact, findings=quoted("\n".join(lines), f"findings on the {artefact}"))
