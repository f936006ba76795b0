"""What goes to a model and what comes back, in the shape of the chat-completions protocol."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, JsonValue

from envsynth.models.base import Model, canonical_json

__all__ = ["Message", "Reply", "Tool", "ToolCall", "Usage", "assistant", "system", "tool_result", "user"]


class ToolCall(Model):
    """One call that a model made."""

    id: str
    """Name that the tool's result refers to."""
    name: str
    """Name of the tool."""
    arguments: str
    """The arguments as the model wrote them: a JSON object, where the call is well-formed."""

    def parsed(self) -> dict[str, JsonValue] | None:
        """The arguments, or None where they are not a JSON object (an empty text counts as no arguments)."""
        try:
            arguments = json.loads(self.arguments or "{}", parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return None
        return arguments if isinstance(arguments, dict) else None


class Message(Model):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of an assistant's turn."""
    tool_call_id: str = ""
    """Of a tool's turn: the call that it answers."""

    def wire(self) -> dict[str, Any]:
        """The turn as the protocol has it."""
        turn: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            turn["content"] = self.content or None
            turn["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.role == "tool":
            turn["tool_call_id"] = self.tool_call_id
        return turn


def system(content: str) -> Message:
    """A system turn."""
    return Message(role="system", content=content)


def user(content: str) -> Message:
    """A user's turn."""
    return Message(role="user", content=content)


def assistant(content: str) -> Message:
    """An assistant's turn of text alone."""
    return Message(role="assistant", content=content)


def tool_result(call: ToolCall, content: str) -> Message:
    """A tool's answer to a call."""
    return Message(role="tool", content=content, tool_call_id=call.id)


def _no_arguments() -> dict[str, JsonValue]:
    return {"type": "object", "properties": {}}


class Tool(Model):
    """A tool that a model may call."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=_no_arguments)
    """JSON Schema of the arguments."""

    def wire(self) -> dict[str, Any]:
        """The tool as the protocol has it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


class Usage(Model):
    """Tokens of one call."""

    prompt_tokens: int = Field(default=0, ge=0)
    """Tokens of the prompt, cached ones included."""
    cached_tokens: int = Field(default=0, ge=0)
    """Tokens of the prompt that the endpoint had at hand, and sells cheaper."""
    completion_tokens: int = Field(default=0, ge=0)
    """Tokens of the answer, reasoning included."""


class Reply(Model):
    """A model's answer, whether it is of use or not."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    """`stop`, `length`, `tool_calls` or `content_filter`; empty where the endpoint does not say."""
    refusal: str = ""
    """The endpoint's own word for a refusal, where it has one."""
    reasoning: str = ""
    """What a reasoning model thought aloud, where the endpoint tells."""
    model: str = ""
    """The model that answered, by the endpoint's own word."""
    usage: Usage | None = None
    """None: the endpoint does not say."""
    cost_usd: float | None = None
    """US dollars spent on this call; 0 from the cache, None where prices or usage are not known."""
    seconds: float = 0.0
    """Time to the whole answer; from the cache, of the first time."""
    cached: bool = False
    """Whether no call was made."""

    @property
    def message(self) -> Message:
        """The assistant's turn, to go on with."""
        return Message(role="assistant", content=self.text, tool_calls=self.tool_calls)

    @property
    def output(self) -> str:
        """Everything that the model wrote for us, as one text."""
        calls = canonical_json([call.document() for call in self.tool_calls]) if self.tool_calls else ""
        return "\n".join(part for part in (self.text, calls, self.refusal) if part)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
