"""What people type, as calls."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.cli._call_lines import Misread, read_call


def tool(name: str, required: tuple[str, ...] = (), **schemas: dict) -> dict:
    return {"name": name, "description": "", "parameters": {"properties": schemas, "required": list(required)}}


INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
TOOLS = [
    tool("view"),
    tool("pull", ("arm",), arm={"type": "integer", "enum": [0, 1]}),
    tool("refund", ("order_id", "cents", "note"), order_id=INTEGER, cents={"type": "integer", "minimum": 1}, note=TEXT),
    tool("find_people", ("text",), text=TEXT, limit=INTEGER),
    tool("set_price", ("price",), price={"type": "number"}, urgent={"type": "boolean"}),
    tool("set_mode", ("mode",), mode={"type": "string", "enum": ["Slow", "fast lane"]}),
    tool("submit", ("plan",), plan=TEXT),
]


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("view", "view", {}), ("1", "view", {}), ("1.", "view", {}), ("VIEW", "view", {}), ("view()", "view", {}),
        ("pull arm=1", "pull", {"arm": 1}), ("pull 1", "pull", {"arm": 1}), ("2 1", "pull", {"arm": 1}),
        ("2. arm = 1", "pull", {"arm": 1}), ("pull(arm=1)", "pull", {"arm": 1}), ("pu 0", "pull", {"arm": 0}),
        ('pull {"arm": 1}', "pull", {"arm": 1}), ('{"tool": "pull", "arguments": {"arm": 1}}', "pull", {"arm": 1}),
        ('{"tool": "view"}', "view", {}), ('pull {"arm": "x"}', "pull", {"arm": "x"}),
        ("refund 101 4655 'lamp returned'", "refund", {"order_id": 101, "cents": 4655, "note": "lamp returned"}),
        ("refund 101, 4655, late", "refund", {"order_id": 101, "cents": 4655, "note": "late"}),
        ("refund(101, 4655, lamp came back)", "refund", {"order_id": 101, "cents": 4655, "note": "lamp came back"}),
        ("refund 101 4655 lamp came back", "refund", {"order_id": 101, "cents": 4655, "note": "lamp came back"}),
        ("refund note=lamp came back cents=4655 order_id=101", "refund",
         {"order_id": 101, "cents": 4655, "note": "lamp came back"}),
        ('refund note="a = b" 101 4655.0', "refund", {"order_id": 101, "cents": 4655, "note": "a = b"}),
        (r'refund 1 2 "say \"hi\""', "refund", {"order_id": 1, "cents": 2, "note": 'say "hi"'}),
        ("find-people Mina Ito", "find_people", {"text": "Mina Ito"}),
        ("find_people 'Mina Ito'", "find_people", {"text": "Mina Ito"}),
        ("find_people text=Mina Ito limit=3", "find_people", {"text": "Mina Ito", "limit": 3}),
        ("find_people ls -la | head; X=1", "find_people", {"text": "ls -la | head; X=1"}),
        ("set_price 2.5 yes", "set_price", {"price": 2.5, "urgent": True}),
        ("set_price price=-3 urgent=off", "set_price", {"price": -3, "urgent": False}),
        ("set_mode slow", "set_mode", {"mode": "Slow"}), ('set_mode "fast lane"', "set_mode", {"mode": "fast lane"}),
        ('submit plan=[{"day": 1, "q": [2, 3]}]', "submit", {"plan": '[{"day": 1, "q": [2, 3]}]'}),
        ('submit [{"day": 1}, {"day": 2}]', "submit", {"plan": '[{"day": 1}, {"day": 2}]'}),
    ],
)  # fmt: skip
def test_lines_that_are_calls(line: str, name: str, arguments: dict) -> None:
    assert read_call(line, TOOLS) == (name, arguments)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("vew", "there is no tool 'vew'; did you mean view?"),
        ("zzz 1", "there is no tool 'zzz'; there are view, pull"),
        ("set 1", "'set' may be set_price or set_mode: type more of it"), ("9", "there is no tool '9'"),
        ("???", "begins with a tool's name"),
        ("view 3", "view takes no arguments"),
        ("pull", "pull needs arm (0 or 1)"),
        ("pull 7", "arm must be 0 or 1, not '7'"), ("pull 0 1", "'1' is one value too many for pull"),
        ("pull arm=0 arm=1", "arm is given twice"), ("pull leg=1", "pull has no parameter 'leg', but arm"),
        ("refund 101", "refund needs cents (a whole number from 1), note (text)"),
        ("refund x 1 y", "order_id must be a whole number, not 'x'"),
        ("refund 1.5 1 y", "order_id must be a whole number"),
        ("refund 1 2 note=a b=c", "refund has no parameter 'b'"), ("set_price nan", "price must be a number"),
        ("set_price 1 maybe", "urgent must be yes or no, not 'maybe'"),
        ("set_mode s", "mode must be Slow or fast lane"),
        ('submit plan=[{"day": 1', "a list is JSON"),
        ('{"tool": "pull"', "that is no JSON"),
        ("pull {arm: 1}", "that is no JSON"),
        ('{"name": "pull"}', 'a call in JSON is {"tool"'), ('{"tool": "view", "x": 1}', "and nothing else"),
        ("refund " + "9" * 5000 + " 1 x", "order_id must be a whole number"),
    ],
)  # fmt: skip
def test_every_other_line_is_one_clear_sentence(line: str, why: str) -> None:
    with pytest.raises(Misread) as caught:
        read_call(line, TOOLS)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


LIKE_CALLS = st.from_regex(r"(refund|pull|2|set_price)[ (={\[\"'a-z0-9,]{0,30}", fullmatch=True)


@given(st.text(min_size=1, max_size=60).filter(str.strip) | LIKE_CALLS)
def test_no_line_does_anything_else(line: str) -> None:
    with suppress(Misread):
        call = read_call(line, TOOLS)
        assert call.tool in {tool["name"] for tool in TOOLS}
        json.dumps(call.arguments)


@given(st.integers(-(10**9), 10**9), st.text(st.characters(codec="utf-8"), min_size=1))
def test_what_is_quoted_arrives_as_it_is(number: int, text: str) -> None:
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    expected = {"order_id": number, "cents": 5, "note": text}
    assert read_call(f"refund note={quoted} order_id={number} cents=5", TOOLS).arguments == expected
    assert read_call(f"refund {number} 5 {quoted}", TOOLS).arguments == expected
