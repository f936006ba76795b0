"""Commit messages: what is kept describes behaviour, what is dropped is about the work."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.generators.repository.message import clean, read_message, title_sentence


def body(message: str) -> str:
    return "\n".join(read_message(message, lambda _: True).body)


TRAILERS = [
    "Signed-off-by: A B <a.b@example.org>",
    "Co-authored-by: C <1234+c@users.noreply.github.com>",
    "Reviewed-by: D",
    "Change-Id: I0123456789abcdef",
    "Closes #90",
    "Fixes: #12, #13",
    "fixes gh-261",
    "See https://example.org/pull/7",
    "(cherry picked from commit 0123456789abcdef0123456789abcdef01234567)",
    "Workstream-Session-Id: 01a0106e-73be-7000",
]


@pytest.mark.parametrize("trailer", TRAILERS)
def test_trailers_go(trailer):
    assert body(f"Fix a thing\n\nThe parser failed when the input was empty.\n\n{trailer}") == (
        "The parser failed when the input was empty."
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("It failed for empty input (#261). Always.", "It failed for empty input. Always."),
        ("It raised TypeError, see #12, when called.", "It raised TypeError, when called."),
        ("It crashed since 0f1e2d3c4b with no input.", "It crashed with no input."),
        ("Call `f()` and it returns **nothing** at all.", "Call `f()` and it returns nothing at all."),
        ("`__eq__` of a mapping returned the wrong thing.", "`__eq__` of a mapping returned the wrong thing."),
        ("Ask me@example.org why it failed on Mondays.", "Ask why it failed on Mondays."),
    ],
)
def test_numbers_links_hashes_and_emphasis_go(said, kept):
    assert clean(f"Title\n\n{said}").split("\n\n")[1].split(" Always")[0] == kept.split(" Always")[0]


@pytest.mark.parametrize(
    "sentence",
    [
        "Use sep in both functions instead of a constant.",
        "Adds test_args2sh_sep and test_args2cmd_sep to show the error.",
        "This commit moves the check before the loop so it never fails.",
        "The value is computed by iterating over the copy when it is missing.",
        "Replace the regex with fullmatch so that it never matches too much.",
        "I noticed this error when running the docs build.",
        "The helper _align_to_newline never checked for the end of file.",
        "Fix: add an elif guard before the final fallback that returns the word.",
        "The correct solution is to return early when the list is empty.",
    ],
)
def test_sentences_about_the_work_or_the_inside_go(sentence):
    assert body(f"Fix a thing\n\n{sentence}") == ""


def test_what_happens_and_what_should_happen_stays():
    message = (
        "fix(strutils): bytes2human rolls over (#1)\n\n"
        "bytes2human(1024) returned '1024B' instead of '1K', because the unit-selection loop compared the value\n"
        "with '<=' against each boundary. Use '<' so bounds advance. Negative and zero values are left unchanged.\n\n"
        "Adds a regression test."
    )
    assert (
        body(message)
        == "bytes2human(1024) returned '1024B' instead of '1K'. Negative and zero values are left unchanged."
    )


def test_lists_keep_the_entries_about_behaviour():
    message = (
        "Fix crashes\n\n- tables with fewer headers than columns raised IndexError; short rows are\n"
        "  now padded\n- update changelog\n- refactor the helper\n"
    )
    assert body(message) == "tables with fewer headers than columns raised IndexError; short rows are now padded."


@pytest.mark.parametrize(
    ("title", "sentence"),
    [
        ("Fix off-by-one in Bits length check", "There is an off-by-one in Bits length check."),
        ("fix: crashes when the list is empty", ""),
        ("Fixed crashes when the list is empty (#3)", "There are crashes when the list is empty."),
        ("Fix split maxsplit zero handling", "Split maxsplit zero handling does not work as it should."),
        ("Fix copy collapsing values", "There is a bug: copy collapsing values."),
        ("feat(strutils): add human_readable_list function", "Add human_readable_list function."),
        ("setutils: accept os.PathLike in Saver", "Accept os.PathLike in Saver."),
        ("fix: back_off with factor=1.0 raised ZeroDivision", "back_off with factor=1.0 raised ZeroDivision."),
        ("Use the sep argument in args2sh", ""),
        ("Refactor pager", ""),
        ("Add tests", ""),
        ("Fix typo in _Inner comparisons", ""),
        ("wip", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_titles_become_requests_or_reports(title, sentence):
    assert title_sentence(clean(title)) == sentence


def test_a_sentence_that_may_not_be_told_is_left_out():
    message = "Fix it\n\nThe cache returned a stale value. It always failed when secret_name was set."
    prose = read_message(message, lambda sentence: "secret_name" not in sentence)
    assert prose.body == ("The cache returned a stale value.",)


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=40)
noise = st.sampled_from(
    ["#123", "(#4)", "fixes #5", "a.b@example.org", "<x+y@users.noreply.github.com>", "https://example.org/pull/9",
     "0123456789abcdef0123456789abcdef01234567", "Signed-off-by: A <a@example.org>", "\n", "\n\n", "gh-77", ". "]
)  # fmt: skip


@given(st.lists(st.one_of(words, noise), max_size=12).map(" ".join))
def test_nothing_of_people_numbers_or_links_survives(message):
    prose = read_message(message, lambda _: True)
    text = "\n".join([prose.title, *prose.body])
    assert "https://example.org" not in text
    assert "@example.org" not in text
    assert "noreply" not in text
    assert "0123456789abcdef0123456789abcdef01234567" not in text
    assert not re.search(r"(?<![\w/&])#(123|4|5)\b", text)
    assert read_message(message, lambda _: True) == prose


@given(words)
def test_cleaning_twice_changes_nothing_more(message):
    once = clean(message)
    assert clean(once) == once
