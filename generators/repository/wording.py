"""What an instruction may not say, whatever it is about: tests, commits, graders, solutions, links; and its size."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from envsynth.generators.repository.instruction import MAX_LENGTH
from envsynth.leaks import Secrets, leaks
from envsynth.models import Finding

__all__ = ["HiddenTests", "leaking", "unseemly"]

MIN_LENGTH = 80
"""Characters of the whole text."""
MIN_WORDS = 12
"""Words beside code."""
MAX_TITLE = 140
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.S)
_OTHER_LINES = 3
_LINE = 20
"""Characters of a line that says something by itself."""


class HiddenTests(NamedTuple):
    """What only the grader has."""

    paths: Sequence[str]
    """Test files that the commit adds or changes."""
    names: Sequence[str]
    """Functions and classes of the failing tests."""
    shown: str
    """Code of the failing tests."""
    literals: str
    """The strings in it, one a line; no comments: whatever they say is not demanded."""
    text: str
    """Text of the test files that the commit adds or changes."""


class _Rule(NamedTuple):
    name: str
    tells: str
    pattern: re.Pattern[str]
    unless_demanded: bool
    in_code: bool
    """Whether it is looked for in fenced code too."""


def unseemly(title: str, body: str, hidden: HiddenTests, known: str) -> list[Finding]:
    """Everything in a text that no instruction should have.

    Args:
        title: its first line.
        body: the rest.
        hidden: what only the grader has.
        known: everything that the agent can read in its tree: what is written there may be said.
    """
    text = f"{title}\n\n{body}"
    found = [*_size(title, text)]
    plain = _FENCED.sub("\n", text)
    for rule in _rules():
        excused = hidden.literals if rule.unless_demanded else ""
        seen = text if rule.in_code else plain
        said = next((hit[0] for hit in rule.pattern.finditer(seen) if hit[0] not in excused), "")
        if said:
            found.append(Finding(rule=rule.name, message=f"{rule.tells}: {' '.join(said.split())[:100]!a}"))
    return [*found, *_tests_named(text, hidden), *_tests_copied(text, hidden, known)]


def leaking(text: str, secrets: Secrets, strict: Secrets, diff: str, shown: str) -> list[Finding]:
    """What a text gives away of the solution.

    Args:
        text: title and body.
        secrets: what only the solution has, by the ladder's own rule.
        strict: what the solution brings to the files it touches, though it may be elsewhere in the tree.
        diff: the solution.
        shown: code of the failing tests: its lines may be said.
    """
    if said := [*leaks(text, secrets), *_lines_of_diff(text, diff, shown)]:
        return [Finding(rule="instruction_leaks_fix", message=f"it says {', '.join(map(repr, said[:5]))}")]
    # A number is no hint at how something is done, and often the default of what is new.
    named = strict._replace(literals=frozenset(one for one in strict.literals if not re.fullmatch(r"[\d.eE+_-]+", one)))
    if said := leaks(text, named):
        message = f"the solution uses {', '.join(map(repr, said[:5]))}, which nothing else points at"
        return [Finding(rule="instruction_hints_fix", message=message)]
    return []


def _lines_of_diff(text: str, diff: str, shown: str) -> list[str]:
    """Lines that the solution adds and the text has, though the tree may have them in another place."""
    lines = diff.splitlines()
    removed = {*_lines("\n".join(line[1:] for line in lines if line.startswith("-")))}
    added = {*_lines("\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")))}
    squeezed, known = " ".join(text.split()), " ".join(shown.split())
    return sorted(line for line in added - removed if line in squeezed and line not in known)


def _size(title: str, text: str) -> Iterable[Finding]:
    words = len(re.findall(r"[^\W\d_]{2,}", _FENCED.sub("", text)))
    if len(text.strip()) < MIN_LENGTH or words < MIN_WORDS:
        yield Finding(rule="instruction_too_short", message=f"{len(text.strip())} characters, {words} words of prose")
    if len(text) > MAX_LENGTH:
        yield Finding(rule="instruction_too_long", message=f"{len(text)} characters; at most {MAX_LENGTH}")
    if not title.strip() or "\n" in title.strip() or len(title) > MAX_TITLE:
        yield Finding(rule="title_unfit", message=f"one line of 1 to {MAX_TITLE} characters is wanted", where="title")


def _tests_named(text: str, hidden: HiddenTests) -> Iterable[Finding]:
    names = {name for name in hidden.names if re.match(r"_?test", name, re.I)}
    files = {posixpath.basename(path) for path in hidden.paths}
    stems = {name.rpartition(".")[0] for name in files if name.endswith(".py")} - {"__init__"}
    for name in sorted({*names, *hidden.paths, *files, *(stem for stem in stems if "test" in stem)}):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield Finding(rule="names_hidden_test", message=f"it names {name!r}, which only the grader has")
            return


def _tests_copied(text: str, hidden: HiddenTests, known: str) -> Iterable[Finding]:
    """Lines of tests that the text has no reason to show."""
    ours = {*_lines(hidden.text)} - {*_lines(hidden.shown)} - {*_lines(known)}
    shown = sorted(ours & {*_lines(text)})
    if len(shown) >= _OTHER_LINES:
        message = f"{len(shown)} lines of other tests, such as {shown[0][:80]!r}"
        yield Finding(rule="instruction_shows_other_tests", message=message)


def _lines(text: str) -> Iterable[str]:
    return (line for raw in text.splitlines() if len(line := " ".join(raw.split())) >= _LINE)


@cache
def _rules() -> tuple[_Rule, ...]:
    table = tomllib.loads((resources.files(__package__) / "words" / "wording.toml").read_text("utf-8"))
    return tuple(
        _Rule(
            name,
            row["tells"],
            re.compile("|".join(f"(?:{text})" for text in row["patterns"]), re.I | re.M),
            row.get("unless_demanded", False),
            row.get("in_code", False),
        )
        for name, row in table.items()
    )
