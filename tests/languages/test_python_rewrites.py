from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsynth.languages.python.functions import functions, parse
from envsynth.languages.python.rewrites import rewrites
from envsynth.languages.python.rewrites.names import renamable

MODULE = '''"""Functions whose rewrites are played against them."""


def tally(xs, low=0, *, high=9):
    """Counts."""
    seen = []
    count = 0
    for x in xs:
        if x < low:
            count += 1
        elif x > high:
            # far
            seen.append(x)
        else:
            count -= 1
    label = "many" if count > 2 else "few"
    return (label, count, sorted(seen, reverse=True))


class Walker:
    scale = 2

    def walk(self, n, stop):
        path = []
        while n > 0 and n != stop:
            if n % 2 and n > 3:
                path.append("odd %d" % n)
            if n == 7:
                path = [m * self.scale for m in range(n)]
                return path
            n -= 1
        return [step for step in path] + [str(n)]

    def sign(self, n):
        if n < 0:
            return -1
        elif n == 0:
            return 0
        else:
            text = """a
        b"""
        return len(text) * self.scale


def outer(n):
    kept = n

    def inner(m):
        nonlocal kept
        kept += m
        return kept if m else -kept

    try:
        return inner(n) + inner(0)
    except ValueError as error:
        return error
    finally:
        kept = 0


def is_even(n):
    return n % 2 == 0 if n else True


def parity(n):
    if is_even(n):
        return "even"
    else:
        # not even
        return "odd"
'''
NUMBERS = st.integers(-12, 12)


def play(text: str, xs: list[int], n: int) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "m", "exec", dont_inherit=True), names)
    walker = names["Walker"]()
    return [
        names["tally"](xs), names["tally"](xs, 1, high=n), walker.walk(n, 2), walker.sign(n), names["outer"](n),
        names["is_even"](n), names["parity"](n), names["tally"].__doc__,
        sorted(name for name in names if not name.startswith("_")),
    ]  # fmt: skip


VARIANTS = rewrites({}, {"m.py": MODULE})


def test_every_kind_of_rewrite_is_made() -> None:
    assert {variant.kind for variant in VARIANTS} == {
        "rename_locals", "reorder_statements", "extract_helper", "swap_branches", "name_result", "drop_else",
        "nest_elif", "split_and", "expand_choice", "add_else", "loop_forever", "respell",
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(NUMBERS, max_size=8), NUMBERS)
def test_rewrites_do_what_the_reference_does(xs: list[int], n: int) -> None:
    wanted = play(MODULE, xs, n)
    for variant in VARIANTS:
        assert play(variant.files[0].text or "", xs, n) == wanted, variant.name


def test_rewrites_are_distinct_named_and_repeatable() -> None:
    assert rewrites({}, {"m.py": MODULE}) == VARIANTS
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS)
    assert len({variant.files for variant in VARIANTS}) == len(VARIANTS)
    assert MODULE not in {variant.files[0].text for variant in VARIANTS}


def test_only_changed_functions_are_rewritten() -> None:
    before = MODULE.replace("if n < 0:", "if n <= 0:")
    found = rewrites({"m.py": before}, {"m.py": MODULE})
    assert found
    assert all("`Walker.sign`" in variant.description for variant in found)
    module = ast.parse(MODULE)
    first, last = functions(module)["Walker.sign"].first, functions(module)["Walker.sign"].last
    tail = MODULE.split("\n")[last:]
    for variant in found:
        assert first <= variant.line <= last
        assert (variant.files[0].text or "").split("\n")[-len(tail) :] == tail


@pytest.mark.parametrize(
    "body",
    [
        "    y = x\n    return locals()",
        "    y = x\n    return eval('y')",
        "    y = x\n    return sys._getframe().f_locals",
        "    y = x\n    return inspect.currentframe()",
    ],
)
def test_a_function_that_looks_at_itself_is_left_alone(body: str) -> None:
    assert rewrites({}, {"m.py": f"def f(x):\n{body}\n"}) == []


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("y = x\n    return y", {"y"}),
        ("x = 1\n    return x", set()),
        ("global y\n    y = x", set()),
        ("y = x\n    return lambda: y", set()),
        ("y = x\n    def y(): ...", set()),
        ("y = x\n    return f'{y}'", set()),
        ("y = x\n    return [y for y in x]", set()),
        ("y = x\n    return [y for z in x]", {"y"}),
        ("y = x\n    import y", set()),
        ("try: y = x\n    except E as y: ...", set()),
        ("y: int = x\n    return y", set()),
        ("y = x\n    class A:\n        z = y", set()),
        ("for y, *z in x: del y", {"y", "z"}),
        ("with x as y: ...", {"y"}),
        ("match x:\n        case [y]: z = y", {"z"}),
        ("return (y := x) + y", {"y"}),
        ("__y = _z = x", set()),
    ],
)
def test_which_locals_may_be_renamed(body: str, names: set[str]) -> None:
    module = parse(f"def f(x):\n    {body}\n")
    assert module is not None
    assert renamable(functions(module)["f"].node) == names


def kinds(text: str) -> set[str]:
    return {variant.kind for variant in rewrites({}, {"m.py": text})}


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return g(x)(x, super)\n",
        "def f(x):\n    del x\n    return x.a.b(1)\n",
        "def f(x):\n    y = x\n    return y.a.b(1)\n",
        "def f(x):\n    return f(x.a - 1)\n",
        "def f(x):\n    return lambda: x.a(1)\n",
        "class A:\n    def f(self, x):\n        return self.__a(x, 1)\n",
        "import warnings\ndef f(x):\n    warnings.warn('a', stacklevel=2)\n    return x.a(1)\n",
        "def g(y):\n    def f(x):\n        return y.a(x)\n    return f\n",
    ],
)
def test_no_helper_where_it_could_be_noticed(text: str) -> None:
    assert "extract_helper" not in kinds(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a = []", "b = a"), ("a = x()", "b = 1"), ("a = 1", "a = 2"), ("a = {x: 1}", "b = 2"), ("a = not x", "b = 2"),
     ("a = y", "b = 2"), ("a.b = 1", "c = 2"), ("x = 1", "b = x")],
)  # fmt: skip
def test_statements_that_may_notice_each_other_keep_their_order(first: str, second: str) -> None:
    assert "reorder_statements" not in kinds(f"def f(x):\n    {first}\n    {second}\n    return b\n")
    assert "reorder_statements" in kinds("def f(x):\n    a = x\n    b = [x, 2]\n    return b\n")


def test_a_file_that_cannot_be_read_is_left_alone() -> None:
    assert rewrites({}, {"m.py": "print 1\n", "t.html": "a"}) == []
