"""Changed tests: what is changed, that it stays a test, and that right code fails it."""

from __future__ import annotations

import ast
import random
import re
import unittest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.languages.python.controls import MAX_PER_FUNCTION, controls
from envsynth.languages.python.literals import another
from envsynth.models import Control, TestCommand
from envsynth.runtime.controls import changed_file

PYTEST = TestCommand(runner="pytest", targets=("tests",))
UNITTEST = TestCommand(runner="unittest", targets=("tests",))
HEAD = (
    "import pytest\nfrom pytest import approx\n\n\ndef double(x):\n    if x is None:\n        raise ValueError('no')\n"
)
HEAD += "    return x * 2\n\n\n"


def changes(body: str, kinds: set[str] | None = None, more: str = "") -> list[str]:
    """The changed bodies of one test that right code passes as it is and fails as changed."""
    text = HEAD + "def test_it():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    text += f"\n\ndef test_more():\n    with pytest.{more}:\n        pass\n" if more else ""
    _call(text)
    proposed = controls({"t.py": text}, ["t.py::test_it"], PYTEST)
    found = [control for control in proposed if kinds is None or control.kind in kinds]
    for control in found:
        with pytest.raises(BaseException):  # noqa: PT011, B017  # the tests fail in many ways
            _call(changed_file(text.encode(), [control.document()]).decode())
    return ["\n".join(line[4:] for line in control.text.splitlines()[1:]) for control in found]


def _call(text: str) -> None:
    space: dict[str, object] = {}
    exec(compile(text, "t.py", "exec"), space)
    space["test_it"]()  # type: ignore[operator]


@pytest.mark.parametrize(
    "body",
    [
        "assert double(2) == 4",
        "assert 4 == double(2)",
        "assert double('ab') == 'abab'",
        "assert double([]) == []",
        "assert double(()) == ()",
        "assert [double(n) for n in (1, 2)] == [2, 4]",
        "assert {'a': double(1)} == {'a': 2}",
        "assert double(-2) == -4",
        "assert double(b'x') == b'xx'",
        "assert double(0.5) == approx(1.0)",
        "want = [2, 4]\nassert [double(1), double(2)] == want",
        "assert double('é') == 'éé'  # ü",
        "assert double('') == ''",
        "with open('/dev/null'):\n    assert double(2) == 4",
        "assert double(True) == 2, 'they differ'",
        "assert double(2) == (\n    4\n)",
    ],
)
def test_another_constant_is_expected(body: str) -> None:
    found = changes(body, {"literal"})
    assert found
    for text in found:
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(body))
        assert type(ast.parse(text).body[-1]) is type(ast.parse(body).body[-1])


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("assert double(2) != 5", "assert double(2) == 5"),
        ("assert double(0) not in (1, 2)", "assert double(0) in (1, 2)"),
        ("assert double(2) is not None", "assert double(2) is None"),
        ("assert double(2)", "assert not double(2)"),
        ("assert not double(0)", "assert double(0)"),
        ("assert double(2) < 5", "assert double(2) >= 5"),
        ('assert "b" in double("ab")', 'assert "b" not in double("ab")'),
        ("assert double(1) and double(2)", "assert not (double(1) and double(2))"),
        ("assert 1 < double(1) < 3", "assert not (1 < double(1) < 3)"),
    ],
)
def test_an_assertion_is_turned_round(body: str, changed: str) -> None:
    assert changes(body, {"flipped"}) == [changed]


def test_an_equality_is_never_just_turned_round() -> None:
    # Who answers `==` with yes answers `!=` with no, as a right result does.
    assert changes("assert double(2) == 4\nassert double(1) == double(1)", {"flipped"}) == []
    (wrapped,) = changes("assert double(2) == sum([1, 3])", {"wrapped"})
    assert re.fullmatch(r"assert double\(2\) == \(sum\(\[1, 3\]\), \d\)", wrapped)


def test_another_input_is_given() -> None:
    found = changes("assert double(2) == 4\nassert double('no') == 'nono'", {"input"})
    assert len(found) == 2
    assert all("== 4" in text and "== 'nono'" in text for text in found)


def test_a_part_of_an_expression_is_expected() -> None:
    (only,) = changes("want = 2\nassert double(2) + 1 == want * 2 + 1", {"reduced"})
    assert only == "want = 2\nassert double(2) + 1 == want * 2"


@pytest.mark.parametrize(
    "body",
    ["got = double(2)\nassert got == 4", "x = 3\nassert double(x) == 6", "assert 4 == double(2)",
     "assert double(double(1)) == double(2)"],
)  # fmt: skip
def test_a_changed_comparison_still_asks_the_code_under_test(body: str) -> None:
    """Who answers everything with yes must pass the changed test, or it could not be told from who is right."""
    oracle = HEAD.replace(
        "    if x is None", "    class Yes:\n        __eq__ = lambda *_: True\n    return Yes()\n    if x is None"
    )
    text = HEAD + "def test_it():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    found = list(controls({"t.py": text}, ["t.py::test_it"], PYTEST))
    assert found
    for control in found:
        _call(changed_file(text.encode(), [control.document()]).decode().replace(HEAD, oracle))


