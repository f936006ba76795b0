"""Answers that come in pieces: server-sent events, passed on one by one and put together for the record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["Assembly", "events"]

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
MOST_EVENT_BYTES = 1 << 24


def events(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Whole events, each with the blank line that ends it; what follows the last one comes as it is.

    Raises:
        ValueError: an event has no end.
    """
    kept = b""
    for part in parts:
        kept += part
        while (end := _END.search(kept)) is not None:
            yield kept[: end.end()]
            kept = kept[end.end() :]
        if len(kept) > MOST_EVENT_BYTES:
            raise ValueError("an event has no end")
    if kept:
        yield kept


class Assembly:
    """The completion that the events of a stream come to."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self.error: Any = None
        """What the endpoint sent in place of the rest."""
        self.ended = False
        """Whether it said that this was all."""

    def take(self, event: bytes) -> bool:
        """Take an event in; whether it tells the usage and nothing else."""
        lines = event.decode("utf-8", "replace").splitlines()
        data = "\n".join(line[5:].removeprefix(" ") for line in lines if line.startswith("data:"))
        if data.strip() == "[DONE]":
            self.ended = True
            return False
        try:
            chunk = json.loads(data) if data else None
        except (ValueError, RecursionError):
            return False
        if not isinstance(chunk, dict):
            return False
        if chunk.get("error"):
            self.error = chunk["error"]
        self._head |= {name: chunk[name] for name in ("id", "created", "model") if chunk.get(name) is not None}
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._add(choice)
        if isinstance(chunk.get("usage"), dict):
            self._usage = chunk["usage"]
            return choices == []
        return False

    @property
    def whole(self) -> bool:
        """Whether every choice was finished."""
        finished = [choice["finish_reason"] is not None for choice in self._choices.values()]
        return self.error is None and bool(finished) and all(finished)

    def completion(self) -> dict[str, Any]:
        """What came, in the form of an answer in one piece."""
        found: dict[str, Any] = {**self._head, "object": "chat.completion"}
        found["choices"] = [
            {**choice, "message": _message(choice["message"])} for _, choice in sorted(self._choices.items())
        ]
        found |= {} if self._usage is None else {"usage": self._usage}
        return found if self.error is None else {**found, "error": self.error}

    def _add(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        index = index if isinstance(index, int) else 0
        begun = self._choices.setdefault(
            index, {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None}
        )
        if choice.get("finish_reason") is not None:
            begun["finish_reason"] = choice["finish_reason"]
        delta = choice.get("delta")
        if isinstance(delta, dict):
            _join(begun["message"], delta)


def _join(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for name in _TEXTS:
        if isinstance(delta.get(name), str):
            message[name] = (message.get(name) or "") + delta[name]
    calls = delta.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        if not isinstance(call, dict):
            continue
        known = message.setdefault("tool_calls", {})
        number = call.get("index")
        begun = known.setdefault(
            number if isinstance(number, int) else place,
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        if isinstance(call.get("id"), str):
            begun["id"] = begun["id"] or call["id"]
        function = call.get("function")
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                begun["function"][name] += function[name]


def _message(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    return message if calls is None else {**message, "tool_calls": [calls[number] for number in sorted(calls)]}
