from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsynth.hunks import apply, changed_lines, hunks, lines_of, merged
from envsynth.languages.python.mutants import mutants
from envsynth.languages.python.mutants.equivalence import why_equivalent

START = '''"""Numbers."""
import os


def clamp(x, low, high):
    return min(x, high)


def total(xs):
    result = 0
    for x in xs:
        result = result + x
    return result
'''
AFTER = '''"""Numbers, and no more."""
import os


def clamp(x, low, high):
    if low > high and low != high:
        raise ValueError("low is above high")
    return max(low, min(x, high))


def total(xs, *, start=0, keep=True):
    result = start
    for x in xs:
        try:
            result = result + x
        except TypeError:
            continue
    return result if keep else None
'''


def texts(before: str, after: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for variant in mutants({"pkg/calc.py": before}, {"pkg/calc.py": after}):
        (file,) = variant.files
        found.setdefault(variant.kind, []).append(file.text or "")
    return found


def test_parts_of_the_reference_are_left_out() -> None:
    found = texts(START, AFTER)
    assert AFTER.replace('"""Numbers, and no more."""', '"""Numbers."""') in found["hunk_drop"]
    assert any("def clamp(x, low, high):\n    return min(x, high)" in text for text in found["function_revert"])
    assert "file_drop" not in found  # that would be the start tree


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("negate_condition", "    if (not (low > high and low != high)):"),
        ("swap_comparison", "    if low >= high and low != high:"),
        ("swap_comparison", "    if low > high and low == high:"),
        ("swap_boolean", "    if low > high or low != high:"),
        ("skip_branch", "    if False:"),
        ("remove_statement", "        pass"),
        ("remove_statement", "    return None"),
        ("remove_statement", "    result = None"),
        ("swap_name", "    return min(low, min(x, high))"),
        ("swap_arithmetic", "            result = result - x"),
        ("drop_handler", "            raise"),
        ("change_constant", "def total(xs, *, start=1, keep=True):"),
        ("change_constant", "def total(xs, *, start=0, keep=False):"),
    ],
)
def test_each_operator_changes_one_thing(kind: str, line: str) -> None:
    assert any(line in text.split("\n") for text in texts(START, AFTER)[kind])


def test_only_lines_that_the_reference_brought_are_mutated() -> None:
    reference = lines_of(AFTER)
    kept = [line for line in reference if line in lines_of(START)]
    for kind, found in texts(START, AFTER).items():
        for text in found:
            if kind not in ("hunk_drop", "function_revert"):
                assert [line for line in lines_of(text) if line in kept][: len(kept)] == kept
                assert len(changed_lines(AFTER, text)) == 1


def test_mutants_are_distinct_readable_named_and_repeatable() -> None:
    found = mutants({"a.py": START}, {"a.py": AFTER, "b.py": "def new(x):\n    return x + 1\n"})
    assert found == mutants({"a.py": START}, {"b.py": "def new(x):\n    return x + 1\n", "a.py": AFTER})
    changed = [tuple((file.path, file.text) for file in variant.files) for variant in found]
    assert len(set(changed)) == len(changed)
    assert len({variant.name for variant in found}) == len(found)
    for text in (text for files in changed for _, text in files if text is not None):
        ast.parse(text)
    assert (("b.py", None),) in changed


def test_the_wording_of_errors_annotations_and_documentation_is_no_mutant() -> None:
    after = (
        'import logging\n\n\ndef f(x: "Literal[1]") -> "int":\n    """Doc 1."""\n    logging.info("a %s", 1)\n'
        '    if x:\n        raise ValueError("no" + str(1))\n    return x\n'
    )
    for text in (text for found in texts("", after).values() for text in found):
        assert "XX" not in text
        assert '"Literal[1]") -> "int"' in text
        assert "a %s" in text


def test_a_file_that_cannot_be_read_gives_hunks_only() -> None:
    found = mutants(
        {"a.py": "print 1\n\nx = 1\n", "t.html": "a\nb\nc\n"}, {"a.py": "print 2\n\nx = 2\n", "t.html": "A\nb\nC\n"}
    )
    assert {variant.kind for variant in found} == {"hunk_drop", "file_drop"}