def test_another_parameter_is_expected() -> None:
    text = (
        HEAD
        + "@pytest.mark.parametrize('n, want', [(1, 2), (0, 0)])\ndef test_it(n, want):\n    assert double(n) == want\n"
    )
    found = list(controls({"t.py": text}, ["t.py::test_it[1-2]", "t.py::test_it[0-0]"], PYTEST))
    assert [control.text.splitlines()[-1].strip() for control in found if control.kind == "other"] == [
        "assert double(n) == n"
    ]


def test_another_exception_is_expected() -> None:
    (text,) = changes('with pytest.raises(ValueError, match="no"):\n    double(None)', {"raises"})
    assert "ValueError" not in text
    assert 'match="no"' in text
    (text,) = changes("with pytest.raises(ValueError, match='no'):\n    double(None)", {"literal"}, "raises(EOFError)")
    assert changes("with pytest.raises(ValueError):\n    double(None)", {"raises"}, "raises(EOFError)") == [
        "with pytest.raises(EOFError):\n    double(None)"
    ]
    (text,) = changes('with pytest.raises(ValueError, match="no"):\n    double(None)', {"literal"})
    assert re.search(r'ValueError, match="(No|nO)"', text)


def test_a_text_keeps_its_quotes_and_its_words() -> None:
    for text in changes('assert double("red green ") == "red green red green "', {"literal"}):
        assert "'" not in text
        assert set(re.findall("[a-z]+", text.lower())) == {"assert", "double", "red", "green"}


def test_a_test_that_only_calls_gets_an_assertion() -> None:
    (text,) = changes("x = 3\ndouble(x)")
    assert re.fullmatch(r"x = 3\nassert double\(x\) == \d{3}", text)


UNITTESTS = """
import unittest


class TestIt(unittest.TestCase):
    @unittest.skipIf(False, 'no')
    def test_one(self):
        self.assertEqual(1 + 1, 2)
        self.assertTrue(1 + 1)
        with self.assertRaises(ZeroDivisionError):
            1 // 0


class TestChild(TestIt):
    pass
"""


def test_methods_of_unittest_and_inherited_tests() -> None:
    text = UNITTESTS
    files = {"tests/test_x.py": text, "tests/other.py": ""}
    by_pytest = list(controls(files, ["tests/test_x.py::TestIt::test_one"], PYTEST))
    by_unittest = list(controls(files, ["test_x.TestIt.test_one"], UNITTEST))
    assert [control.text for control in by_pytest] != []
    assert {control.kind for control in by_pytest} == {"literal", "raises", "reduced", "wrapped", "flipped"}
    assert {control.kind for control in by_unittest} == {"literal", "raises", "reduced", "wrapped", "flipped"}
    assert list(controls(files, ["tests/test_x.py::TestChild::test_one"], PYTEST)) == []
    for control in by_pytest:
        assert _failures(text) == 0
        assert _failures(changed_file(text.encode(), [control.document()]).decode()) > 0


def _failures(text: str) -> int:
    space: dict[str, object] = {"__name__": "test_x"}
    exec(compile(text, "test_x.py", "exec"), space)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(space["TestIt"]).run(result)  # type: ignore[arg-type]
    return len(result.failures) + len(result.errors)


def test_cases_of_one_function_share_its_changes_and_there_are_few_of_them() -> None:
    text = "def test_it(n):\n" + "".join(f"    assert {n} == {n}\n    assert not {n - n}\n" for n in range(9))
    found = list(controls({"t.py": text}, ["t.py::test_it[1]", "t.py::test_it[2]"], PYTEST))
    assert 0 < len(found) <= MAX_PER_FUNCTION
    assert {control.keys for control in found} == {("t.py::test_it[1]", "t.py::test_it[2]")}
    assert found == list(controls({"t.py": text}, ["t.py::test_it[2]", "t.py::test_it[1]"], PYTEST))


@pytest.mark.parametrize(
    "text",
    ["def test_it(:\n", "def test_it():\n    assert 1 == 1\r    x = 2\n", "\0", "x = 1\n", "class test_it: pass\n"],
)
def test_what_cannot_be_read_has_no_changes(text: str) -> None:
    assert list(controls({"t.py": text}, ["t.py::test_it", "u.py::test_it", "t.py"], PYTEST)) == []


def test_lines_are_counted_as_the_runtime_counts_them() -> None:
    text = "s = 'é'\r\n\r\ndef test_it():\r\n    assert 1 + 1 == 2\r\n    assert 'x'\r\n"
    control: Control = next(iter(controls({"t.py": text}, ["t.py::test_it"], PYTEST)))
    changed = changed_file(text.encode(), [control.document()]).decode()
    assert changed.count("\r\n") == text.count("\r\n") == changed.count("\n")


@given(
    st.one_of(
        st.integers(), st.booleans(), st.text(), st.binary(), st.floats(allow_nan=False, allow_infinity=False, width=32)
    ),
    st.integers(0, 99),
)
def test_another_constant_is_of_the_same_kind_and_not_equal(value: object, seed: int) -> None:
    other = ast.literal_eval(another(value, repr(value), random.Random(seed)))  # type: ignore[arg-type]
    assert type(other) is type(value)
    assert other != value
