"""Tool calls in plain text, for trainers that hand over nothing but what a model wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from .contract import JSON

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_THINK, _THOUGHT = "<think>", "</think>"


def _no_number(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_BEGIN, _END = re.compile(re.escape(_OPEN) + r"\s*"), re.compile(r"\s*" + re.escape(_CLOSE))


class Call(NamedTuple):
    """One tool call."""

    tool: str
    arguments: dict[str, JSON]


class NoCall(ValueError):
    """A text that means to call a tool, and does not."""


def listed_tools(tools: Sequence[JSON]) -> str:
    """What a model is told of its tools.

    Args:
        tools: name, description and JSON Schema parameters of each.
    """
    listed = "\n".join(json.dumps({"type": "function", "function": tool}, ensure_ascii=False) for tool in tools)
    return f"You may call tools. They are, in JSON Schema:\n<tools>\n{listed}\n</tools>"


def tools_text(tools: Sequence[JSON]) -> str:
    """What a model is told of its tools and of how to call them in the turns that `calls_in` reads."""
    return (
        f"{listed_tools(tools)}\n"
        f'For each call write {_OPEN}{{"name": NAME, "arguments": {{...}}}}{_CLOSE}. Several are made in order. '
        "An answer without a call ends the task."
    )


def calls_in(text: str) -> list[Call]:
    """The calls of a model's turn, in order; none where it has nothing more to do. Reasoning before is passed over.

    Raises:
        NoCall: a call is not closed, is no JSON, or has no name or no object of arguments.
    """
    spoken, calls = _said(text), []
    begin = _BEGIN.search(spoken)
    while begin is not None:
        # Decoded from where it begins: a mark inside an argument is text.
        try:
            call, end = _DECODER.raw_decode(spoken, begin.end())
        except (ValueError, RecursionError):
            raise NoCall("a call is no JSON") from None
        closed = _END.match(spoken, end)
        if closed is None:
            raise NoCall(f"{_OPEN} without {_CLOSE}")
        calls.append(_checked(call))
        begin = _BEGIN.search(spoken, closed.end())
    return calls


def calls_of(text: str) -> list[Call]:
    """The calls of an answer that is one JSON array `[{"name": …, "arguments": {…}}, …]`, fenced or not.

    Raises:
        NoCall: it is none.
    """
    spoken = _said(text).strip()
    if spoken.startswith("```") and spoken.endswith("```"):
        spoken = spoken.strip("`").removeprefix("json")
    try:
        listed = _DECODER.decode(spoken)
    except (ValueError, RecursionError):
        raise NoCall("the answer is no JSON") from None
    if not isinstance(listed, list):
        raise NoCall("the answer is no JSON array")
    return [_checked(one) for one in listed]


def answer_text(calls: Sequence[Call]) -> str:
    """Calls as `calls_of` reads them."""
    return json.dumps([{"name": call.tool, "arguments": call.arguments} for call in calls], ensure_ascii=False)


def turn_text(calls: Sequence[Call]) -> str:
    """Calls as `calls_in` reads them."""
    written = (json.dumps({"name": call.tool, "arguments": call.arguments}, ensure_ascii=False) for call in calls)
    return "\n".join(f"{_OPEN}{one}{_CLOSE}" for one in written)


def result_text(result: str) -> str:
    """What a model is shown of a call."""
    return f"<tool_response>\n{result}\n</tool_response>"


def _said(text: str) -> str:
    """What comes after the reasoning; chat templates may have opened it already, so that only its end is there."""
    thought = text.find(_THOUGHT)
    opened = text.lstrip().startswith(_THINK)
    if thought < 0 or not (opened or (text.lstrip()[:1] not in ("[", "`") and _OPEN not in text[:thought])):
        return "" if opened else text
    return text[thought + len(_THOUGHT) :]


def _checked(call: JSON) -> Call:
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise NoCall("a call has no name")
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise NoCall("arguments are no object")
    return Call(call["name"], arguments)
