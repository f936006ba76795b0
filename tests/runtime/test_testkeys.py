"""What the id of a test says of where it is defined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.runtime.harness import pytest_report
from envsynth.runtime.testkeys import function_of, functions_of, locate, module_of


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("tests/test_a.py::test_x", ("tests/test_a.py", ("test_x",), "")),
        ("tests/test_a.py::TestA::test_x[a::b-[c]]", ("tests/test_a.py", ("TestA", "test_x"), "a::b-[c]")),
        ("tests.test_a.TestA.test_x", ("tests/test_a.py", ("TestA", "test_x"), "")),
        ("test_a.TestA.test_x", ("tests/test_a.py", ("TestA", "test_x"), "")),
        ("pkg/a.py::pkg.a.grow", None),
    ],
)
def test_keys_lead_to_functions(key: str, place: tuple[str, tuple[str, ...], str] | None) -> None:
    assert locate(key, {"tests/test_a.py"}) == place


@pytest.mark.parametrize(
    ("key", "function", "module"),
    [
        ("tests/a.py::T::test_x[1.5::b]", "tests/a.py::T::test_x", "tests/a.py"),
        ("tests.a.T.test_x", "tests.a.T.test_x", "tests.a"),
    ],
)
def test_the_function_and_module_of_a_key(key: str, function: str, module: str) -> None:
    assert (function_of(key), module_of(function)) == (function, module)


def test_what_cannot_be_selected_by_name_selects_everything() -> None:
    assert functions_of(["b.py::t[1]", "b.py::t[2]", "a.py::t"]) == ("a.py::t", "b.py::t")
    assert functions_of(["a.py::t", "/tmp/<tmp>/b.py::t"]) == ()


@given(st.text(alphabet="a/.:[]-", max_size=20))
def test_the_harness_cuts_ids_as_the_grader_does(name: str) -> None:
    assert pytest_report.function_of(name) == function_of(name)
