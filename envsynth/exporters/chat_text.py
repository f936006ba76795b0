"""A conversation as one text, for renderers that train on spans of characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from envsynth.models import ChatCall, ChatMessage, ChatTool, canonical_json

__all__ = ["Rendered", "text_of"]

_BEGIN, _END = "<|im_start|>", "<|im_end|>"


class Rendered(NamedTuple):
    """A text and what of it is learned from."""

    text: str
    spans: tuple[tuple[int, int], ...]
    """Half-open spans of characters (code points), in order, apart from each other: what the model wrote, and the mark
    that ends each of its turns."""


def text_of(
    messages: Sequence[ChatMessage], tools: Sequence[ChatTool], learned: Callable[[ChatMessage], bool]
) -> Rendered:
    """A conversation in ChatML, tools and calls in the blocks of the Hermes convention.

    Marks of turns that stand in what was said, such as in a file that a tool read, are broken up: they begin no turn.

    Args:
        messages: every turn.
        tools: what was offered; told in a turn of their own before the others.
        learned: whether a turn is the model's.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    size = 0

    def add(part: str, *, is_learned: bool = False) -> None:
        nonlocal size
        if is_learned:
            spans.append((size, size + len(part)))
        parts.append(part)
        size += len(part)

    if tools:
        told = "\n".join(canonical_json(tool.document()) for tool in tools)
        add(f"{_BEGIN}system\n<tools>\n{_plain(told)}\n</tools>{_END}\n")
    for message in messages:
        add(f"{_BEGIN}{message.role}\n")
        add(f"{_plain(_body(message))}{_END}", is_learned=learned(message))
        add("\n")
    return Rendered("".join(parts), tuple(spans))


def _plain(text: str) -> str:
    return text.replace("<|im_", "<| im_")


def _body(message: ChatMessage) -> str:
    thought = f"<think>\n{message.reasoning}\n</think>\n" if message.reasoning else ""
    if message.role == "tool":
        return f"<tool_response>\n{message.content}\n</tool_response>"
    return "\n".join(part for part in (thought + message.content, *map(_call, message.tool_calls)) if part)


def _call(call: ChatCall) -> str:
    """A call; arguments that are no JSON stand as they were written."""
    try:
        arguments = canonical_json(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError):
        arguments = call.arguments
    return f'<tool_call>\n{{"name":{json.dumps(call.name)},"arguments":{arguments}}}\n</tool_call>'
