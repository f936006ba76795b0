"""Failing tests as short scripts, and the text around them."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from envsynth.generators.repository.evidence import excerpts_of
from envsynth.generators.repository.excerpt import Failing
from envsynth.generators.repository.instruction import MAX_LENGTH, Material, write
from envsynth.generators.repository.interface import Project, defined_names, demands
from envsynth.generators.repository.said import what_happens
from envsynth.leaks import Change, secrets_of

START = "import os\n\n\ndef grow(n):\n    return n\n\n\nclass Box:\n    def open(self):\n        return 1\n"


@pytest.fixture
def excerpts():
    def make(
        new: str, *tests: str, old: str | None = None, conftest: str | None = None, message: str = "", line: int = 0
    ):
        files = {"tests/test_a.py": dedent(new), "tests/conftest.py": conftest}
        before = {"tests/test_a.py": dedent(old) if old else None, "tests/conftest.py": conftest}
        failing = []
        for test in tests:
            base, _, case = test.partition("[")
            failing.append(
                Failing("tests/test_a.py", tuple(base.split("::")), (case.rstrip("]"),) if case else (), message, line)
            )
        return excerpts_of(failing, files.get, before.get).shown

    return make


def material(found, *, message: str = "x", fix: str = START, functions: tuple[str, ...] = ()) -> Material:
    changes = [Change("pkg/a.py", START, fix)]
    told = "\n".join(excerpt.code for excerpt in found)
    secrets = secrets_of(changes, START, told)
    project = Project({"pkg/a.py": START, "pkg/__init__.py": ""}, ["."])
    return Material(message, found, functions, project, defined_names([fix]), [], secrets, secrets)


def test_a_new_test_is_shown_whole_with_its_imports(excerpts):
    (found,) = excerpts(
        """
        import os
        import pytest
        from pkg.a import grow, Box

        def test_grow():
            # bigger
            assert grow(2) == 3
            with pytest.raises(ValueError):
                grow(-1)
        """,
        "test_grow",
    )
    assert found.code.splitlines()[:2] == ["# bigger", "assert grow(2) == 3"]
    assert {one.statement() for one in found.imports} == {"import pytest", "from pkg.a import grow"}
    ast.parse(found.code)


def test_a_long_changed_test_shows_what_changed_and_what_it_needs(excerpts):
    lines = "\n".join(f"    assert grow({number}) == {number}" for number in range(20))
    old = f"from pkg.a import grow\ndef test_all():\n    base = 1\n    other = 2\n{lines}\n    assert other\n"
    (found,) = excerpts(old + "    twice = grow(base) * 2\n    assert twice == 4\n", "test_all", old=old)
    assert found.code == "base = 1\ntwice = grow(base) * 2\nassert twice == 4"


def test_parametrised_tests_become_loops_over_the_failing_rows(excerpts):
    (found,) = excerpts(
        """
        import pytest
        from pkg.a import grow

        @pytest.mark.parametrize("n, expected", [(1, 2), (-5, 0), ("a", None)])
        def test_grow(n, expected):
            assert grow(n) == expected
        """,
        "test_grow[-5-0]",
    )
    assert found.code == "n, expected = (-5, 0)\nassert grow(n) == expected"
    assert [one.alias for one in found.imports] == ["grow"]


def test_unittest_reads_as_plain_assertions(excerpts):
    (found,) = excerpts(
        """
        import unittest
        from pkg.a import Box, grow

        class TestBox(unittest.TestCase):
            def setUp(self):
                self.box = Box()
                self.unused = 1

            def test_open(self):
                '''Opening a box twice is refused.'''
                self.assertEqual(self.box.open(), 2)
                self.assertIsNone(grow(None), "message")
                with self.assertRaises(ValueError):
                    self.box.open()
        """,
        "TestBox::test_open",
    )
    assert found.heading == "Opening a box twice is refused"
    assert found.code.splitlines() == [
        "box = Box()", "assert box.open() == 2", "assert grow(None) is None", "with pytest.raises(ValueError):",
        "    box.open()",
    ]  # fmt: skip


def test_arguments_that_are_drawn_are_no_fixtures(excerpts):
    (found,) = excerpts(
        """
        from hypothesis import given, strategies as st
        from pkg.a import grow

        @given(st.integers())
        def test_law(number):
            assert grow(number) == number + 1
        """,
        "test_law",
    )
    assert found.fixtures == ()
    assert "st.integers()" in found.code


def test_fixtures_of_one_line_are_written_out(excerpts):
    conftest = "import pytest\nfrom pkg.a import Box\n@pytest.fixture\ndef box(request):\n    return Box()\n"
    (found,) = excerpts("def test_box(box, tmp_path):\n    assert box.open() == 5\n", "test_box", conftest=conftest)
    assert found.code == "box = Box()\nassert box.open() == 5"
    assert [one.statement() for one in found.imports] == ["from pkg.a import Box"]
    assert found.fixtures == ()


def test_new_helpers_come_along(excerpts):
    (found,) = excerpts(
        """
        from pkg.a import grow
        LIMIT = 7

        def check(n):
            assert grow(n) == LIMIT

        def test_limit():
            check(100)
        """,
        "test_limit",
    )
    assert found.code == "check(100)"
    assert found.helpers == ("LIMIT = 7", "def check(n):\n    assert grow(n) == LIMIT")


def test_tests_that_only_share_a_broken_import_are_left_out(excerpts):
    old = "from pkg.a import grow\ndef test_old():\n    assert grow(1) == 1\n"
    new = old.replace("grow\n", "grow, shrink\n") + "def test_new():\n    assert shrink(1) == 0\n"
    assert [one.test.names for one in excerpts(new, "test_old", "test_new", old=old)] == [("test_new",)]


def test_comments_about_issues_go_as_a_whole(excerpts):
    (found,) = excerpts(
        "from pkg.a import grow\ndef test_x():\n    # seen in #12 and\n    # since\n    assert grow(1) == 2  # noqa\n",
        "test_x",
    )
    assert found.code == "assert grow(1) == 2"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("assert 3 == 4\n +  where 3 = grow(2)", "3"),
        ("AssertionError: assert 'aa bb' == 'aa|bb'", "'aa bb'"),
        ("AssertionError: 1 != 2", "1"),
        ("TypeError: grow() got 'by'", "raises TypeError: grow() got 'by'"),
        ("Failed: DID NOT RAISE <class 'ValueError'>", "nothing is raised"),
        ("TypeError: test_x.<locals>.f() takes 1", "raises TypeError: f() takes 1"),
        ("ValueError: odd <Box object at 0x7f00>", "raises ValueError: odd <Box object>"),
        ("FileNotFoundError: '/somewhere/deep/inside/a.txt'", "raises FileNotFoundError: 'a.txt'"),
        ("assert [1, 2, ...] == [1]", ""),
        ("assert False", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_failures_say_what_happens_today(message, said):
    assert what_happens(message) == said


def test_new_names_are_stated_with_their_calls(excerpts):
    found = excerpts(
        """
        import pkg.a
        from pkg import a
        from pkg.a import Box, shrink
        from pkg.b import other

        def test_new():
            assert shrink(5, by=2) == 3
            assert pkg.a.widen(1) == 2
            assert a.widen(2) == 3
            assert Box().close_lid(hard=True) == "closed"
            assert other
            assert "x".upper().casefold() == "x"
        """,
        "test_new",
    )
    fix = START + "def shrink(n, *, by): ...\ndef widen(n): ...\nclass B:\n    def close_lid(self, hard): ...\n"
    project = Project({"pkg/a.py": START, "pkg/__init__.py": ""}, ["."])
    wanted = {(one.kind, one.name, one.owner): one.calls for one in demands(found, project, defined_names([fix]), [])}
    assert wanted["name", "shrink", "pkg.a"] == ("shrink(5, by=2)",)
    assert wanted["name", "widen", "pkg.a"] == ("pkg.a.widen(1)", "a.widen(2)")
    assert wanted["name", "other", "pkg.b"] == ()
    assert "Box().close_lid(hard=True)" in wanted["member", "close_lid", ""]
    assert wanted["parameter", "hard", "close_lid"]
    assert ("member", "casefold", "") not in wanted


def test_a_source_root_is_no_part_of_a_module_name():
    project = Project({"src/pkg/__init__.py": "", "src/pkg/a.py": START}, ["src"])
    assert project.has_name("pkg.a", "grow")
    assert project.has_name("pkg", "a")
    assert not project.has_name("pkg.a", "shrink")
    assert project.has_name("pkg.a", "__doc__")
    assert not project.has_name("pkg.a", "__version__")
    assert not project.owns("src")


def test_the_text_names_what_is_wrong_shows_it_and_keeps_the_fix(excerpts):
    found = excerpts(
        "from pkg.a import grow\ndef test_grow():\n    assert grow(2) == 3\n",
        "test_grow",
        message="assert 2 == 3",
        line=3,
    )
    written = write(
        material(
            found, fix=START.replace("return n\n", "bigger_one = n + 1\n    return bigger_one\n"), functions=("grow",)
        )
    )
    assert written.reason == ""
    assert written.text.startswith("`pkg.a.grow` does not behave as it should.")
    assert "assert grow(2) == 3\n# today: 2\n```" in written.text
    assert "bigger_one" not in written.text


def test_a_message_that_leaks_is_not_used(excerpts):
    found = excerpts("from pkg.a import grow\ndef test_grow():\n    assert grow(2) == 3\n", "test_grow")
    fix = START.replace("return n\n", "bigger_one = n + 1\n    return bigger_one\n")
    message = "Add one to the result\n\nThe result was wrong for all numbers. It should be bigger_one when grown."
    written = write(material(found, message=message, fix=fix))
    assert "The result was wrong for all numbers." in written.text
    assert "bigger_one" not in written.text


def test_private_names_of_the_solution_are_no_task(excerpts):
    found = excerpts("from pkg.a import _inner\ndef test_x():\n    assert _inner(1)\n", "test_x")
    written = write(material(found, fix=START + "def _inner(n): ...\n"))
    assert (written.text, written.reason) == ("", "demands_private_name")


def test_a_text_that_would_be_too_long_loses_comments_first(excerpts):
    comments = "\n".join(f"    # remark {'x' * 60}\n    assert grow({number}) == 1" for number in range(80))
    found = excerpts(f"from pkg.a import grow\ndef test_x():\n{comments}\n", "test_x")
    written = write(material(found))
    assert written.reason == ""
    assert len(written.text) <= MAX_LENGTH
    assert "remark" not in written.text
    assert "assert grow(79) == 1" in written.text


def test_without_readable_tests_there_is_no_text():
    assert write(material([])).reason == "tests_not_readable"


def test_what_happens_today_stands_below_the_failing_statement(excerpts):
    source = "from pkg.a import grow\ndef test_grow():\n    assert grow(2) == 3\n    assert grow(4) == 4\n"
    found = excerpts(source, "test_grow", message="assert 2 == 3", line=3)
    assert "assert grow(2) == 3\n# today: 2\nassert grow(4) == 4" in write(material(found)).text


def test_clocks_and_patches_are_shown(excerpts):
    (found,) = excerpts(
        """
        from unittest import mock
        from freezegun import freeze_time
        from pkg.a import grow

        @mock.patch("os.getcwd")
        @freeze_time("2023-10-15")
        @mock.patch.dict("os.environ", {"A": "1"})
        def test_grow(getcwd):
            getcwd.return_value = "x"
            assert grow(1) == 2
        """,
        "test_grow",
    )
    assert found.code.splitlines() == [
        "with mock.patch('os.getcwd') as getcwd:", "    with freeze_time('2023-10-15'):",
        "        with mock.patch.dict('os.environ', {'A': '1'}):", "            getcwd.return_value = \"x\"",
        "            assert grow(1) == 2",
    ]  # fmt: skip
    assert {one.alias for one in found.imports} == {"mock", "freeze_time", "grow"}


def test_a_class_inside_a_test_class_comes_along(excerpts):
    (found,) = excerpts(
        """
        from pkg.a import Box

        class TestBox:
            class Small(Box):
                size = 1

            def test_open(self):
                assert self.Small().open() == 2
        """,
        "TestBox::test_open",
    )
    assert found.code == "assert Small().open() == 2"
    assert found.helpers == ("class Small(Box):\n    size = 1",)


def test_a_test_that_uses_what_cannot_be_shown_is_no_excerpt(excerpts):
    assert excerpts("def test_x():\n    assert nowhere(1) == 2\n", "test_x") == ()


def test_constants_made_under_a_clock_come_with_it(excerpts):
    source = (
        "from freezegun import freeze_time\nimport datetime as dt\nfrom pkg.a import grow\n"
        "with freeze_time('2020-01-01'):\n    NOW = dt.datetime.now()\n\n"
        "def test_now():\n    assert grow(NOW) is NOW\n"
    )
    (found,) = excerpts(source, "test_now")
    assert found.helpers == ("with freeze_time('2020-01-01'):\n    NOW = dt.datetime.now()",)
    assert {one.alias for one in found.imports} == {"dt", "freeze_time", "grow"}
