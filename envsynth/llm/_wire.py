"""The answers of chat-completions endpoints, read leniently: servers differ in what they leave out."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from envsynth.llm.messages import Reply, ToolCall, Usage

__all__ = ["parse_reply"]

_MOST_TOKENS = 10**9


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Function(_Lenient):
    name: str = ""
    arguments: str = ""

    @field_validator("arguments", mode="before")
    @classmethod
    def _as_text(cls, arguments: Any) -> Any:
        return arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)


class _Call(_Lenient):
    id: str | None = None
    function: _Function = _Function()


class _Part(_Lenient):
    text: str = ""


class _Message(_Lenient):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(_Lenient):
    message: _Message
    finish_reason: str | None = None


class _Details(_Lenient):
    cached_tokens: int | None = None


class _Usage(_Lenient):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Completion(_Lenient):
    model: str | None = None
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def parse_reply(body: bytes) -> Reply:
    """The reply in a response's body, without what it cost.

    Raises:
        ValueError: the body is not an answer of the protocol; the message says why.
    """
    try:
        answer = _read(body)
    except ValidationError as exc:
        raise ValueError(_why(body, exc)) from exc
    choice = answer.choices[0]
    message = choice.message
    content = message.content
    return Reply(
        text=content if isinstance(content, str) else "".join(part.text for part in content or ()),
        tool_calls=tuple(
            ToolCall(id=call.id or f"call_{number}", name=call.function.name, arguments=call.function.arguments)
            for number, call in enumerate(message.tool_calls or ())
        ),
        finish_reason=choice.finish_reason or "",
        refusal=message.refusal or "",
        reasoning=message.reasoning_content or message.reasoning or "",
        model=answer.model or "",
        usage=_usage(answer.usage),
    )


def _read(body: bytes) -> _Completion:
    try:
        return _Completion.model_validate_json(body)
    except ValidationError as exc:
        if exc.errors()[0]["type"] != "json_invalid":
            raise
        # A model whose answer is cut in the middle of a character leaves half of it, which some servers send escaped.
        try:
            whole = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-8", "replace")
        except (ValueError, RecursionError):
            raise exc from None
        return _Completion.model_validate_json(whole)


def _usage(said: _Usage | None) -> Usage | None:
    if said is None or said.prompt_tokens is None or said.completion_tokens is None:
        return None
    if max(said.prompt_tokens, said.completion_tokens) > _MOST_TOKENS:
        return None  # nobody believes it, and no ledger can hold it
    details = said.prompt_tokens_details
    return Usage(
        prompt_tokens=max(0, said.prompt_tokens),
        cached_tokens=max(0, min(said.prompt_tokens, (details.cached_tokens if details else None) or 0)),
        completion_tokens=max(0, said.completion_tokens),
    )


def _why(body: bytes, exc: ValidationError) -> str:
    """What is wrong with a body; a server's own word for it, where it sends an error in place of an answer."""
    first = exc.errors()[0]
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        error = None
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        return f"it sent an error in place of an answer: {str(message)[:200]}"
    if first["type"] == "json_invalid":
        return "what it sent is not JSON"
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
