"""Calls that a model writes as text."""

from __future__ import annotations

import pytest

from envsynth.runtime.dialogue import Call, NoCall, calls_in, calls_of


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_of_json_is_no_call(number: str) -> None:
    # As in every other hand that a call goes through: what one takes for a call another would end the episode for.
    with pytest.raises(NoCall):
        calls_in(f'<tool_call>{{"name": "pay", "arguments": {{"sum": {number}}}}}</tool_call>')
    with pytest.raises(NoCall):
        calls_of(f'[{{"name": "pay", "arguments": {{"sum": {number}}}}}]')


def test_words_that_look_so_are_texts() -> None:
    call = Call("pay", {"sum": "NaN"})
    assert calls_in('<tool_call>{"name": "pay", "arguments": {"sum": "NaN"}}</tool_call>') == [call]
    assert calls_of('[{"name": "pay", "arguments": {"sum": "NaN"}}]') == [call]
