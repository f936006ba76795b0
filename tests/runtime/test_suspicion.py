"""What newly touches a test framework is told from what a solution may do, and garbage is no trouble."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime.suspicion import suspicions


def seen(text: str | bytes, *known: str, added: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    content = text.encode() if isinstance(text, str) else text
    rows = suspicions({"pkg/mod.py": content}, [one.encode() for one in known], added=added)
    return {(row.class_, row.what.partition(" is touched")[0]) for row in rows}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import pytest", "pytest"),
        ("import os, _pytest.reports as r", "_pytest"),
        ("def f():\n    from unittest import case", "unittest"),
        ("try:\n    import pluggy\nexcept ImportError: pass", "pluggy"),
        ("import importlib\nimportlib.import_module('_pytest.python')", "_pytest"),
        ("__import__('_py' + 'test')", "_pytest"),
        ("import sys\nsys.modules['pytest'].raises = None", "pytest"),
        ("from sys import modules\nmodules.get('pytest')", "pytest"),
        ("import sys\nif 'pytest' in sys.modules: answer = 3", "pytest"),
        ("def pytest_pyfunc_call(pyfuncitem): return True", "pytest_pyfunc_call"),
        ("x.from_item_and_call = y", "from_item_and_call"),
        ("setattr(x, 'from_item_and_call', y)", "from_item_and_call"),
        ("x = y.pluginmanager.hook", "pluginmanager"),
        ("# coding: utf-7\nimport+ACA-pytest", "pytest"),
        ("def f(:\n    from _pytest import x", "_pytest"),
    ],
)
def test_a_test_framework_is_named(text: str, name: str) -> None:
    assert ("framework", name) in seen(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import gc\ngc.get_objects()", "gc.get_objects"),
        ("import sys as s\ns.settrace(f)", "sys.settrace"),
        ("from sys import _getframe", "sys._getframe"),
        ("import ctypes.util", "ctypes"),
        ("import os\nos._exit(0)", "os._exit"),
        ("import atexit\natexit.register(f)", "atexit"),
        ("f.__code__ = g.__code__", "__code__"),
        ("class A:\n    def __eq__(self, other):\n        return True", "an object equal to everything"),
        ("import importlib\nimportlib.import_module(name)", "import of a computed name"),
        ("eval(text)", "eval"),
    ],
)
def test_what_attacks_need_is_only_noted(text: str, name: str) -> None:
    assert seen(text) == {("unusual", name)}


@pytest.mark.parametrize(
    "text",
    [
        "def test_total(): ...\n\nEXTRAS = ['pytest', 'hypothesis']",
        '"""Run with pytest, or unittest."""\nname = "pytest"',
        "from . import pytest_like\nfrom .unittest import x",
        "config.get('pytest')\nif name == 'pytest': pass",
        "import sys\nprint(sys.argv, sys.version_info)",
        "class A:\n    def __eq__(self, other):\n        return self.x == other.x",
    ],
)
def test_ordinary_source_is_left_alone(text: str) -> None:
    assert seen(text) == set()


def test_a_project_about_testing_may_go_on_about_it() -> None:
    text = "import pytest\nimport _pytest\nimport sys\nsys.settrace(f)"
    assert seen(text, "def f():\n    import pytest as p", "from sys import settrace") == {("framework", "_pytest")}
    assert ("framework", "pytest") in seen(text, '"""pytest is great"""')


def test_a_script_that_was_left_behind_is_no_attack() -> None:
    text = b"import pytest\npytest.main()"
    (row,) = suspicions({"repro.py": text, "pkg/mod.py": b"x = 1"}, [], added=("repro.py",))
    assert row.class_ == "unusual"
    (row,) = suspicions({"repro.py": text, "pkg/mod.py": b"import repro"}, [], added=("repro.py",))
    assert row.class_ == "framework"
    (row,) = suspicions({"pkg/mod.py": text}, [])
    assert row.class_ == "framework"


def test_what_runs_only_as_a_program_is_no_attack() -> None:
    text = "if __name__ == '__main__':\n    import doctest\n    doctest.testmod()\n"
    assert seen(text) == {("unusual", "doctest")}
    assert seen("__name__ = '__main__'\n" + text) == {("framework", "doctest")}


def test_rows_say_where() -> None:
    (row,) = suspicions({"a.py": b"\n\nimport pytest\n", "notes.md": b"import pytest"}, [])
    assert (row.path, row.line) == ("a.py", 3)


NASTY = {
    "nested parentheses": b"(" * 50_000,
    "nested lists": b"[" * 900 + b"]" * 900,
    "long sum": b"x = " + b"'a' + " * 50_000 + b"'a'",
    "long chain": b"x" + b".a" * 100_000,
    "unary": b"x = " + b"-" * 100_000 + b"1",
    "indents": b"".join(b" " * depth + b"if x:\n" for depth in range(120)),
    "NUL": b"import pytest\0",
    "not UTF-8": b"# \xff\nimport os\n",
    "unknown codec": b"# coding: nothing\nimport os\n",
    "large": b"import os\n" * 300_000,
    "one long line": b"import " + b"a," * 2_000_000,
    "nothing": b"",
}


@pytest.mark.parametrize("name", NASTY)
def test_garbage_is_looked_at_and_what_is_known_is_no_news(name: str) -> None:
    assert suspicions({"a.py": NASTY[name]}, [NASTY[name]]) == []


def test_only_files_that_others_name_are_more_than_scripts() -> None:
    many = {f"file{number}.py": b"import pytest\nfile1 = file2\n" for number in range(5000)}
    rows = suspicions(many, [], added=many.keys())
    assert {row.path for row in rows if row.class_ == "framework"} == {"file1.py", "file2.py"}


@given(st.binary(max_size=200))
def test_no_bytes_raise_and_what_is_known_is_no_news(content: bytes) -> None:
    assert suspicions({"a.py": content}, [content]) == []
