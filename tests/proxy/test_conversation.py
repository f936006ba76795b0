"""One conversation out of a harness's calls, which may have several threads."""

from __future__ import annotations

from typing import Any

from envsynth.llm import Usage
from envsynth.proxy.conversation import conversation_of, noted_calls
from envsynth.proxy.record import ProxiedCall


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(number: int, messages: list[Any], reply: dict[str, Any], **more: Any) -> ProxiedCall:
    response = {"choices": [{"index": 0, "message": reply, "finish_reason": "stop"}]}
    fields: dict[str, Any] = {
        "number": number, "at": "2026-01-01T00:00:00Z", "seconds": 1.5, "status": 200, "ending": "answered",
        "request": {"model": "m", "messages": messages}, "response": response, "cost_usd": 0.25,
        "usage": Usage(prompt_tokens=10, completion_tokens=3),
    }  # fmt: skip
    return ProxiedCall(**{**fields, **more})


def tool_call(name: str, arguments: str, id: str = "c") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_longest_thread_counts_and_all_are_paid_for() -> None:
    start = [said("system", "s"), said("user", "task")]
    first = said("assistant", "one ", reasoning_content="thinking")
    second = said("assistant", "two")
    calls = [
        call(0, start, first),
        call(1, [said("user", "Give this chat a title.")], said("assistant", "A title")),
        # Sent back without the reasoning and without the blank at the end.
        call(2, [*start, said("assistant", "one"), said("user", "go on")], second),
        call(3, [said("user", "Summarise.")], said("assistant", "x"), cost_usd=None),
        call(4, [said("user", "never answered")], {}, ending="failed", usage=None, cost_usd=None),
    ]
    found = conversation_of(calls)
    assert [one.content for one in found.messages] == ["s", "task", "one", "go on", "two"]
    assert [one.given for one in found.messages] == [False] * 5
    assert (found.answers, found.tokens.prompt, found.tokens.completion, found.seconds) == (4, 40, 12, 6.0)
    assert found.cost_usd is None
    assert conversation_of(calls[:2]).cost_usd == 0.5


def test_a_harness_that_rewrites_its_history_begins_anew_and_its_words_are_given() -> None:
    start = [said("user", "task")]
    calls = [
        call(0, start, said("assistant", "a")),
        call(1, [*start, said("assistant", "a"), said("user", "b")], said("assistant", "c")),
        call(2, [said("user", "What happened: a, b, c."), said("assistant", "I see.")], said("assistant", "d")),
        call(3, [said("user", "What happened: a, b, c."), said("assistant", "I see."), said("assistant", "d"),
                 said("user", "e")], said("assistant", "f")),
        call(4, [said("user", "What happened: a, b, c."), said("assistant", "I see."), said("assistant", "d"),
                 said("user", "e"), said("assistant", "f"), said("user", "g")], said("assistant", "h")),
    ]  # fmt: skip
    found = conversation_of(calls)
    assert [(one.content, one.given) for one in found.messages if one.role == "assistant"] == [
        ("I see.", True), ("d", False), ("f", False), ("h", False),
    ]  # fmt: skip


def test_calls_of_tools_go_with_the_answers_that_follow_them() -> None:
    turn = said("assistant", "", tool_calls=[tool_call("bash", '{"command": "ls"}'), tool_call("look", "no json", "d")])
    start = [said("user", "task")]
    after = [*start, turn, said("tool", "files", tool_call_id="c"), said("tool", "seen", tool_call_id="d")]
    again = said("assistant", "", tool_calls=[tool_call("bash", '{"command": "pwd"}'), tool_call("lost", "{}", "e")])
    parts = [{"type": "text", "text": "/work"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    last = [*after, again, said("tool", parts, tool_call_id="c")]
    calls = [call(0, start, turn), call(1, after, again), call(2, last, said("assistant", "done"))]
    found = conversation_of(calls)
    assert [tuple(one) for one in noted_calls(found.messages)] == [
        ("bash", '{"command": "ls"}', "files"), ("look", "no json", "seen"),
        ("bash", '{"command": "pwd"}', "/work[image_url]"),
    ]  # fmt: skip


def test_nothing_answered_is_no_conversation() -> None:
    assert conversation_of([call(0, [], {}, ending="failed")]).messages == ()
