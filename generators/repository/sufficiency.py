"""Whether a text and the repository determine what the failing tests demand.

Every demand of the failing tests is one of these, and each has its rule:

- **A name that does not exist yet** (module, function, class, member, parameter; `interface.demands`): the text says
  it, at every vagueness; a new name of a module with the module, a new callable that takes arguments as a call.
- **A chosen literal**: one of the tests that the solution brings along and the start tree has nowhere. Nobody could
  guess it, so the text says it, at every vagueness.
- **An error**: the text names it, unless it is the root of all errors; at vagueness 2 and 3 it is also determined where
  the changed functions name it already.
- **A computed value**: any other value that a test compares with. One is *determined* when
  the text states it (all its telling literals: as they are, escaped, or as a number of equal value);
  or the test had passed this point when it failed at the start, so that today's code gives it;
  or functions that exist and stay as they are compute it in the test; or it is an argument of the call as a whole, or a
  text that the test hands to another call; or it is `True`, `False`, `None`, empty, 0, 1 or -1;
  or its strings stand near what is tested: in the files that the solution changes, or within some lines of the tested
  name in any visible file, tests and documents included. Numbers do so only where no small number is meant by chance.
  The text must state every value that the repository does not determine at vagueness 0; at 1, one such value of each
  failing test; at 2, one of each function that is changed or new; at 3, one. The rest follows from the rule that the
  text tells.

Beside that, the text has to be about something: each failing test (0, 1), each changed or new function (2), or one of
them all (3) must have a concrete literal of its calls or results in the text. What this cannot see: whether the words
state the rule right. That is what rollouts are for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from envsynth.generators.repository.asserted import Value, strings_in, values_of
from envsynth.generators.repository.excerpt import Excerpt
from envsynth.generators.repository.interface import Demand, Project
from envsynth.generators.repository.stated import SHORT, Literal, Stated, parsed
from envsynth.leaks import Change
from envsynth.models import Finding

SPECIFICATION, REPORT, DESCRIPTION, COMPLAINT = range(4)
_WINDOW = 30
"""Lines around a tested name that count as near it."""
_ROUND = re.compile(r"[125]?0*")
_PLACE = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[sdrifxg]|\{[^{}]*\}")


class Facts(NamedTuple):
    """What is demanded, and what an agent finds in the start tree."""

    excerpts: Sequence[Excerpt]
    project: Project
    demands: Sequence[Demand]
    changes: Sequence[Change]
    functions: Sequence[str]
    """Names of the functions that the solution changes."""
    texts: Mapping[str, str]
    """Text of each file of the start tree, by path."""


class Group(NamedTuple):
    """The values of one failing test."""

    name: str
    """What it is about, in words."""
    values: tuple[Value, ...]


class Needs:
    """What the failing tests of one candidate demand, worked out once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.groups = tuple(
            Group(excerpt.heading, tuple(values_of(excerpt, facts.project))) for excerpt in facts.excerpts
        )

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """Names of what the tests call, as far as the project defines them."""
        named = (name for group in self.groups for value in group.values for name in (*value.subjects, *value.by))
        return tuple(name for name in dict.fromkeys(named) if name in self.facts.project.words or name in self._new)

    @cached_property
    def existing(self) -> tuple[str, ...]:
        """Those of them that exist at the start."""
        return tuple(name for name in self.subjects if name not in self._new)

    @cached_property
    def _new(self) -> frozenset[str]:
        return frozenset(demand.name for demand in self.facts.demands)

    @cached_property
    def near(self) -> Stated:
        """What stands near what is tested, in the start tree."""
        touched = [change.before for change in self.facts.changes]
        names = {name for name in (*self.subjects, *(one.rpartition(".")[2] for one in self.facts.functions)) if name}
        if not names:
            return Stated("\n".join(touched))
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        windows: list[str] = []
        changed = {change.path for change in self.facts.changes}
        for path, text in self.facts.texts.items():
            if path not in changed and pattern.search(text):
                windows += _windows(text, pattern)
        return Stated("\n".join([*touched, *windows]))

    @cached_property
    def chosen(self) -> tuple[Literal, ...]:
        """Literals that the tests demand, the solution brings along, and the start tree has nowhere."""
        brought = _brought(self.facts.changes)
        known = Stated("\n".join(self.facts.texts.values()))
        parts = [node for excerpt in self.facts.excerpts for node in (*excerpt.nodes, *_parsed(excerpt.helpers))]
        asked = dict.fromkeys([*strings_in(parts), *(leaf for group in self.groups for value in group.values
                               if value.kind == "pattern" for leaf in value.leaves)])  # fmt: skip
        found = dict.fromkeys(need for literal in asked for need in _needed(literal, brought))
        return tuple(literal for literal in found if not known.says(literal))

    @cached_property
    def errors(self) -> tuple[str, ...]:
        """Names of the exceptions and warnings that the tests expect, those excepted that do not exist yet."""
        names = (leaf for group in self.groups for value in group.values
                 if value.kind == "error" and not value.passed for leaf in value.leaves)  # fmt: skip
        return tuple(name for name in dict.fromkeys(names) if isinstance(name, str) and name not in self._new)

    @cached_property
    def raised_already(self) -> frozenset[str]:
        """Errors that the changed functions name at the start."""
        wanted = {name.rpartition(".")[2] for name in self.facts.functions}
        code = "\n".join(
            ast.get_source_segment(change.before, node) or ""
            for change in self.facts.changes
            for tree in [parsed(change.before)]
            if tree is not None
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in wanted
        )
        return frozenset(name for name in self.errors if re.search(rf"\b{re.escape(name)}\b", code))

    def together(self, level: int) -> list[tuple[str, list[Value]]]:
        """Values of which the text has to say something, by what they are about; at vagueness 2 what is changed."""
        if level <= REPORT:
            return [(group.name, list(group.values)) for group in self.groups]
        values = [value for group in self.groups for value in group.values]
        about = {name.rpartition(".")[2] for name in self.facts.functions} | self._new
        sets: dict[str, list[Value]] = {}
        for value in values if level == DESCRIPTION else ():
            name = next((name for name in value.subjects if name in about), "")
            sets.setdefault(name, []).append(value)
        sets.pop("", None)
        return list(sets.items()) or [("", values)]

    def settled(self, value: Value) -> bool:
        """Whether the repository alone determines a computed value."""
        known = {*self.existing}.difference(name.rpartition(".")[2] for name in self.facts.functions)
        if value.passed or value.same or not value.leaves or (value.by and known.issuperset(value.by)):
            return True
        return not value.by and all(self._stands_near(leaf) for leaf in value.leaves)

    def _stands_near(self, literal: Literal) -> bool:
        if isinstance(literal, str):
            return len(literal.strip()) > SHORT and self.near.says(literal)
        whole = isinstance(literal, int) or (isinstance(literal, float) and literal.is_integer())
        if isinstance(literal, complex) or (whole and (abs(literal) <= 16 or _ROUND.fullmatch(str(abs(int(literal)))))):
            return False
        return self.near.says(literal)


