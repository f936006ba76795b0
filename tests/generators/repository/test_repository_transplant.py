"""A function gets another body, and nothing else of its file changes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from envsynth.generators.repository.breakable import functions_of
from envsynth.generators.repository.suspicion import against, meaning_the_same
from envsynth.generators.repository.transplant import Place, Unfit, place_of, rebodied, written_function

SOURCES = Path(__file__).parents[3] / "generators" / "repository"
OWN = [SOURCES / name for name in ("breaking.py", "clones.py", "roles.py")]
FILE = '''"""Words."""

import os
import sys

LIMIT = 3


class Counter:
    """Counts."""

    step = 1

    @staticmethod
    def parts(text: str, sep=",") -> list:
        """The parts of a text.

        None are empty.
        """
        # Old wisdom.
        found = []
        for part in text.split(sep):
            if part:  # not the empty ones
                found.append(part)
        return found

    def grow(self, by=1):
        if by > 0:
            self.step += by
            return self.step
        return 0


def after(value):
    return os.sep if value else sys.path
'''


def placed(name: str, text: str = FILE) -> Place:
    place = place_of("words.py", text, name)
    assert place is not None
    return place


def with_body(place: Place, written: str) -> str:
    return rebodied(place, *written_function(written, place))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_a_function_in_its_own_place_changes_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    for name in functions_of(text):
        place = place_of(path.name, text, name)
        if place is not None:
            assert with_body(place, place.function) == text, name
            assert with_body(place, textwrap.dedent(place.function)) == text, name


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("fenced", [False, True])
def test_new_comments_are_left_out_and_old_ones_stay(deep: bool, fenced: bool) -> None:
    place = placed("Counter.parts")
    written = place.function.replace("if part:  #", "if part.strip():  # BUG: strips\n                #").replace(
        "        return found", "        # wrong on purpose\n        return found  # wrong"
    )
    written = written if deep else textwrap.dedent(written)
    made = with_body(place, f"```python\n{written}```\n" if fenced else written)
    assert made == FILE.replace(
        "if part:  # not the empty ones", "if part.strip():\n                # not the empty ones"
    )


def test_the_head_stays_as_it_was_whatever_the_docstring_says() -> None:
    place = placed("Counter.parts")
    made = with_body(
        place, '@staticmethod\ndef parts(text: str, sep=",") -> list:\n    """Some are empty."""\n    return [text]\n'
    )
    assert "None are empty." in made
    assert "Some are empty" not in made
    assert "        return [text]\n\n    def grow" in made
    assert "Old wisdom" not in made


def test_line_ends_tabs_strings_and_a_missing_last_newline() -> None:
    text = "def one(a):\n\tif a:\n\t\ta = '''x\n  y'''\n\t\treturn a\n\treturn 0"
    place = placed("one", text)
    assert with_body(place, place.function) == text
    made = with_body(place, "def one(a):\n    if not a:\n        a = '''p\n q'''\n    return a\n")
    assert made == "def one(a):\n\tif not a:\n\t    a = '''p\n q'''\n\treturn a"
    compile(made, "x", "exec")
    crlf = FILE.replace("\n", "\r\n")
    made = with_body(placed("after", crlf), "def after(value):\n    x = value\n    return x\n")
    assert made == crlf.replace("return os.sep if value else sys.path", "x = value\r\n    return x")


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("def grow(self, by=1:\n    return 1\n", "does_not_parse"),
        ("def grow(self, by=1): return 1\n", "does_not_parse"),
        ("def grow(self, by=2):\n    return 1\n", "signature_changed"),
        ("def grow(self, by=1, also=2):\n    return 1\n", "signature_changed"),
        ("async def grow(self, by=1):\n    return 1\n", "signature_changed"),
        ("@property\ndef grow(self, by=1):\n    return 1\n", "signature_changed"),
        ("def shrink(self, by=1):\n    return 1\n", "signature_changed"),
        ('def grow(self, by=1):\n    """Nothing."""\n', "function_emptied"),
        ("LIMIT = 4\ndef grow(self, by=1):\n    return 1\n", "not_one_function"),
        ("def grow(self, by=1):\n    return 1\ngrow = None\n", "not_one_function"),
        ("    def grow(self, by=1):\n        return 1\nimport os\n", "not_one_function"),
        ("", "not_one_function"),
        ("Here you are: nothing", "does_not_parse"),
    ],
)
def test_what_is_not_the_one_function_is_refused(written: str, rule: str) -> None:
    with pytest.raises(Unfit) as caught:
        with_body(placed("Counter.grow"), written)
    assert caught.value.rule == rule


def test_functions_without_lines_of_their_own_have_no_place() -> None:
    assert place_of("a.py", "def one(a): return a\n", "one") is None
    twice = "def one(a):\n    return a\n\n\ndef one(b):\n    return b\n"
    assert place_of("a.py", twice, "one") is None
    assert place_of("a.py", "def one(a):\n    return a\x0c\n", "one") is None
    assert place_of("a.py", "def one(a)\n", "one") is None


CHEATS = [
    ("import sys\nsys.exit()", "reaches_outside"),
    ("import pytest\npytest.main = None\nreturn self.step", "reaches_outside"),
    ("sys.exit(by)\nreturn self.step", "reaches_outside"),
    ("getattr(os, '_exit')(by)\nreturn self.step", "reaches_outside"),
    ("sys.modules['pytest'].fail = print\nreturn self.step", "reaches_outside"),
    ("os.sep = '!'\nreturn self.step", "reaches_outside"),
    ("del os.environ['HOME']\nreturn self.step", "reaches_outside"),
    ("global LIMIT\nLIMIT = by\nreturn self.step", "reaches_outside"),
    ("exec('x = 1')\nreturn self.step", "reaches_outside"),
    ("open('x', 'w').close()\nreturn self.step", "reaches_outside"),
    ("self.__class__.step = 0\nreturn self.step", "reaches_outside"),
    ("Counter.step = by\nreturn self.step", "reaches_outside"),
    ("os.system('rm tests')\nreturn self.step", "reaches_outside"),
    ("pass", "function_emptied"),
    ("return None", "function_emptied"),
    ("raise NotImplementedError", "function_emptied"),
    ("'a'\n...", "function_emptied"),
    ("wrong_step = by\nreturn wrong_step", "tells_the_bug"),
    ("isBuggy = by\nreturn isBuggy", "tells_the_bug"),
    ("self.off_by_one = by\nreturn by", "tells_the_bug"),
    ("if by:\n    raise ValueError('a BUG')\nreturn by", "tells_the_bug"),
    ("return undefined_name + by", "unknown_name"),
]


@pytest.mark.parametrize(("body", "rule"), CHEATS)
def test_what_can_be_seen_without_running_anything(body: str, rule: str) -> None:
    place = placed("Counter.grow")
    written = "def grow(self, by=1):\n" + textwrap.indent(body, "    ") + "\n"
    _, node = written_function(written, place)
    assert [finding.rule for finding in against(place, node, subtle=False)][:1] == [rule]


def test_honest_functions_are_not_suspected() -> None:
    place = placed("Counter.grow")
    for body in (
        "if by >= 0:\n    self.step += by\n    return self.step\nreturn 0",
        "return max(self.step, LIMIT, len(os.sep))",
    ):
        _, node = written_function("def grow(self, by=1):\n" + textwrap.indent(body, "    ") + "\n", place)
        assert against(place, node, subtle=False) == []


def test_a_subtle_change_leaves_most_of_the_function() -> None:
    place = placed("Counter.parts")
    head = '@staticmethod\ndef parts(text: str, sep=",") -> list:\n'
    other = head + "    a = sep\n    b = a\n    c = b\n    d = c\n    e = d\n    return e.split(text)\n"
    _, node = written_function(other, place)
    assert against(place, node, subtle=False) == []
    long = placed("f", "def f(a):\n" + "".join(f"    a += {number}\n" for number in range(9)) + "    return a\n")
    _, node = written_function("def f(a):\n    b = a\n    c = b\n    return c\n", long)
    assert [finding.rule for finding in against(long, node, subtle=True)] == ["too_different"]
    assert meaning_the_same(FILE, FILE.replace("# Old wisdom.", "# New."))
