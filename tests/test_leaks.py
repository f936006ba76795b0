"""What the solution adds is never told, unless the tests demand it or the tree has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.leaks import Change, leaks, secrets_of

BEFORE = "def f(value):\n    return value\n"
AFTER = (
    "def f(value):\n    clamped_value = min(value, 4711)\n    # a comment names nothing\n"
    "    remaining = 'sorted ascending'\n    return clamped_value or remaining\n"
)


@pytest.fixture
def secrets():
    return secrets_of([Change("pkg/a.py", BEFORE, AFTER)], known=BEFORE, told="assert f(5) == 5")


@pytest.mark.parametrize(
    "text",
    [
        "Store it in clamped_value.",
        "It never exceeds 4711.",
        "The result should be 'sorted ascending'.",
        "Set `remaining` first.",
        "Call remaining() first.",
        "do this:   clamped_value  =  min(value, 4711)",
        "```python\nremaining = 1\n```",
    ],
)
def test_identifiers_literals_and_lines_leak(secrets, text):
    assert leaks(text, secrets)


@pytest.mark.parametrize(
    "text",
    ["The remaining values are lost.", "f(5) should be 5.", "It returns the value.", "A comment names nothing.", ""],
)
def test_words_and_known_names_do_not(secrets, text):
    assert leaks(text, secrets) == []


def test_what_the_tests_demand_may_be_told():
    told = "from pkg.a import clamped_value\nassert clamped_value(4711) == 'sorted ascending'"
    secrets = secrets_of([Change("pkg/a.py", BEFORE, AFTER)], known=BEFORE, told=told)
    assert leaks("clamped_value of 4711 is 'sorted ascending'", secrets) == []


def test_what_the_tree_has_may_be_told():
    secrets = secrets_of([Change("pkg/a.py", BEFORE, AFTER)], known=BEFORE + AFTER, told="")
    assert leaks(AFTER, secrets) == []


def test_data_files_count_too():
    secrets = secrets_of([Change("pkg/a.json", "{}", '{"hidden_key": 1}')], known="{}", told="")
    assert leaks("set hidden_key", secrets) == ["hidden_key"]


def test_code_that_is_no_python_is_read_by_words():
    assert leaks("set odd_name", secrets_of([Change("pkg/a.py", "", "odd_name = (\n")], known="", told=""))


names = st.from_regex(r"[a-z]{2,8}_[a-z]{2,8}", fullmatch=True)


@given(names, st.text(max_size=60), st.text(max_size=60))
def test_an_added_identifier_is_found_wherever_it_stands(name, left, right):
    secrets = secrets_of([Change("a.py", "", f"{name} = 0\n")], known="", told="")
    assert name in leaks(f"{left} {name} {right}", secrets)


@given(st.text(max_size=200), st.text(max_size=200))
def test_an_unchanged_file_has_no_secrets(source, text):
    assert leaks(text, secrets_of([Change("a.py", source, source)], known=source, told="")) == []
