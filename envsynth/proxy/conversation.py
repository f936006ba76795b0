"""What a harness's calls come to as one conversation: the longest in which each call goes on from an earlier answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from envsynth.llm._wire import parse_reply
from envsynth.models import ChatCall, ChatMessage, ChatTool, Tokens, canonical_json
from envsynth.proxy.record import ProxiedCall
from envsynth.runtime.contract import JSON

__all__ = ["Conversation", "Noted", "conversation_of", "noted_calls"]

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class Conversation(NamedTuple):
    """The main thread of a run."""

    messages: tuple[ChatMessage, ...] = ()
    """Assistants' turns that the harness made up, such as examples, are marked as given."""
    tools: tuple[ChatTool, ...] = ()
    """Offered in its last call."""
    tokens: Tokens = Tokens()
    """Of all threads."""
    cost_usd: float | None = 0.0
    """Of all threads; None: not known."""
    answers: int = 0
    """Of all threads."""
    seconds: float = 0.0
    """Waited for answers, of all threads; calls that were under way at once count each."""


class Noted(NamedTuple):
    """A call of a tool that the model made and the harness answered."""

    tool: str
    arguments: JSON
    result: str


class _Turn(NamedTuple):
    """A call, as far as the thread goes."""

    messages: list[ChatMessage]
    reply: ChatMessage
    tools: tuple[ChatTool, ...]
    length: int
    """Turns of the model in the thread that ends with it."""
    made: frozenset[str]
    """Those turns."""


def conversation_of(calls: Sequence[ProxiedCall]) -> Conversation:
    """The main thread of the calls that were answered, and what all of them took.

    Args:
        calls: in the order of arrival.
    """
    turns: list[_Turn] = []
    tokens, seconds = Tokens(), 0.0
    costs: list[float | None] = []
    for call in calls:
        if call.ending != "answered" or not isinstance(call.request, dict):
            continue
        turns.append(_turn(call, turns))
        seconds += call.seconds
        costs.append(call.cost_usd)
        if call.usage is not None:
            tokens = Tokens(
                prompt=tokens.prompt + call.usage.prompt_tokens, cached=tokens.cached + call.usage.cached_tokens,
                completion=tokens.completion + call.usage.completion_tokens,
            )  # fmt: skip
    if not turns:
        return Conversation()
    last = max(reversed(turns), key=lambda turn: turn.length)
    said = [
        one.model_copy(update={"given": one.role == "assistant" and _shape(one) not in last.made})
        for one in last.messages
    ]
    cost = None if None in costs else sum(one or 0.0 for one in costs)
    return Conversation((*said, last.reply), last.tools, tokens, cost, len(turns), seconds)


def noted_calls(messages: Sequence[ChatMessage]) -> list[Noted]:
    """The calls of tools in a conversation, each with the harness's answer to it.

    Some endpoints use an id again in every turn, so a call is answered before anybody else speaks, or not at all.
    """
    found = []
    for place, one in enumerate(messages):
        if one.role == "assistant" and not one.given:
            after = takewhile(lambda following: following.role == "tool", messages[place + 1 :])
            answers = {answer.tool_call_id: answer.content for answer in after}
            answered = [call for call in one.tool_calls if call.id in answers]
            found += [Noted(call.name, call.arguments, answers[call.id]) for call in answered]
    return found


def _turn(call: ProxiedCall, earlier: Sequence[_Turn]) -> _Turn:
    request: Mapping[str, Any] = call.request if isinstance(call.request, dict) else {}
    messages = [_message(one) for one in request.get("messages", ()) if isinstance(one, dict)]
    reply = parse_reply(canonical_json(call.response).encode())
    calls = tuple(ChatCall(id=one.id, name=one.name, arguments=one.arguments) for one in reply.tool_calls)
    said = ChatMessage(role="assistant", content=reply.text, tool_calls=calls, reasoning=reply.reasoning)
    before = next((turn for turn in reversed(earlier) if _goes_on(messages, turn)), None)
    made = frozenset([_shape(said)]) | (before.made if before is not None else frozenset())
    return _Turn(messages, said, _tools(request), 1 if before is None else before.length + 1, made)


def _goes_on(messages: Sequence[ChatMessage], turn: _Turn) -> bool:
    """Whether a call's messages are an earlier call's, its answer, and more."""
    known = [*turn.messages, turn.reply]
    if len(messages) <= len(known):
        return False
    return all(_shape(one) == _shape(other) for one, other in zip(messages, known, strict=False))


def _shape(message: ChatMessage) -> str:
    """What is the same of a turn when a harness sends it back: reasoning is often left out, and blanks at the end."""
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    return canonical_json([message.role, message.content.strip(), calls])


def _message(said: Mapping[str, Any]) -> ChatMessage:
    calls = said.get("tool_calls")
    return ChatMessage.model_validate(
        {
            "role": _ROLES.get(str(said.get("role")), "user"), "content": _text(said.get("content")),
            "tool_calls": [_call(one) for one in calls if isinstance(one, dict)] if isinstance(calls, list) else [],
            "tool_call_id": str(said.get("tool_call_id") or ""),
        }
    )  # fmt: skip


def _call(said: Mapping[str, Any]) -> dict[str, str]:
    function = said.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    return {
        "id": str(said.get("id") or ""), "name": str(function.get("name") or ""),
        "arguments": arguments if isinstance(arguments, str) else canonical_json(arguments or {}),
    }  # fmt: skip


def _text(content: Any) -> str:
    """The text of a message; parts that are no text are named."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        str(part.get("text", "")) if part.get("type", "text") == "text" else f"[{part.get('type')}]"
        for part in parts
        if isinstance(part, dict)
    )


def _tools(request: Mapping[str, Any]) -> tuple[ChatTool, ...]:
    tools = request.get("tools")
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return tuple(
        ChatTool.model_validate(
            {
                "name": str(one.get("name") or ""), "description": str(one.get("description") or ""),
                "parameters": one.get("parameters") if isinstance(one.get("parameters"), dict) else {},
            }
        )
        for one in functions
        if isinstance(one, dict)
    )  # fmt: skip
