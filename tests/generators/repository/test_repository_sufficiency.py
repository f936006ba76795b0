"""What failing tests demand, and whether a text and the start tree determine it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from envsynth.generators.repository.asserted import values_of
from envsynth.generators.repository.evidence import excerpts_of
from envsynth.generators.repository.excerpt import Failing
from envsynth.generators.repository.interface import Project, defined_names, demands
from envsynth.generators.repository.stated import Stated
from envsynth.generators.repository.sufficiency import Facts, Needs, insufficient, wanted
from envsynth.generators.repository.vagueness import misfit
from envsynth.leaks import Change

START = '''LIMIT = 12345


def grow(number, mode="slow"):
    """Grow a number; modes are slow and steady-on."""
    if mode is None:
        raise LookupError(mode)
    return number


def double(number):
    return number * 2
'''


@pytest.fixture
def excerpts():
    def make(body: str, *, line: int = 0, cases: tuple[str, ...] = (), head: str = "", given: str = ""):
        text = f"import pytest\nfrom pkg.a import double, grow\n{dedent(head)}\ndef test_it({given}):\n"
        text += "".join(f"    {row}\n" for row in dedent(body).strip().splitlines())
        failing = Failing("tests/test_a.py", ("test_it",), cases, "", text.splitlines().index(line) + 1 if line else 0)
        found = excerpts_of([failing], {"tests/test_a.py": text}.get, lambda _: None)
        assert not found.unreadable
        return found.shown

    return make


@pytest.fixture
def project():
    return Project({"pkg/a.py": START, "pkg/__init__.py": ""}, ["."])


@pytest.fixture
def needs(excerpts, project):
    def make(body: str, *, fix: str = "", files: dict[str, str] | None = None, **more):
        shown = excerpts(body, **more)
        after = START + fix
        wanted = demands(shown, project, defined_names([after]), [])
        texts = {"pkg/a.py": START, **(files or {})}
        return Needs(Facts(shown, project, wanted, [Change("pkg/a.py", START, after)], ["grow"], texts))

    return make


def rules(text: str, needs: Needs, level: int = 1) -> list[str]:
    return sorted({finding.rule for finding in insufficient(text, needs, level)})


@pytest.mark.parametrize(
    ("body", "demanded"),
    [
        ("assert grow(7) == 3.5", [("value", (3.5,), (7,))]),
        ("assert 'abcd' == grow(7)", [("value", ("abcd",), (7,))]),
        ("assert 'abcd' in grow(7)", [("value", ("abcd",), (7,))]),
        ("want = [30, 'x y']\nassert grow(7) == want", [("value", (30, "x y"), (7,))]),
        ("for n, want in [(20, 40), (30, 60)]:\n    assert grow(n) == want",
         [("value", (40,), (20,)), ("value", (60,), (30,))]),
        ("assert grow(7) != 3.5", [("value", (), (3.5, 7))]),
        ("assert grow(7) < grow(90)", [("value", (), (7, 90))]),
        ("assert not grow('abcd')", [("value", (), ("abcd",))]),
        ("assert grow(7).startswith('abcd')", [("value", ("abcd",), (7,)), ("value", (), (7, "abcd"))]),
        ("with pytest.raises(ValueError, match=r'be more\\.than (\\d+) so'):\n    grow(7)",
         [("error", ("ValueError",), (7,)), ("pattern", ("be more.than", "so")[:1], (7,))]),
        ("with pytest.raises(Exception):\n    grow(7)", [("error", (), (7,))]),
        ("check(7, want=77)", [("value", (77,), (7,))]),
        ("assert double(grow(7)) == double(50)", [("value", (50,), (7,))]),
    ],
)  # fmt: skip
def test_what_is_demanded_is_read_from_the_code(excerpts, project, body, demanded):
    head = "def check(n, want):\n    assert grow(n) == want\n" if body.startswith("check") else ""
    (shown,) = excerpts(body, head=head)
    found = [(value.kind, value.leaves, tuple(sorted(value.inputs, key=str))) for value in values_of(shown, project)]
    assert [one for one in found if one[2] or not head] == demanded


def test_what_passed_before_the_failure_is_known(excerpts, project):
    (shown,) = excerpts("assert grow(20) == 20\nassert grow(30) == 60\nassert grow(40) == 80",
                        line="    assert grow(30) == 60")  # fmt: skip
    assert [value.passed for value in values_of(shown, project)] == [True, False, False]
    (unknown,) = excerpts("assert grow(20) == 20\nassert grow(30) == 60")
    assert [value.passed for value in values_of(unknown, project)] == [False, False]


def test_who_is_asked_is_the_projects(excerpts, project):
    code = "more = grow\nassert len(str(more(7))) == 20\nout = tmp_path.joinpath('a').read_text()\nassert out == 'bcde'"
    (shown,) = excerpts(code, given="tmp_path")
    assert [value.subjects for value in values_of(shown, project)] == [("grow",), ()]


@pytest.mark.parametrize(
    ("text", "literal", "said"),
    [
        ("it gives 3.50 there", 3.5, True),
        ("it gives 35", 3.5, False),
        ("by 0x1F", 31, True),
        ("half is .5 or 0.5", 0.5, True),
        ("version v3", 3, False),
        ("gives -7", 7, True),
        ("it says `aa  bb`\nand", "aa bb", True),
        ("it says line\\nbreak", "line\nbreak", True),
        ('a = "one" "two"', "onetwo", False),
        ("```python\nx = ('one ' 'two')\n```", "one two", True),
        ("a plain word", "a", False),
        ("the letter 'a'", "a", True),
        ("the library's sign isn't 'b'", "b", True),
        ("foobar", "fooba", False),
    ],
)
def test_a_literal_is_said_in_any_way_of_writing_it(text, literal, said):
    assert Stated(text).says(literal) is said


def test_every_value_at_level_0_one_of_each_test_at_level_1(needs):
    asked = needs("assert grow(20) == 45\nassert grow(30) == 65")
    assert rules("grow(20) is 45 and grow(30) is 65", asked, 0) == []
    assert rules("grow(20) is 45", asked, 0) == ["undetermined_value"]
    assert rules("grow(20) is 45", asked, 1) == []
    assert rules("grow makes 20 larger", asked, 1) == ["undetermined_value"]
    assert rules("grow makes numbers larger", asked, 1) == ["no_concrete_case", "undetermined_value"]
    assert rules("grow makes numbers larger", asked, 3) == ["no_concrete_case", "undetermined_value"]
    assert wanted(asked, 1) == ["it: grow gives 45", "it: grow gives 65"]


def test_what_the_repository_tells_need_not_be_said(needs):
    text = "With 20 something is wrong."
    assert rules(text, needs("assert grow(20) == 'steady-on'")) == []
    assert rules(text, needs("assert grow(20) == 'steady-off'")) == ["undetermined_value"]
    documents = {"docs/use.md": "Calling grow gives steady-off.\n"}
    assert rules(text, needs("assert grow(20) == 'steady-off'", files=documents)) == []
    far = {"docs/use.md": "Calling grow is fine.\n" + "\n" * 100 + "steady-off\n"}
    assert rules(text, needs("assert grow(20) == 'steady-off'", files=far)) == ["undetermined_value"]
    assert rules(text, needs("assert grow(20) == 12345")) == []
    assert rules(text, needs("assert grow(20) == 2")) == ["undetermined_value"]
    assert rules(text, needs("assert grow(20) == 20")) == []
    assert rules(text, needs("assert grow(20) == double(10)")) == []
    assert rules(text, needs("assert double(20) == grow(10)")) == ["undetermined_value"]
    assert rules(text, needs("assert grow(20) is None")) == []


def test_what_only_the_solution_knows_must_be_said_at_every_level(needs):
    fix = (
        "\n\ndef other(number, mode):\n    if mode == 'gentle':\n"
        "        raise ValueError(f'the number {number} is not good enough')\n"
    )
    refused = "with pytest.raises(ValueError, match='is not good enough'):\n    grow(30)"
    asked = needs(f"assert grow(20, mode='gentle') == 20\n{refused}", fix=fix)
    assert asked.chosen == ("gentle", "is not good enough")
    for level in range(4):
        assert rules("grow takes 20", asked, level) == ["undetermined_error", "undetermined_value"]
        assert rules("grow 20 in mode gentle: ValueError, which says that it is not good enough", asked, level) == []
    documentation = '\n\ndef other(n):\n    """It is gentle."""\n'
    assert needs("assert grow(20, mode='gentle') == 20", fix=documentation).chosen == ()


def test_an_error_that_the_function_names_already_is_enough_for_a_description(needs):
    asked = needs("with pytest.raises(LookupError):\n    grow(30)")
    assert rules("grow(30) should be refused", asked, 1) == ["undetermined_error"]
    assert rules("grow(30) should be refused", asked, 2) == []
    assert rules("grow(30) should be refused", needs("with pytest.raises(OSError):\n    grow(30)"), 2) == [
        "undetermined_error"
    ]


def test_new_names_are_said_with_their_module_and_a_call(needs):
    asked = needs("assert shrink(30, 2) == 28", head="from pkg.a import shrink\n", fix="\n\ndef shrink(a, b): ...\n")
    assert rules("make 28 of 30", asked) == ["undetermined_name"]
    assert rules("shrink makes 28 of 30", asked) == ["undetermined_name"]
    assert rules("shrink in pkg.a makes 28 of 30", asked) == ["undetermined_name"]
    assert rules("`shrink(30, 2)` in `pkg.a` is 28", asked) == []


def test_levels_ask_for_names_and_forbid_them(needs):
    asked = needs("assert grow(20) == 45")

    def found(text: str, level: int) -> list[str]:
        return [finding.rule for finding in misfit(text, asked, level)]

    assert found("`grow(20)` is 45", 0) == found("`grow(20)` is 45", 1) == []
    assert found("20 becomes 45", 0) == found("20 becomes 45", 1) == found("20 becomes 45", 2) == ["too_vague"]
    assert found("`grow` makes 45 of 20", 2) == found("what is in a makes 45 of 20", 2) == []
    assert (
        found("`grow(20)` is 45", 2)
        == found("`grow` is wrong", 3)
        == found("calling grow(20) is", 3)
        == ["too_precise"]
    )
    assert found("I want my plants to grow from 20 to 45", 3) == []
