from __future__ import annotations

import pytest

from envsynth.validators.world_readback.script import BadScript, failures, read_tests

GOOD = '''"""Reads back."""

def same(rows, *names):
    """Rows without names."""
    return [{name: row[name] for name in row if name not in names} for row in rows]

def test_one(call):
    assert same(call("list", order=7), "id") == [{"cents": 5}]

def test_two(call):
    assert len(call("list", order=8)) >= 1
'''


def answers(**results: object) -> object:
    return lambda tool, **arguments: results[f"{tool}_{arguments['order']}"]


def test_tests_hold_or_fail_by_what_is_read() -> None:
    tests = read_tests(GOOD)
    right = answers(list_7=[{"id": 3, "cents": 5}], list_8=[{}])
    wrong = answers(list_7=[{"id": 3, "cents": 6}], list_8=[])
    assert list(failures(tests, right)) == []  # type: ignore[arg-type]
    assert [one.test for one in failures(tests, wrong)] == ["test_one", "test_two"]  # type: ignore[arg-type]


def test_a_missing_row_is_a_failure_and_no_crash() -> None:
    tests = read_tests("def test_row(call):\n    assert call('show')[0]['cents'] == 5\n")
    assert [one.message for one in failures(tests, lambda tool: [])] == ["IndexError: list index out of range"]
    assert [one.message for one in failures(tests, lambda tool: [{}])] == ["KeyError: 'cents'"]


@pytest.mark.parametrize(
    "body",
    [
        "import os",
        "from os import system",
        "x = 1",
        "def test_a(call):\n    call.__class__",
        "def test_a(call):\n    __import__('os')",
        "def test_a(call):\n    'x'.format(call)",
        "def test_a(call):\n    while True:\n        call('a')",
        "def test_a(call):\n    call('a') if call('b') else (lambda: 1)()",
        "@call\ndef test_a(call):\n    assert 1",
        "class A:\n    pass",
        "def test_a(call):\n    try:\n        assert 0\n    except AssertionError:\n        pass",
        "def test_a(call, _x=1):\n    assert 1",
        "def test_a(call):\n    assert [1] * 10**9",
        "def helper():\n    return 1",
        "def test_a(call:\n",
        "",
    ],
)
def test_what_no_read_back_may_do_is_refused(body: str) -> None:
    with pytest.raises(BadScript):
        read_tests(body)


def test_names_that_are_not_given_are_not_there() -> None:
    tests = read_tests("def test_a(call):\n    assert open('x')\n")
    assert [one.message for one in failures(tests, lambda tool: [])] == ["NameError: name 'open' is not defined"]


def test_arithmetic_that_fails_is_a_failure_and_no_crash() -> None:
    tests = read_tests("def test_endless(call):\n    assert int(float('inf')) == 1\n")
    assert [one.message[:13] for one in failures(tests, lambda tool: [])] == ["OverflowError"]
    with pytest.raises(BadScript, match="cannot be defined"):
        read_tests("def test_default(call, number=int('x')):\n    assert number\n")
