"""What a harness may ask the solver's endpoint: a chat completion, and nothing that leads anywhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from envsynth.llm.settings import RoleSettings
from envsynth.proxy.record import tame

__all__ = ["Asked", "Refused", "asked_of"]

_FIELDS = frozenset(
    {
        "chat_template_kwargs", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
        "max_completion_tokens", "max_tokens", "messages", "min_p", "n", "parallel_tool_calls", "presence_penalty",
        "reasoning_effort", "repetition_penalty", "response_format", "seed", "stop", "stream", "stream_options",
        "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "verbosity",
    }
)  # fmt: skip
"""Parameters that go through. Others are left out: some have the endpoint search the web, keep what it is sent, or cost
more."""
_LIMITS = ("max_tokens", "max_completion_tokens")
_PARTS = {
    "text": {"text"}, "refusal": {"refusal"}, "image_url": {"image_url"}, "input_audio": {"input_audio"},
    "thinking": {"thinking", "signature"},
}  # fmt: skip
"""Kinds of parts of a message that bring their content along, with what each may have beside its kind. Some servers
fetch whatever a part names, whatever its kind says, and take one without a kind for what it names."""
_MOST_CHOICES = 16


class Refused(Exception):
    """A request that is not forwarded.

    Args:
        status: HTTP status.
        code: what is wrong, in one word.
        message: what is wrong, for the harness's log.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def body(self) -> bytes:
        """The response in the protocol's form."""
        error = {"message": f"envsynth proxy: {self.message}", "type": "proxy_error", "param": None, "code": self.code}
        return json.dumps({"error": error}).encode()


class Asked(NamedTuple):
    """A request as it is forwarded."""

    body: dict[str, Any]
    """With the solver's model."""
    left_out: tuple[str, ...]
    """Parameters of the harness's that are not forwarded."""
    stream: bool
    told_usage: bool
    """Of a stream: whether the harness asked for the event that tells the usage."""
    most_tokens: int
    """Completion tokens that the answer cannot exceed, all choices together."""

    @property
    def content(self) -> bytes:
        """The body in bytes."""
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", "replace")


def asked_of(content: bytes, settings: RoleSettings, limit_name: str) -> Asked:
    """What is forwarded of a request.

    Args:
        content: the body as the harness sent it.
        settings: the solver's. What the harness leaves open is as there; its model's name is never heard.
        limit_name: what the endpoint calls the limit of an answer's tokens, where the harness names none.

    Raises:
        Refused: it is no chat completion, or would have the endpoint fetch something.
    """
    try:
        said = tame(json.loads(content))
    except (ValueError, RecursionError):
        # Not the endpoint's failure: who asks could else call off an attempt that goes badly.
        raise Refused(400, "bad_request", "the body is not JSON, or nested too deep") from None
    if not isinstance(said, dict) or not isinstance(said.get("messages"), list):
        raise Refused(400, "bad_request", "the body holds no messages")
    if not all(isinstance(message, dict) for message in said["messages"]):
        raise Refused(400, "bad_request", "a message is no object")
    if not isinstance(said.get("tools"), list | None):
        raise Refused(400, "bad_request", "tools is no list")
    for where in _outside(said):
        raise Refused(400, "not_forwarded", f"{where} would have the endpoint reach something else than its model")
    body = {name: value for name, value in said.items() if name in _FIELDS}
    body["model"] = settings.model
    sampling = settings.sampling
    for name, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p), ("seed", sampling.seed)):
        if value is not None:
            body.setdefault(name, value)
    if all(body.get(name) is None for name in _LIMITS):
        body[limit_name] = sampling.max_tokens
    stream, told_usage = body.get("stream") is True, True
    if stream:
        options = body.get("stream_options")
        options = options if isinstance(options, dict) else {}
        told_usage = options.get("include_usage") is True
        body["stream_options"] = {**options, "include_usage": True}
    left_out = tuple(sorted(said.keys() - _FIELDS - {"model"}))
    return Asked(body, left_out, stream, told_usage, _most_tokens(body))


def _most_tokens(body: Mapping[str, Any]) -> int:
    limits: list[int] = [body[name] for name in _LIMITS if body.get(name) is not None]
    choices: int = 1 if body.get("n") is None else body["n"]
    for number, most in [(choices, _MOST_CHOICES), *((limit, 10**9) for limit in limits)]:
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            raise Refused(400, "bad_request", "n, max_tokens or max_completion_tokens is no number of use")
    return choices * max(limits)


def _outside(said: Mapping[str, Any]) -> Iterator[str]:
    """Places of a request that make the endpoint fetch or run something: hosted tools, and content by address."""
    for number, tool in enumerate(said.get("tools") or ()):
        if not isinstance(tool, dict) or tool.get("type") not in ("function", "custom"):
            yield f"tools[{number}]"
    for number, message in enumerate(said["messages"]):
        content = message.get("content")
        parts = content if isinstance(content, list) else [] if isinstance(content, str | None) else [content]
        if not all(isinstance(part, str) or (isinstance(part, dict) and _is_here(part)) for part in parts):
            yield f"messages[{number}].content"


def _is_here(part: Mapping[str, Any]) -> bool:
    """Whether a part of a message brings its content along."""
    kind = part.get("type")
    if not isinstance(kind, str) or not part.keys() <= {"type", "cache_control"} | _PARTS.get(kind, set()):
        return False
    if kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return isinstance(url, str) and url.startswith("data:")
    return kind in _PARTS
