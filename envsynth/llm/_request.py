"""One question to a model: what identifies it, and how it is put to an endpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from envsynth.llm._dialect import Form, Known, response_format
from envsynth.llm.messages import Message, Tool
from envsynth.llm.prompting import Prompt, load_prompt
from envsynth.llm.settings import Role, RoleSettings
from envsynth.models.base import digest_of

__all__ = ["Asked", "Shape", "key_of", "payload_of", "repair_text"]

_PROMPTS = Path(__file__).with_name("prompts")


class Shape(NamedTuple):
    """The type of a structured answer."""

    name: str
    schema: dict[str, Any]
    """JSON Schema."""


class Asked(NamedTuple):
    """One question."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    prompt_version: str = ""
    draw: int = 0
    shape: Shape | None = None


def key_of(asked: Asked, role: Role, settings: RoleSettings) -> str:
    """What a reply is cached by. The endpoint's address is no part of it, nor is the form that it understands."""
    return digest_of(
        {
            "role": role,
            "model": settings.model,
            "messages": [message.document() for message in asked.messages],
            "sampling": settings.sampling.document(),
            "prompt_version": asked.prompt_version,
            "draw": asked.draw,
            "tools": [tool.document() for tool in asked.tools],
            "tool_choice": asked.tool_choice if asked.tools else "",
            "schema": asked.shape.schema if asked.shape else None,
            "texts": [_prompt("schema").version] if asked.shape else [],
        }
    )


def payload_of(asked: Asked, settings: RoleSettings, known: Known, form: Form | None) -> dict[str, Any]:
    """The body of the request.

    Args:
        asked: the question.
        settings: who is asked.
        known: what the endpoint understands.
        form: how a structured answer is asked for; None: it is none.
    """
    turns = [message.wire() for message in asked.messages]
    payload: dict[str, Any] = {"model": settings.model, "messages": turns}
    if asked.shape is not None and form is not None:
        asked_for = response_format(form, *asked.shape)
        if asked_for is not None:
            payload["response_format"] = asked_for
        if form != "json_schema":
            told = _prompt("schema").fill(schema=_text(asked.shape.schema))
            turns[-1] = {**turns[-1], "content": f"{turns[-1]['content']}\n\n{told}"}
    if asked.tools:
        payload["tools"] = [tool.wire() for tool in asked.tools]
        named = {"type": "function", "function": {"name": asked.tool_choice}}
        payload["tool_choice"] = asked.tool_choice if asked.tool_choice in ("auto", "none", "required") else named
    sampling = settings.sampling
    payload[known.limit] = sampling.max_tokens
    chosen = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": _seed(sampling.seed, asked.draw),
    }
    return payload | {name: value for name, value in chosen.items() if value is not None}


def repair_text(wrong: Sequence[str], shape: Shape) -> str:
    """What a model is told whose answer does not fit."""
    return _prompt("repair").fill(findings="\n".join(f"- {line}" for line in wrong), schema=_text(shape.schema))


def _prompt(name: str) -> Prompt:
    return load_prompt(_PROMPTS / f"{name}.md")


def _seed(seed: int | None, draw: int) -> int | None:
    """The seed of a draw: neighbouring draws share nothing."""
    if seed is None or draw == 0:
        return seed
    return int(digest_of(["draw", seed, draw])[:8], 16) >> 1


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, indent=1, sort_keys=True)