def insufficient(text: str, needs: Needs, level: int) -> list[Finding]:
    """Everything that the failing tests demand and neither the text nor the repository determines."""
    said = Stated(text)
    found = [*_names(said, needs.facts.demands)]
    for literal in needs.chosen:
        if not said.says(literal):
            found.append(_finding("undetermined_value", f"nothing tells {literal!r}, which is required word for word"))
    for name in needs.errors:
        if not said.names(name) and not (level >= DESCRIPTION and name in needs.raised_already):
            found.append(_finding("undetermined_error", f"nothing tells that {name} is expected"))
    return [*found, *_computed(said, needs, level), *_nothing_concrete(said, needs, level)]


def wanted(needs: Needs, level: int) -> list[str]:
    """What has to be told, one line each, for whoever writes the text."""
    lines = []
    for demand in needs.facts.demands:
        owner = f" of {demand.owner}" if demand.owner else ""
        calls = f", used as {' and '.join(demand.calls)}" if demand.calls else ""
        lines.append(f"new {demand.kind} {demand.name}{owner}{calls}: must be told")
    lines += [f"{literal!r}: must be told word for word" for literal in needs.chosen]
    for name in needs.errors:
        known = level >= DESCRIPTION and name in needs.raised_already
        lines.append(f"error {name}: {'the code tells' if known else 'must be told'}")
    for group in needs.groups:
        for value in group.values:
            if value.kind == "value" and value.leaves and not needs.settled(value):
                lines.append(f"{group.name}: {', '.join(value.subjects[:2]) or 'a result'} gives {_short(value.text)}")
    return lines or ["nothing word for word"]


