"""What the instruction gives away: the fix, its own names, and hidden tests other than those it is meant to show."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envsynth.leaks import leaks
from envsynth.models import Finding
from envsynth.validators.leakage.guards import Guards
from envsynth.validators.leakage.passages import SIGNIFICANT, squeezed
from envsynth.validators.leakage.secrets import secrets_in

__all__ = ["look_at_instruction"]

_OTHER_LINES = 3
"""Distinct lines of hidden tests that the instruction is not meant to show."""


def look_at_instruction(guards: Guards) -> Iterator[Finding]:
    """Everything wrong with a candidate's text."""
    text = guards.candidate.instruction
    if said := leaks(text, guards.secrets):
        yield Finding(rule="instruction_leaks_fix", message=f"it says {', '.join(map(repr, said[:3]))}")
    for kind in secrets_in(text.encode("utf-8", "replace")):
        yield Finding(rule="instruction_has_secret", message=f"looks like a {kind}")
    if not guards.fail_to_pass:
        return
    told = set(squeezed(text))
    for path, lines in _not_to_show(guards):
        shown = sorted(lines & told)
        if len(shown) >= _OTHER_LINES:
            message = f"{len(shown)} lines of tests that do not fail at the start, such as {shown[0][:80]!r}"
            yield Finding(rule="instruction_shows_other_tests", message=message, where=path)


def _not_to_show(guards: Guards) -> Iterator[tuple[str, set[str]]]:
    """Telling lines of each hidden test file that stand in its other tests only, and nowhere in the start tree."""
    known = set(squeezed(guards.known))
    failing: dict[str, set[str]] = {}
    for place in guards.failing:
        failing.setdefault(place.path, set()).add(place.names[-1])
    shown = {path: _lines(guards, path, names, inside=True) for path, names in failing.items()}
    meant = set().union(*shown.values())
    for entry in guards.changed_tests:
        if entry.path.endswith(".py"):
            lines = _lines(guards, entry.path, failing.get(entry.path, set()), inside=False)
            yield entry.path, {line for line in lines - meant - known if len(line) >= SIGNIFICANT}


def _lines(guards: Guards, path: str, names: set[str], *, inside: bool) -> set[str]:
    """Lines of the test functions of these names, with whatever is no test at all; or of the other test functions."""
    text = guards.text(guards.files.hidden, path) or ""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    raw, others = text.splitlines(), set()
    for node in ast.walk(module):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test") and node.name not in names:
            others |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    wanted = (line for number, line in enumerate(raw, 1) if (number in others) is not inside)
    return set(squeezed("\n".join(wanted)))
