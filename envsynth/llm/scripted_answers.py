"""What a scripted model can answer, faults of models and of endpoints included."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from envsynth.llm.messages import Usage

__all__ = [
    "Answer",
    "answer_json",
    "calls",
    "cut",
    "empty",
    "failure",
    "garbage",
    "hang",
    "rate_limited",
    "refusal",
    "text",
    "truncated",
]


_PIECE = 5
"""Characters of an event of a stream."""


class Answer(NamedTuple):
    """One answer. The functions of this module make the usual ones; `_replace` makes the others."""

    message: Mapping[str, JsonValue] | None = None
    """The assistant's message; None: `body` is sent as it is."""
    finish_reason: str = "stop"
    usage: Usage | None = None
    """None: a token for every four characters, of the prompt and of the answer."""
    tells_usage: bool = True
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay: float = 0.0
    """Seconds before the answer; the server's end cuts it short."""
    cut_at: int | None = None
    """Bytes of the body after which the connection is closed; None: it is sent whole."""

    def rendered(self, asked: Mapping[str, Any], model: str) -> bytes:
        """The body of the response."""
        if self.message is None:
            return self.body
        document: dict[str, Any] = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [{"index": 0, "message": dict(self.message), "finish_reason": self.finish_reason}],
        }
        if self.tells_usage:
            document["usage"] = self._told_usage(asked)
        return json.dumps(document).encode()

    def streamed(self, asked: Mapping[str, Any], model: str) -> bytes:
        """The body of the response where `stream` is asked for: an event for each piece of a few characters."""
        if self.message is None:
            return self.body
        head = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": model}
        deltas = [{"role": "assistant"}, *_deltas(self.message)]
        reasons: list[str | None] = [*(None for _ in deltas), self.finish_reason]
        chunks: list[dict[str, Any]] = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in zip([*deltas, {}], reasons, strict=True)
        ]
        if self.tells_usage and (asked.get("stream_options") or {}).get("include_usage"):
            chunks.append({**head, "choices": [], "usage": self._told_usage(asked)})
        return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"

    def _told_usage(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        usage = self.usage or Usage(
            prompt_tokens=_tokens(asked.get("messages")), completion_tokens=_tokens(self.message)
        )  # fmt: skip
        return {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }


def text(content: str, *, usage: Usage | None = None) -> Answer:
    """An answer in words."""
    return Answer({"role": "assistant", "content": content}, usage=usage)


def answer_json(value: JsonValue, *, usage: Usage | None = None) -> Answer:
    """A JSON value, of the wanted schema or not."""
    return text(json.dumps(value), usage=usage)


def calls(*made: tuple[str, JsonValue | str], content: str = "") -> Answer:
    """Calls of tools.

    Args:
        *made: name and arguments of each; arguments that are a text are sent as they are, well-formed or not.
        content: what is said beside them.
    """
    turns: list[JsonValue] = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(made)
    ]
    return Answer({"role": "assistant", "content": content or None, "tool_calls": turns}, "tool_calls")


def refusal(said: str = "I cannot help with that.") -> Answer:
    """The model declines."""
    return Answer({"role": "assistant", "content": None, "refusal": said})


def truncated(content: str = "and then it") -> Answer:
    """An answer that was cut at the token limit."""
    return Answer({"role": "assistant", "content": content}, "length")


def empty() -> Answer:
    """An answer without text or calls."""
    return Answer({"role": "assistant", "content": ""})


def rate_limited(retry_after: float | str | None = None, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    """HTTP 429, with `Retry-After` where one is given."""
    asks = () if retry_after is None else (("Retry-After", str(retry_after)),)
    return failure(429, "too many requests", code="rate_limit_exceeded")._replace(headers=(*asks, *headers))


def failure(status: int = 500, message: str = "it failed", *, code: str | None = None) -> Answer:
    """An HTTP error in the protocol's form."""
    error = {"message": message, "type": "error", "param": None, "code": code}
    return Answer(status=status, body=json.dumps({"error": error}).encode())


def hang(seconds: float = 600.0) -> Answer:
    """No answer for so long, or until the server closes."""
    return text("too late")._replace(delay=seconds)


def cut(after: int = 40) -> Answer:
    """A good answer whose connection is closed after so many bytes of the body."""
    return text("it was going so well")._replace(cut_at=after)


def garbage(body: bytes = b'{"id": "chatcmpl-1", "choices": [{"index"') -> Answer:
    """Status 200 with a body that is no answer, such as broken JSON."""
    return Answer(body=body)


def _deltas(message: Mapping[str, JsonValue]) -> list[dict[str, Any]]:
    """A message in pieces."""
    found: list[dict[str, Any]] = []
    for name in ("content", "refusal"):
        said = message.get(name)
        found += [{name: piece} for piece in _pieces(said if isinstance(said, str) else "")]
    calls: Any = message.get("tool_calls") or []
    for number, call in enumerate(calls):
        function = call["function"]
        begun = {"name": function["name"], "arguments": ""}
        found.append(
            {"tool_calls": [{"index": number, "id": call["id"], "type": "function", "function": begun}]}
        )  # fmt: skip
        found += [
            {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
            for piece in _pieces(function["arguments"])
        ]
    return found


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def _tokens(value: Any) -> int:
    return max(1, len(json.dumps(value)) // 4)