def _names(said: Stated, demands: Iterable[Demand]) -> Iterable[Finding]:
    for demand in demands:
        last = demand.name.rpartition(".")[2]
        if not said.names(last):
            yield _finding("undetermined_name", f"the new {demand.kind} {demand.name} is not named")
        elif demand.kind == "name" and "." in demand.owner and not said.names(demand.owner.rpartition(".")[2]):
            yield _finding("undetermined_name", f"nothing tells that {demand.name} belongs into {demand.owner}")
        elif (
            demand.kind == "name"
            and any(_passes_arguments(call) for call in demand.calls)
            and f"{last}(" not in said.text
        ):
            yield _finding("undetermined_name", f"nothing tells how {demand.name} is called: write a call of it")


def _passes_arguments(call: str) -> bool:
    tree = parsed(call)
    return tree is not None and any(isinstance(part, ast.Call) and part.args for part in ast.walk(tree))


def _computed(said: Stated, needs: Needs, level: int) -> Iterable[Finding]:
    """Values that nothing determines: all of them, or groups in which none is."""
    if level == SPECIFICATION:
        for group in needs.groups:
            for value in group.values:
                if value.kind == "value" and not needs.settled(value) and not _says(said, value):
                    message = f"{group.name}: nothing tells that {_short(value.text)} is expected"
                    yield _finding("undetermined_value", message)
        return
    for name, values in needs.together(level):
        open_values = [value for value in values if value.kind == "value" and not needs.settled(value)]
        shown = [
            value for value in values if value.kind == "value" and value.leaves and not value.same and not value.passed
        ]
        if open_values and not any(_says(said, value) for value in shown):
            message = f"{name}: no expected result is told, such as {_short(open_values[0].text)}"
            yield _finding("undetermined_value", message)


def _nothing_concrete(said: Stated, needs: Needs, level: int) -> Iterable[Finding]:
    """Tests, or functions, of whose calls and results the text says nothing at all."""
    for name, values in needs.together(level):
        told = ((value.inputs if value.kind == "error" else (*value.leaves, *value.inputs)) for value in values)
        literals = {literal for several in told for literal in several}
        if literals and not any(said.says(literal) for literal in literals):
            shown = _short(repr(min(literals, key=lambda literal: len(str(literal)))))
            about = f"{name}: " if name else ""
            yield _finding("no_concrete_case", f"{about}no input or result is told, such as {shown}")


def _says(said: Stated, value: Value) -> bool:
    return all(said.says(leaf) for leaf in value.leaves)


def _needed(literal: Literal, brought: frozenset[Literal]) -> list[Literal]:
    """What of a literal of the tests must be told because the solution brings it along."""
    if not isinstance(literal, str):
        number = str(abs(literal)) if not isinstance(literal, complex) else ""
        return [literal] if literal in brought and not re.fullmatch(r"\d{1,2}|[125]0*", number) else []
    texts = [other for other in brought if isinstance(other, str)]
    within = len(literal) >= 8 and " " in literal.strip()
    if re.search(r"\w{2}", literal) and any(literal == text or (within and literal in text) for text in texts):
        return [literal]
    return [part for text in texts for part in _fragments(text) if part in literal]


def _fragments(template: str) -> list[str]:
    """What a template says between its places, where that is more than a word."""
    pieces = (piece.strip() for piece in _PLACE.split(template))
    return [piece for piece in pieces if len(re.findall(r"[^\W\d_]{2,}", piece)) >= 2]


def _brought(changes: Iterable[Change]) -> frozenset[Literal]:
    """Literals of the solution's new code; documentation is none."""
    new: set[Literal] = set()
    for change in changes:
        after, before = parsed(change.after), parsed(change.before)
        if not change.path.endswith(".py") or after is None:
            continue
        said = {id(node.value) for node in ast.walk(after)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}  # fmt: skip
        parts = [part for part in ast.walk(after) if isinstance(part, ast.Constant) and id(part) not in said]
        new |= {*strings_in(parts)} - ({*strings_in([before])} if before is not None else set())
    return frozenset(new)


def _windows(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The lines around each match."""
    lines = text.splitlines()
    wanted: set[int] = set()
    for number, line in enumerate(lines):
        if pattern.search(line):
            wanted |= set(range(max(0, number - _WINDOW), min(len(lines), number + _WINDOW + 1)))
    return [lines[number] for number in sorted(wanted)]


def _parsed(texts: Iterable[str]) -> list[ast.AST]:
    return [tree for text in texts if (tree := parsed(text)) is not None]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:200]}…"


def _finding(rule: str, message: str) -> Finding:
    return Finding(rule=rule, message=message)
