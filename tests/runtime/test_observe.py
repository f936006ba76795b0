from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime.contract import ToolResult
from envsynth.runtime.observe import character_set, confine, render


@given(st.text(st.characters(), max_size=300), st.integers(20, 200))
def test_confined_text_is_inside_the_set_and_the_limit(text: str, limit: int) -> None:
    confined = confine(text, limit=limit)
    assert character_set().issuperset(confined)
    assert len(confined) <= limit
    if character_set().issuperset(text) and len(text) <= limit:
        assert confined == text


def test_foreign_characters_stay_readable() -> None:
    assert confine("a\x00\x7f\ud800漢😀é\n", limit=100) == "a\\x00\\x7f\\ud800\\u6f22\\U0001f600é\n"


def test_results_are_rendered_for_reading() -> None:
    result = {"exit_code": 1, "output": "a\nb\n", "truncated": False}
    assert render(ToolResult(True, result, "", False)) == "exit_code: 1\noutput:\na\nb\n\ntruncated: false"
    assert render(ToolResult(False, None, "no such file", False)) == "error: no such file"
    assert render(ToolResult(True, [1], "", False)) == "[1]"
    rows = [{"arm": 0, "claimed": 0.7}, {"arm": 1, "claimed": "é"}]
    assert render(ToolResult(True, rows, "", False)) == '{"arm": 0, "claimed": 0.7}\n{"arm": 1, "claimed": "é"}'
    assert render(ToolResult(True, [], "", False)) == "no rows"
    assert render(ToolResult(True, None, "", False)) == "null"