EQUIVALENT = {
    "comment": ("x = 1\n", "x = 1  # one\n\n"),
    "spelling": ("x = 'a'\n", 'x = ("a")\n'),
    "documentation": ("def f():\n    'a'\n    return 1\n", "def f():\n    'b'\n    return 1\n"),
    "documentation of the module": ("'a'\ndef f():\n    f.__doc__ = ''\n", "'b'\ndef f():\n    f.__doc__ = ''\n"),
    "type checking": ("if TYPE_CHECKING:\n    import a\nx = 1\n", "x = 1\n"),
    "local annotation": ("def f():\n    x: int = 1\n    return x\n", "def f():\n    x = 1\n    return x\n"),
    "dead code": ("def f():\n    return 1\n", "def f():\n    return 1\n    print()\n"),
    "folded": ("def f():\n    return 60 * 60\n", "def f():\n    return 3600\n"),
    "unused import": ("import re\nx = 1\n", "x = 1\n"),
    "version": ("__version__ = '1'\nx = 1\n", "__version__ = '2'\nx = 1\n"),
}
DIFFERENT = {
    "documentation that is read": ("def f():\n    'a'\nprint(f.__doc__)\n", "def f():\n    'b'\nprint(f.__doc__)\n"),
    "unrun yield": ("def f():\n    return 1\n", "def f():\n    return 1\n    yield\n"),
    "unrun binding": ("def f():\n    return x\n", "def f():\n    return x\n    x = 1\n"),
    "documentation of a module that reads it": ("'a'\nprint(__doc__)\n", "'b'\nprint(__doc__)\n"),
    "used import": ("import re\nx = re.I\n", "x = re.I\n"),
    "foreign import": ("import numpy\nx = 1\n", "x = 1\n"),
    "parameter annotation": ("def f(x: int): ...\n", "def f(x): ...\n"),
    "local without a value": ("def f():\n    x: int\n    print(x)\n", "def f():\n    print(x)\n"),
    "attribute annotation": ("class A:\n    x: int = 1\n", "class A:\n    x = 1\n"),
    "sign of zero": ("x = -0.0\n", "x = 0.0\n"),
    "bool for int": ("def f():\n    return 1\n", "def f():\n    return True\n"),
    "version that is read": ("VERSION = '1'\nx = VERSION\n", "VERSION = '2'\nx = VERSION\n"),
    "nested constant": ("x = (1, (1, 2))\n", "x = (1, (True, 2))\n"),
    "default": ("def f(x=1): ...\n", "def f(x=2): ...\n"),
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_is_proven_equivalent(name: str) -> None:
    assert why_equivalent(*EQUIVALENT[name])
    if "of the module" in name:
        return
    before, after = (f"y = 0\n\n\n{text}\n\nz = 0\n" for text in EQUIVALENT[name])
    assert why_equivalent(before, after)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_not_proven_equivalent(name: str) -> None:
    assert why_equivalent(*DIFFERENT[name]) == ""
    assert why_equivalent(*reversed(DIFFERENT[name])) == ""


def test_an_import_that_another_file_of_the_reference_reads_is_used() -> None:
    assert why_equivalent("import re\n", "", "from a import re\n") == ""


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "\x0c\n", "c\u2028d\n", "e"]), max_size=20).map("".join)


@given(LINES, LINES)
def test_leaving_all_hunks_out_gives_the_start(before: str, after: str) -> None:
    for join in (False, True):
        assert apply(after, hunks(before, after, join=join)) == before
    assert "".join(lines_of(after)) == after


@given(LINES, LINES, LINES)
def test_texts_are_merged_only_where_they_do_not_meet(base: str, one: str, other: str) -> None:
    both = merged(base, [one, other])
    assert both == merged(base, [other, one])
    assert merged(base, [one]) == one
    assert merged(base, [one, base]) == one


def test_merged_changes_stand_side_by_side() -> None:
    assert merged("a\nb\nc\nd\n", ["A\nb\nc\nd\n", "a\nb\nc\nD\n"]) == "A\nb\nc\nD\n"
    assert merged("a\nb\nc\nd\n", ["A\nb\nc\nd\n", "a\nB\nc\nd\n"]) is None
