"""What is wrong with an answer that came: each fault of a model's output is an error of its own kind."""

from __future__ import annotations

from collections.abc import Sequence

from envsynth.errors import (
    ModelBadToolCall,
    ModelEmpty,
    ModelOutputError,
    ModelOverlong,
    ModelRefused,
    ModelTruncated,
)
from envsynth.llm.messages import Reply, Tool, ToolCall
from envsynth.llm.settings import RoleSettings

__all__ = ["fault"]

_SLACK = 16
"""Tokens over the limit that are no fault: servers count marks of the template differently."""


def fault(reply: Reply, tools: Sequence[Tool], settings: RoleSettings) -> ModelOutputError | None:
    """The fault of a reply, or None.

    Args:
        reply: what came.
        tools: what the model was offered.
        settings: its limits.
    """
    error = _first(reply, tools, settings)
    if error is not None:
        error.where = settings.model
        error.output = reply.output
    return error


def _first(reply: Reply, tools: Sequence[Tool], settings: RoleSettings) -> ModelOutputError | None:
    limit = settings.sampling.max_tokens
    tokens = reply.usage.completion_tokens if reply.usage else 0
    size = len(reply.output)
    if reply.refusal or reply.finish_reason == "content_filter":
        return ModelRefused("the model declined to answer", cause=reply.refusal[:200] or "a content filter")
    if size > settings.max_chars or tokens > limit + _SLACK:
        return ModelOverlong(
            "the answer is longer than allowed",
            cause=f"{size} characters of at most {settings.max_chars}, {tokens} tokens of at most {limit}",
        )
    if reply.finish_reason == "length":
        return ModelTruncated(
            "the answer was cut", cause=f"it reached the limit of {limit} tokens", next_step="raise sampling.max_tokens"
        )
    if not reply.text.strip() and not reply.tool_calls:
        return ModelEmpty("the answer is empty", cause="neither text nor a tool call")
    found = (_of_call(call, [tool.name for tool in tools]) for call in reply.tool_calls)
    return next((error for error in found if error is not None), None)


def _of_call(call: ToolCall, names: Sequence[str]) -> ModelBadToolCall | None:
    if call.name not in names:
        offered = ", ".join(names) or "none"
        return ModelBadToolCall(f"it calls {call.name[:64]!r}, which is no tool", cause=f"offered: {offered}")
    if call.parsed() is None:
        return ModelBadToolCall(
            f"its call of {call.name} has no JSON object as arguments", cause=call.arguments[:120] or "they are empty"
        )
    return None
